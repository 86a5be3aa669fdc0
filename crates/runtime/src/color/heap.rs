//! A coloured heap's memory: pages of each colour, and all bookkeeping in pages of its own.

use std::cell::UnsafeCell;
use std::ptr::{null_mut, NonNull};

use lookaside_machine::Partition;

use super::error::HeapError;
use super::huge;
use super::layout::{lay_out, ColorRun, MAX_COLORS, RUN_BYTES};
use super::options::HeapOptions;
use super::pool::{BadFree, ColorPool, ColorStats};
use super::reserved_pages::{ReservedPages, INTERPRETED};
use super::runs::{RunEntry, RunTable};

/// The first page of the bookkeeping.
#[repr(C)]
struct Root {
    /// Others wait for it while its owner has the rest to itself.
    lock: UnsafeCell<libc::pthread_mutex_t>,
    colors: usize,
    runs: RunTable,
    page_shift: u32,
    /// Bytes of a page less one.
    page_mask: usize,
    checked: bool,
    /// One colour, headers without seals.
    plain: bool,
    pools: [*mut ColorPool; MAX_COLORS],
}

const _: () = assert!(std::mem::size_of::<Root>() <= 4096);

/// A heap of several colours, for one caller at a time.
#[derive(Debug)]
pub(crate) struct Heap {
    root: NonNull<Root>,
    area: ReservedPages,
    /// The bookkeeping's pages, by number.
    control: Vec<u64>,
}

/// A call of a pool whose headers have seals, or not: which is decided here, once a call.
macro_rules! sealed {
    ($checked:expr, $pool:expr, $call:ident ( $($argument:expr),* )) => {
        if $checked { $pool.$call::<true>($($argument),*) } else { $pool.$call::<false>($($argument),*) }
    };
}

/// Where an allocation lies.
struct AllocationPlace {
    color: u32,
    /// Its run, if that was taken whole.
    whole: Option<*mut RunEntry>,
}

/// Where the next piece of bookkeeping goes: whole pieces in pages that need not be neighbours.
struct Pieces<'a> {
    pages: std::slice::Iter<'a, u64>,
    shift: u32,
    at: usize,
    left: usize,
}

impl Pieces<'_> {
    fn next(&mut self, bytes: usize) -> Result<usize, HeapError> {
        if bytes > self.left {
            let vpn = self.pages.next().ok_or_else(|| HeapError::System("too few pages for the bookkeeping".into()))?;
            self.at = (vpn << self.shift) as usize;
            self.left = 1 << self.shift;
        }
        let at = self.at;
        self.at += bytes;
        self.left -= bytes;
        Ok(at)
    }
}

impl Heap {
    pub(crate) fn new(options: &HeapOptions) -> Result<Self, HeapError> {
        let every = Partition { name: "bookkeeping".into(), contiguous_pages: 1, ..Partition::default() };
        let bookkeeping = options.bookkeeping.as_ref().unwrap_or(&every);
        let layout = lay_out(options, bookkeeping)?;
        let area = layout.area;
        for run in &layout.runs {
            area.open(run.vpn, run.pages, options.locked)?;
        }
        for vpn in &layout.control {
            area.open(*vpn, 1, options.locked)?;
        }
        if area.are_huge() {
            let pages = layout.runs.iter().map(|run| run.pages).sum::<u64>() + layout.control.len() as u64;
            let (start, end) = area.ends();
            huge::check(start, end, 1 << area.shift, pages << area.shift)?;
        }
        let page_bytes = 1usize << area.shift;
        let mut pieces = Pieces { pages: layout.control.iter(), shift: area.shift, at: 0, left: 0 };
        let root = pieces.next(std::mem::size_of::<Root>())? as *mut Root;
        pieces.left = 0; // the first page has nothing else: it is touched by each call
                         // SAFETY: fresh pages of zeros, which are valid for all that follows; each piece is aligned:
                         // pages are, and sizes are multiples of 8.
        unsafe {
            (*root).colors = options.colors.len();
            (*root).page_shift = area.shift;
            (*root).page_mask = page_bytes - 1;
            (*root).checked = options.checked;
            (*root).plain = !options.checked && options.colors.len() == 1;
            let runs = std::ptr::addr_of_mut!((*root).runs);
            RunTable::init(runs, page_bytes);
            for all in layout.runs.chunks(page_bytes / RUN_BYTES) {
                let at = pieces.next(page_bytes)? as *mut RunEntry;
                (*runs).add(at, all.iter().map(|run| RunEntry::new(run, area.shift)));
            }
            init_lock((*root).lock.get())?;
        }
        let secret = secret();
        for color in 0..options.colors.len() {
            let own = || layout.runs.iter().filter(|run: &&ColorRun| run.color == color);
            let longest = own().map(|run| run.pages).max().unwrap_or(0) << area.shift;
            let pool = pieces.next(ColorPool::bytes(longest as usize))? as *mut ColorPool;
            // SAFETY: a piece of that size; the runs were opened and are this colour's alone.
            unsafe {
                ColorPool::init(pool, longest as usize, secret);
                for run in own() {
                    let (start, bytes) = ((run.vpn << area.shift) as usize, (run.pages << area.shift) as usize);
                    sealed!(options.checked, (*pool), add_run(start, bytes));
                }
                (*root).pools[color] = pool;
            }
        }
        let root = NonNull::new(root).ok_or_else(|| HeapError::System("page 0 was mapped".into()))?;
        Ok(Self { root, area, control: layout.control })
    }

    fn root(&self) -> &Root {
        // SAFETY: made in `new`, in pages of the area; whoever calls has the heap to itself.
        unsafe { self.root.as_ref() }
    }

    /// Its lock, for those that share it: where it stays as long as the heap.
    pub(crate) fn lock(&self) -> NonNull<libc::pthread_mutex_t> {
        // SAFETY: a field of what is not null.
        unsafe { NonNull::new_unchecked(self.root().lock.get()) }
    }

    pub(crate) fn colors(&self) -> u32 {
        self.root().colors as u32
    }

    pub(crate) fn page_bytes(&self) -> usize {
        1 << self.root().page_shift
    }

    /// Numbers of the pages that the bookkeeping lies in.
    pub(crate) fn control_vpns(&self) -> &[u64] {
        &self.control
    }

    fn pool(&mut self, color: u32) -> Option<&mut ColorPool> {
        let pool = *self.root().pools.get(color as usize)?;
        // SAFETY: each colour has its pool, in pages of the area; the others' pointers are null.
        unsafe { pool.as_mut() }
    }

    /// The colour of an address; `None`: no colour's.
    pub(crate) fn color_of(&self, address: *const u8) -> Option<u32> {
        // SAFETY: an entry of the table.
        self.root().runs.of(address as usize).map(|entry| unsafe { (*entry).color() as u32 })
    }

    pub(crate) fn malloc(&mut self, bytes: usize, color: u32) -> *mut u8 {
        let checked = self.root().checked;
        let Some(pool) = self.pool(color) else { return null_mut() };
        if bytes <= pool.largest() {
            return sealed!(checked, pool, malloc(bytes));
        }
        self.malloc_pages(bytes, color)
    }

    /// Where there is no room beside a header: the pages as they are.
    #[cold]
    fn malloc_pages(&mut self, bytes: usize, color: u32) -> *mut u8 {
        let page = self.page_bytes();
        let Some(pool) = self.pool(color) else { return null_mut() };
        let Some(whole) = bytes.checked_next_multiple_of(page) else { return pool.refuse(bytes) };
        if whole > pool.longest_run() {
            return pool.refuse(bytes);
        }
        self.take_whole(whole, color)
    }

    fn take_whole(&mut self, bytes: usize, color: u32) -> *mut u8 {
        let checked = self.root().checked;
        let Some(pool) = self.pool(color) else { return null_mut() };
        let start = sealed!(checked, pool, take_run(bytes));
        if !start.is_null() {
            if let Some(entry) = self.root().runs.of(start as usize) {
                // SAFETY: an entry of the table.
                unsafe { (*entry).set_whole(true) };
            }
        }
        start
    }

    pub(crate) fn aligned(&mut self, alignment: usize, bytes: usize, color: u32) -> *mut u8 {
        let (page, checked) = (self.page_bytes(), self.root().checked);
        let Some(pool) = self.pool(color) else { return null_mut() };
        let start = sealed!(checked, pool, aligned(alignment, bytes));
        if !start.is_null() || alignment > page {
            return start;
        }
        match bytes.checked_next_multiple_of(page) {
            // It was counted as refused above.
            Some(whole) if whole != 0 && whole <= pool.longest_run() => {
                pool.stats.refused -= 1;
                self.take_whole(whole, color)
            }
            _ => start,
        }
    }

    /// Whose an address is that was given out.
    fn place_of(&self, bytes: *mut u8, said: Option<u32>) -> Result<AllocationPlace, BadFree> {
        let address = bytes as usize;
        let run = self.root().runs.of(address).ok_or(BadFree::Foreign)?;
        // SAFETY: an entry of the table.
        let entry = unsafe { *run };
        let color = entry.color() as u32;
        if said.is_some_and(|said| said != color) {
            return Err(BadFree::Color(color));
        }
        match (entry.start == address, entry.is_whole()) {
            (true, true) => Ok(AllocationPlace { color, whole: Some(run) }),
            // No block's bytes begin there.
            (true, false) => Err(BadFree::FreedBefore),
            (false, true) => Err(BadFree::NoStart),
            (false, false) => Ok(AllocationPlace { color, whole: None }),
        }
    }

    /// Null is nothing.
    ///
    /// # Safety
    /// As [`ColorPool::free`].
    #[inline]
    pub(crate) unsafe fn free(&mut self, bytes: *mut u8, said: Option<u32>) -> Result<(), BadFree> {
        let root = self.root();
        if root.plain && said.is_none() && bytes as usize & root.page_mask != 0 {
            // Nothing to look up: there is no choice, and whole runs begin with a page.
            // SAFETY: the first colour's pool; the caller's.
            return unsafe { (*root.pools[0]).free::<false>(bytes) };
        }
        // SAFETY: the caller's.
        unsafe { self.free_placed(bytes, said) }
    }

    /// The same wherever it lies.
    ///
    /// # Safety
    /// As [`ColorPool::free`].
    unsafe fn free_placed(&mut self, bytes: *mut u8, said: Option<u32>) -> Result<(), BadFree> {
        if bytes.is_null() {
            return Ok(());
        }
        let place = self.place_of(bytes, said)?;
        let checked = self.root().checked;
        let pool = self.pool(place.color).ok_or(BadFree::Foreign)?;
        // SAFETY: the caller's; an entry of the table.
        unsafe {
            match place.whole {
                None => sealed!(checked, pool, free(bytes)),
                Some(run) => {
                    (*run).set_whole(false);
                    let len = (*run).bytes();
                    sealed!(checked, pool, give_run(bytes, len));
                    Ok(())
                }
            }
        }
    }

    pub(crate) fn usable(&mut self, bytes: *mut u8) -> Result<usize, BadFree> {
        let place = self.place_of(bytes, None)?;
        let checked = self.root().checked;
        match place.whole {
            // SAFETY: an entry of the table.
            Some(run) => Ok(unsafe { (*run).bytes() }),
            None => sealed!(checked, self.pool(place.color).ok_or(BadFree::Foreign)?, usable(bytes)),
        }
    }

    /// `Ok(null)`: there is no room, and the old allocation stays.
    ///
    /// # Safety
    /// As [`Heap::free`].
    pub(crate) unsafe fn realloc(&mut self, old: *mut u8, bytes: usize, color: u32) -> Result<*mut u8, BadFree> {
        if old.is_null() {
            return Ok(self.malloc(bytes, color));
        }
        let place = self.place_of(old, Some(color))?;
        let (had, checked) = (self.usable(old)?, self.root().checked);
        let stays = match place.whole {
            Some(_) => bytes <= had,
            None => sealed!(checked, self.pool(color).ok_or(BadFree::Foreign)?, resize(old, bytes))?,
        };
        if stays {
            return Ok(old);
        }
        let new = self.malloc(bytes, color);
        if !new.is_null() {
            // SAFETY: both hold as many bytes as the smaller; a new allocation overlaps no other.
            unsafe {
                std::ptr::copy_nonoverlapping(old, new, had.min(bytes));
                self.free(old, Some(color))?;
            }
        }
        Ok(new)
    }

    pub(crate) fn stats(&mut self, color: u32) -> Option<ColorStats> {
        Some(self.pool(color)?.stats)
    }

    pub(crate) fn sound(&mut self) -> bool {
        (0..self.colors()).all(|color| self.pool(color).is_some_and(|pool| pool.sound()))
    }

    /// Goes through a colour's allocations and free blocks; `false`: it is damaged.
    pub(crate) fn walk(&mut self, color: u32, each: &mut dyn FnMut(*mut u8, usize, bool)) -> bool {
        let checked = self.root().checked;
        for i in 0..self.root().runs.len() {
            // SAFETY: an entry of the table.
            let entry = unsafe { *self.root().runs.get(i) };
            if entry.color() != color as usize {
                continue;
            }
            if entry.is_whole() {
                each(entry.start as *mut u8, entry.bytes(), true);
                continue;
            }
            let Some(pool) = self.pool(color) else { return false };
            if !sealed!(checked, pool, walk(entry.start, entry.bytes(), each)) {
                return false;
            }
        }
        true
    }

    /// Numbers of a colour's pages.
    pub(crate) fn vpns(&self, color: u32) -> Vec<u64> {
        let shift = self.area.shift;
        let runs = (0..self.root().runs.len()).map(|i| {
            // SAFETY: an entry of the table.
            unsafe { *self.root().runs.get(i) }
        });
        let own = runs.filter(|entry| entry.color() == color as usize);
        own.flat_map(|entry| {
            let first = (entry.start >> shift) as u64;
            first..first + (entry.bytes() >> shift) as u64
        })
        .collect()
    }

    /// Bytes of its pages that lie in huge pages now.
    pub(crate) fn huge_bytes(&self) -> Result<u64, HeapError> {
        let (start, end) = self.area.ends();
        huge::bytes_in(start, end)
    }

    /// A stack: pages of a colour in a row, the lowest of which faults. The lowest byte that may be used, and how many.
    pub(crate) fn stack(&mut self, bytes: usize, color: u32) -> Result<(*mut u8, usize), HeapError> {
        let page = self.page_bytes();
        let short = || HeapError::Asked(format!("colour {color} has no {bytes} contiguous bytes and a page more"));
        let usable = bytes.max(1).checked_next_multiple_of(page).ok_or_else(short)?;
        let whole = usable.checked_add(page).ok_or_else(short)?;
        let start = self.aligned(page, whole, color);
        if start.is_null() {
            return Err(short());
        }
        self.area.guard((start as usize >> self.area.shift) as u64, 1, true)?;
        Ok((start.wrapping_add(page), usable))
    }

    /// Gives a stack back.
    ///
    /// # Safety
    /// `lowest` is what [`Heap::stack`] gave, and nobody uses it any more.
    pub(crate) unsafe fn end_stack(&mut self, lowest: *mut u8) -> Result<(), HeapError> {
        let start = lowest.wrapping_sub(self.page_bytes());
        self.area.guard((start as usize >> self.area.shift) as u64, 1, false)?;
        // SAFETY: the caller's.
        unsafe { self.free(start, None) }.map_err(|fault| HeapError::Asked(format!("a stack at {lowest:p}: {fault}")))
    }
}

/// A mutex that lends its owner the priority of who waits for it: a task waits for no third one of middle priority.
///
/// # Safety
/// `lock` points to a mutex's bytes, which stay there.
pub(crate) unsafe fn init_lock(lock: *mut libc::pthread_mutex_t) -> Result<(), HeapError> {
    // SAFETY: an attribute of this function's own; the caller's mutex.
    let failed = unsafe {
        let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
        let inherits = |attributes| match INTERPRETED {
            true => 0,
            false => libc::pthread_mutexattr_setprotocol(attributes, libc::PTHREAD_PRIO_INHERIT),
        };
        libc::pthread_mutexattr_init(&mut attributes)
            | inherits(&mut attributes)
            | libc::pthread_mutex_init(lock, &attributes)
            | libc::pthread_mutexattr_destroy(&mut attributes)
    };
    match failed {
        0 => Ok(()),
        code => Err(HeapError::System(format!("no mutex: {}", std::io::Error::from_raw_os_error(code)))),
    }
}

/// Bits that a program cannot guess; never 0.
fn secret() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: a buffer of that size. Where the system gives none the address of the stack must do.
    unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), libc::GRND_NONBLOCK) };
    (u64::from_ne_bytes(bytes) ^ bytes.as_ptr() as u64) | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_lies_whole_in_a_page_behind_the_one_before_or_in_the_next() {
        let pages = [5, 9, 7];
        let mut pieces = Pieces { pages: pages.iter(), shift: 12, at: 0, left: 0 };
        let mut next = |bytes| pieces.next(bytes).map_err(|error| error.to_string());
        assert_eq!([next(2048), next(2040), next(8)], [5 << 12, (5 << 12) + 2048, (5 << 12) + 4088].map(Ok));
        assert_eq!([next(8), next(4096)], [9 << 12, 7 << 12].map(Ok), "what is left of a page is not gone back to");
        assert_eq!(next(1), Err("too few pages for the bookkeeping".into()));
    }

    #[test]
    fn secrets_are_odd_and_any_other_bit_is_as_often_set_as_not() {
        let secrets: Vec<u64> = (0..256).map(|_| secret()).collect();
        let (any, all) = secrets.iter().fold((0, !0), |(any, all), secret| (any | secret, all & secret));
        assert_eq!((any, all), (!0, 1));
    }
}
