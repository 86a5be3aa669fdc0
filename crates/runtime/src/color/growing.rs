//! The heap of an unmodified program: one partition, pages as they are needed.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::bins::MAX_RUN;
use super::block::{block_size, ALIGNMENT, MIN_BLOCK, RUN_OVERHEAD};
use super::pick::Picker;
use super::pool::{BadFree, ColorPool, ColorStats};
use super::spec;

/// Addresses that are set aside: as much as a user's half of a 48-bit address space holds beside all else, or less
/// where that is refused.
const AREA_BYTES: [usize; 4] = [1 << 42, 1 << 38, 1 << 34, 1 << 30];
/// The least that the heap grows by, where contiguous pages go on as far: 1 MiB of small pages.
const GROW_PAGES: u64 = 256;
/// Pages after which a longer run is not looked for any more: no index known looks at higher bits of a page number.
const PATIENCE_PAGES: u64 = 1 << 16;
/// What is opened at a time, holes included: one mapping for all, since a process may have only some 65,530.
const OPEN_BYTES: usize = 64 << 20;
/// Its pool, for runs of any length, is in one page.
const _: () = assert!(ColorPool::bytes(MAX_RUN) <= 4096);
/// Page that an allocation outside of the area has in front.
const FRONT: usize = 4096;

/// A heap that grows, for a whole program: usable from its first `malloc` on, allocating nothing itself.
///
/// What no run of the partition's pages can hold, such as a megabyte of a partition of one set, comes from the system,
/// outside of it, and is counted. Nothing is ever given back but that.
#[derive(Debug)]
pub struct GrowingHeap {
    state: AtomicU32,
    lock: UnsafeCell<libc::pthread_mutex_t>,
    /// Used by who holds the lock alone.
    inner: UnsafeCell<Inner>,
    /// First byte of the area, and the byte after the last. Known once the heap is ready; nobody needs the lock for it.
    area: [AtomicUsize; 2],
    outside: AtomicU64,
    outside_bytes: AtomicU64,
}

/// States of a heap that is made by whoever calls first.
const NEW: u32 = 0;
const BEGUN: u32 = 1;
const READY: u32 = 2;

#[derive(Debug)]
struct Inner {
    pool: *mut ColorPool,
    /// In memory of its own, which is touched when the heap grows.
    picker: *mut Picker,
    shift: u32,
    start: usize,
    end: usize,
    /// Where pages are looked for next.
    next: usize,
    opened: usize,
    pages_left: u64,
    longest_pages: u64,
}

/// What lies outside of the partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    /// Allocations that no run of its pages could hold.
    pub allocations: u64,
    /// Their bytes.
    pub bytes: u64,
}

// SAFETY: `inner` is written by the one who makes it ready, and then used behind its lock.
unsafe impl Sync for GrowingHeap {}

impl GrowingHeap {
    /// A heap that is not made yet.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        let inner = Inner {
            pool: null_mut(),
            picker: null_mut(),
            shift: 12,
            start: 0,
            end: 0,
            next: 0,
            opened: 0,
            pages_left: 0,
            longest_pages: 0,
        };
        Self {
            state: AtomicU32::new(NEW),
            lock: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            inner: UnsafeCell::new(inner),
            area: [const { AtomicUsize::new(0) }; 2],
            outside: AtomicU64::new(0),
            outside_bytes: AtomicU64::new(0),
        }
    }

    /// Makes the heap, once: `line` gives the partition ([`spec`](super::spec())); what it gives, or the system
    /// refuses, is said by `complain`, and then all comes from outside.
    pub fn ready(&self, line: impl FnOnce() -> Option<&'static [u8]>, complain: impl FnOnce(&str)) {
        if self.state.load(Ordering::Acquire) == READY {
            return;
        }
        match self.state.compare_exchange(NEW, BEGUN, Ordering::Acquire, Ordering::Acquire) {
            Err(READY) => {}
            // Another thread makes it.
            Err(_) => {
                while self.state.load(Ordering::Acquire) != READY {
                    std::hint::spin_loop();
                }
            }
            Ok(_) => {
                // SAFETY: this thread alone came here.
                let inner = unsafe { &mut *self.inner.get() };
                if let Err(why) = line().ok_or("no partition is named").and_then(|line| inner.make(line)) {
                    complain(why);
                }
                self.area[0].store(inner.start, Ordering::Relaxed);
                self.area[1].store(inner.end, Ordering::Relaxed);
                self.state.store(READY, Ordering::Release);
            }
        }
    }

    fn with<T>(&self, what: impl FnOnce(&mut Inner) -> T) -> T {
        // SAFETY: a mutex that never moves; behind it nobody else uses the heap.
        unsafe {
            libc::pthread_mutex_lock(self.lock.get());
            let done = what(&mut *self.inner.get());
            libc::pthread_mutex_unlock(self.lock.get());
            done
        }
    }

    /// Memory at a multiple of `alignment`, a power of two; null where neither the partition nor the system has it.
    pub fn malloc(&self, alignment: usize, bytes: usize) -> *mut u8 {
        let (start, fits) = self.with(|inner| inner.malloc(alignment, bytes));
        if !start.is_null() || fits {
            return start;
        }
        let start = outside(alignment, bytes);
        if !start.is_null() {
            self.outside.fetch_add(1, Ordering::Relaxed);
            self.outside_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        start
    }

    /// Gives memory back; null is nothing.
    ///
    /// # Errors
    /// It is no allocation of this heap, as far as that shows.
    ///
    /// # Safety
    /// It came from here and nobody uses it any more.
    pub unsafe fn free(&self, at: *mut u8) -> Result<(), BadFree> {
        if at.is_null() {
            return Ok(());
        }
        match self.is_inside(at) {
            // SAFETY: the caller's.
            true => self.with(|inner| unsafe { (*inner.pool).free::<false>(at) }),
            // SAFETY: the caller's: it is one of those outside.
            false => unsafe { end_outside(at) },
        }
    }

    /// Bytes that may be used.
    ///
    /// # Errors
    /// As [`GrowingHeap::free`].
    ///
    /// # Safety
    /// It came from here.
    pub unsafe fn usable(&self, at: *mut u8) -> Result<usize, BadFree> {
        match self.is_inside(at) {
            // SAFETY: the pool of a heap that has an inside.
            true => self.with(|inner| unsafe { (*inner.pool).usable::<false>(at) }),
            // SAFETY: the caller's.
            false => unsafe { front_of(at).map(|front| front.bytes) },
        }
    }

    /// Changes an allocation's size; `Ok(null)`: there is no room, and it stays.
    ///
    /// # Errors
    /// As [`GrowingHeap::free`].
    ///
    /// # Safety
    /// As [`GrowingHeap::free`].
    pub unsafe fn realloc(&self, at: *mut u8, bytes: usize) -> Result<*mut u8, BadFree> {
        if at.is_null() {
            return Ok(self.malloc(1, bytes));
        }
        // SAFETY: the caller's.
        let had = unsafe { self.usable(at)? };
        if self.is_inside(at) {
            // SAFETY: as above.
            if self.with(|inner| unsafe { (*inner.pool).resize::<false>(at, bytes) })? {
                return Ok(at);
            }
        } else if bytes <= had && bytes > had / 2 {
            return Ok(at);
        }
        let new = self.malloc(1, bytes);
        if !new.is_null() {
            // SAFETY: both hold as many bytes as the smaller; the old one is the caller's to give up.
            unsafe {
                std::ptr::copy_nonoverlapping(at, new, had.min(bytes));
                self.free(at)?;
            }
        }
        Ok(new)
    }

    /// Counts of what lies in the partition's pages.
    pub fn stats(&self) -> ColorStats {
        // SAFETY: a heap without an inside has no pool.
        self.with(|inner| if inner.pool.is_null() { ColorStats::default() } else { unsafe { (*inner.pool).stats } })
    }

    /// Counts of what had to go elsewhere.
    pub fn outside(&self) -> Outside {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Outside { allocations: of(&self.outside), bytes: of(&self.outside_bytes) }
    }

    /// Waits until nobody is in a call, and keeps it so.
    pub fn before_fork(&self) {
        // SAFETY: as in `with`.
        unsafe { libc::pthread_mutex_lock(self.lock.get()) };
    }

    /// Lets calls in again, in the parent or in the child.
    pub fn after_fork(&self, child: bool) {
        // SAFETY: as in `with`; the child has one thread, which the lock does not know.
        unsafe {
            if child {
                self.lock.get().write(libc::PTHREAD_MUTEX_INITIALIZER);
            } else {
                libc::pthread_mutex_unlock(self.lock.get());
            }
        }
    }

    fn is_inside(&self, at: *mut u8) -> bool {
        // Who has a pointer saw the heap ready.
        let [start, end] = [0, 1].map(|at: usize| self.area[at].load(Ordering::Relaxed));
        (start..end).contains(&(at as usize))
    }
}

/// Anonymous memory; `None` where the system refuses.
fn map(bytes: usize, may: i32) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, wherever the system puts it.
    let at = unsafe { libc::mmap(null_mut(), bytes, may, flags, -1, 0) };
    (at != libc::MAP_FAILED).then_some(at as usize)
}

const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;

impl Inner {
    fn make(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let picker = map(std::mem::size_of::<Picker>(), READ_WRITE).ok_or("no memory")? as *mut Picker;
        // SAFETY: memory of that size, and of nobody else.
        unsafe { Picker::every_at(picker) };
        self.picker = picker;
        // SAFETY: as above.
        let spec = spec::read(line, unsafe { &mut *picker }).ok_or("LOOKASIDE_COLOR cannot be read")?;
        if spec.shift != 12 {
            return Err("only pages of 4 KiB can be given to a whole program");
        }
        self.shift = spec.shift;
        let page = 1usize << self.shift;
        let area = AREA_BYTES.iter().find_map(|&bytes| map(bytes, libc::PROT_NONE).map(|start| (start, bytes)));
        let (start, bytes) = area.ok_or("no addresses can be set aside")?;
        // A huge page would translate pages of all sets by one entry.
        // SAFETY: the mapping made above. Without huge pages it is refused, and there are none.
        unsafe { libc::madvise(start as *mut c_void, bytes, libc::MADV_NOHUGEPAGE) };
        (self.start, self.end) = (start.next_multiple_of(page), start + bytes);
        (self.next, self.opened) = (self.start, self.start);
        self.pages_left = spec.pages;
        // What the heap knows is in the partition's own first page.
        let (own, _) = self.take(1, 1).ok_or("the partition has no page")?;
        // SAFETY: a page of zeros, opened, of nobody else; it holds a pool for runs of any length.
        unsafe { ColorPool::init(own as *mut ColorPool, MAX_RUN, 0) };
        self.pool = own as *mut ColorPool;
        self.longest_pages = self.longest();
        Ok(())
    }

    /// Pages of the longest run that is worth waiting for, as far as it is looked.
    fn longest(&self) -> u64 {
        // SAFETY: made in `make`.
        let picker = unsafe { &*self.picker };
        let from = (self.next >> self.shift) as u64;
        let (mut longest, mut length) = (0, 0);
        for vpn in from..from + PATIENCE_PAGES {
            length = if picker.fits(vpn) { length + 1 } else { 0 };
            longest = longest.max(length);
        }
        // All pages: as long as the area.
        if longest == PATIENCE_PAGES {
            u64::MAX
        } else {
            longest
        }
    }

    /// Where, or null; and whether it could be in the partition at all.
    fn malloc(&mut self, alignment: usize, bytes: usize) -> (*mut u8, bool) {
        if self.pool.is_null() {
            return (null_mut(), false);
        }
        // SAFETY: made in `make`.
        let pool = unsafe { &mut *self.pool };
        let start = pool.aligned::<false>(alignment, bytes);
        if !start.is_null() {
            return (start, true);
        }
        // As `aligned` asks for it. A new run is the first of its list, so that it is found though the request is
        // rounded up past it.
        let room = if alignment > ALIGNMENT { alignment.saturating_add(MIN_BLOCK) } else { 0 };
        let need = block_size(bytes).map_or(usize::MAX, |size| size.saturating_add(room).saturating_add(RUN_OVERHEAD));
        let pages = (need as u64).div_ceil(1 << self.shift);
        if pages > self.longest_pages {
            pool.stats.refused -= 1;
            return (null_mut(), false);
        }
        let Some((at, got)) = self.take(pages, GROW_PAGES) else { return (null_mut(), true) };
        pool.stats.refused -= 1;
        // SAFETY: pages just opened, of nobody else.
        unsafe { pool.add_run::<false>(at, (got as usize) << self.shift) };
        (pool.aligned::<false>(alignment, bytes), true)
    }

    /// So many contiguous pages of the partition, and up to `most` where they go on, opened: where, and how many.
    fn take(&mut self, pages: u64, most: u64) -> Option<(usize, u64)> {
        // SAFETY: made in `make`.
        let picker = unsafe { &mut *self.picker };
        if pages > self.pages_left {
            return None;
        }
        let (from, to) = ((self.next >> self.shift) as u64, (self.end >> self.shift) as u64);
        let to = to.min(from.saturating_add(pages).saturating_add(PATIENCE_PAGES));
        let first = picker.run(from, to, pages, |_| false)?;
        let most = (to - first).min(pages.max(most)).min(self.pages_left);
        let mut got = pages;
        while got < most && picker.fits(first + got) {
            picker.take(first + got);
            got += 1;
        }
        let (start, end) = ((first << self.shift) as usize, ((first + got) << self.shift) as usize);
        if end > self.opened {
            let upto = (end + OPEN_BYTES).min(self.end);
            // SAFETY: a part of the area.
            if unsafe { libc::mprotect(self.opened as *mut c_void, upto - self.opened, READ_WRITE) } != 0 {
                return None;
            }
            self.opened = upto;
        }
        self.next = end;
        self.pages_left -= got;
        Some((start, got))
    }
}

/// In front of an allocation that lies outside.
#[derive(Clone, Copy)]
struct Front {
    /// That it is one.
    mark: usize,
    map: usize,
    map_bytes: usize,
    bytes: usize,
}

/// The address and a number without a pattern: what is found in front of a pointer that never was one is not this.
fn mark_of(at: usize) -> usize {
    at ^ 0x6c6f_6f6b_6173_6964
}

fn outside(alignment: usize, bytes: usize) -> *mut u8 {
    let alignment = alignment.max(FRONT);
    let whole = bytes.checked_next_multiple_of(FRONT).and_then(|whole| whole.max(FRONT).checked_add(alignment));
    let Some(map_bytes) = whole.filter(|whole| *whole <= isize::MAX as usize) else { return null_mut() };
    let Some(start) = map(map_bytes, READ_WRITE) else { return null_mut() };
    let at = (start + FRONT).next_multiple_of(alignment);
    let front = Front { mark: mark_of(at), map: start, map_bytes, bytes: start + map_bytes - at };
    // SAFETY: in the page in front, in the new mapping.
    unsafe { (at as *mut Front).sub(1).write(front) };
    at as *mut u8
}

/// # Safety
/// The bytes in front of `at` can be read.
unsafe fn front_of(at: *mut u8) -> Result<Front, BadFree> {
    if !(at as usize).is_multiple_of(FRONT) {
        return Err(BadFree::Foreign);
    }
    // SAFETY: the caller's.
    let front = unsafe { *at.cast::<Front>().sub(1) };
    if front.mark == mark_of(at as usize) {
        Ok(front)
    } else {
        Err(BadFree::Foreign)
    }
}

/// # Safety
/// As [`front_of`]; nobody uses it any more.
unsafe fn end_outside(at: *mut u8) -> Result<(), BadFree> {
    // SAFETY: the caller's.
    unsafe {
        let front = front_of(at)?;
        libc::munmap(front.map as *mut c_void, front.map_bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_tried_from_the_largest_to_a_gibibyte() {
        assert_eq!(AREA_BYTES, [4 << 40, 256 << 30, 16 << 30, 1 << 30]);
        assert_eq!((GROW_PAGES << 12, PATIENCE_PAGES << 12, OPEN_BYTES), (1 << 20, 256 << 20, 64 * 1024 * 1024));
    }

    /// What was never an allocation has no front: the mark is of the address.
    #[test]
    fn a_mark_is_of_its_address_alone() {
        let marks = [0, FRONT, 2 * FRONT, 1 << 46].map(mark_of);
        assert!(marks.iter().enumerate().all(|(at, mark)| !marks[..at].contains(mark)), "{marks:x?}");
        assert_eq!(mark_of(0x7f00_1234_5000), 0x6c6f_106b_7347_3964);
        let (at, other) = (outside(1, 100), outside(1, 100));
        // SAFETY: both are allocations; one's mark in front of the other is none of its own, and is put back.
        unsafe {
            let front = at.cast::<Front>().sub(1);
            let own = *front;
            assert_eq!((own.mark, own.bytes), (mark_of(at as usize), own.map + own.map_bytes - at as usize));
            front.write(*other.cast::<Front>().sub(1));
            assert_eq!(end_outside(at), Err(BadFree::Foreign));
            front.write(own);
            assert_eq!((end_outside(at), end_outside(other)), (Ok(()), Ok(())));
        }
    }
}
