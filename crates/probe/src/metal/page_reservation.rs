//! Pages at chosen virtual page numbers: a large address reservation, backed by frames where a chain touches it.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use lookaside_host::Process;
#[cfg(target_os = "linux")]
use lookaside_host::ReferencedBits;
use lookaside_machine::PageSize;

use crate::metal::MetalError;

/// log2 of the address space reserved, least what suffices for a few thousand pages, last what is wanted. Half of the
/// 47 bits that a program has on x86-64 stays free for the rest of it.
const RESERVE_BITS: std::ops::RangeInclusive<u32> = 26..=45;
/// First try. It has to be small for qemu-user's sake; less is tried where a limit (`ulimit -v`) forbids it.
const FIRST_BITS: u32 = 31;
/// No larger reservation is tried than twice one that took longer. A kernel takes microseconds, whatever the size;
/// qemu-user takes time and gigabytes of memory in proportion to the size.
const QUICK: Duration = Duration::from_millis(20);
/// Bytes of a data-cache line; 64 on every x86-64 and nearly every AArch64 core. Only spreads accesses.
const LINE_BYTES: u64 = 64;
/// Lines of a 4 KiB page, over which accesses are spread so that they use all sets of the first-level data cache.
const LINES: u64 = 4096 / LINE_BYTES;
/// Bytes of a small page.
const SMALL: u64 = 4096;
/// Bytes of a link.
const WORD: u64 = 8;

/// An aligned reservation of address space.
#[derive(Debug)]
pub(crate) struct PageReservation {
    base: u64,
    bits: u32,
    size: PageSize,
    touched: HashSet<u64>,
    max_pages: usize,
}

impl PageReservation {
    /// Reserves; no page is backed yet. At most `max_bytes` of pages are backed at any time.
    pub(crate) fn new(size: PageSize, max_bytes: u64) -> Result<Self, MetalError> {
        Self::within(size, max_bytes, *RESERVE_BITS.end())
    }

    /// The same with at most `2^most_bits` bytes of addresses.
    pub(crate) fn within(size: PageSize, max_bytes: u64, most_bits: u32) -> Result<Self, MetalError> {
        let failed = |bits: u32, e: std::io::Error| {
            let pages = 1 << (bits - size.shift());
            MetalError::Memory { pages, size, reason: e.to_string() }
        };
        let mut bits = FIRST_BITS.min(most_bits);
        let (mut base, mut took) = loop {
            match reserve_timed(bits, size) {
                Ok(reserved) => break reserved,
                Err(e) if bits <= *RESERVE_BITS.start() => return Err(failed(bits, e)),
                Err(_) => bits -= 1,
            }
        };
        while took < QUICK && bits < most_bits {
            let Ok((larger, larger_took)) = reserve_timed(bits + 1, size) else { break };
            release(base, bits);
            (base, took, bits) = (larger, larger_took, bits + 1);
        }
        let max_pages = (max_bytes / size.bytes()) as usize;
        Ok(Self { base, bits, size, touched: HashSet::new(), max_pages })
    }

    /// Bits of a page number that may be chosen.
    pub(crate) fn page_bits(&self) -> u32 {
        self.bits - self.size.shift()
    }

    /// Most pages in a chain.
    pub(crate) fn max_pages(&self) -> usize {
        self.max_pages
    }

    /// Address of the first byte.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Bytes of addresses.
    pub(crate) fn bytes(&self) -> u64 {
        1 << self.bits
    }

    /// Backs a page with a frame of its own by writing a zero. The caller counts how many.
    pub(crate) fn zero(&mut self, page: u64) -> Result<(), MetalError> {
        if page >> self.page_bits() != 0 {
            let reason = "beyond the reservation".to_string();
            return Err(MetalError::Memory { pages: 1, size: self.size, reason });
        }
        // SAFETY: the page lies in our reservation.
        unsafe { ((self.base + (page << self.size.shift())) as *mut u64).write_volatile(0) };
        self.touched.insert(page);
        Ok(())
    }

    /// Backs the whole huge page around each of these small ones, which come sorted, so that its small pages have
    /// neighbouring frames; each small page has an entry of its own nevertheless. The caller counts how many.
    pub(crate) fn zero_split(&mut self, huge_pages: &[u64]) -> Result<(), MetalError> {
        let failed = |reason: String| MetalError::Memory { pages: huge_pages.len(), size: PageSize::M2, reason };
        let huge = PageSize::M2.bytes();
        if huge_pages.last().is_some_and(|last| last >> (self.bits.saturating_sub(PageSize::M2.shift())) != 0) {
            return Err(failed("beyond the reservation".into()));
        }
        for run in huge_pages.chunk_by(|a, b| a + 1 == *b) {
            let (start, bytes) = (self.base + run[0] * huge, run.len() as u64 * huge);
            self.touched.insert(run[0] * (huge / self.size.bytes()));
            // SAFETY: advice about a part of our reservation, which makes it a mapping of its own.
            unsafe { libc::madvise(start as *mut libc::c_void, bytes as usize, libc::MADV_HUGEPAGE) };
            for at in (start..start + bytes).step_by(huge as usize) {
                // SAFETY: within our reservation.
                unsafe { (at as *mut u64).write_volatile(0) };
            }
            let whole = huge_bytes_at(start).is_some_and(|backed| backed >= bytes);
            for at in (start..start + bytes).step_by(huge as usize) {
                split(at).map_err(|e| failed(e.to_string()))?;
            }
            // SAFETY: as above. Lest the system put the pages together again.
            unsafe { libc::madvise(start as *mut libc::c_void, bytes as usize, libc::MADV_NOHUGEPAGE) };
            if !whole {
                // SAFETY: our own range, whose contents nobody needs.
                unsafe { libc::madvise(start as *mut libc::c_void, bytes as usize, libc::MADV_DONTNEED) };
                return Err(failed("the system has no huge pages for it".into()));
            }
        }
        Ok(())
    }

    /// Whether a page of this size is what the system backs a touch with.
    pub(crate) fn has_pages_of_its_size(&self) -> bool {
        let at = self.base as *mut u8;
        // SAFETY: the first byte of our reservation, readable and writable.
        unsafe { at.write_volatile(1) };
        let backed = huge_bytes_at(self.base).is_some_and(|bytes| bytes >= self.size.bytes());
        // SAFETY: our own range, whose contents nobody needs.
        unsafe { libc::madvise(at.cast(), self.size.bytes() as usize, libc::MADV_DONTNEED) };
        backed
    }

    /// Links the pages to a circular chain; gives the address of its first link.
    pub(crate) fn link(&mut self, pages: &[u64]) -> Result<u64, MetalError> {
        if pages.is_empty() || pages.len() > self.max_pages {
            let reason = format!("a chain has 1 to {} pages", self.max_pages);
            return Err(MetalError::Memory { pages: pages.len(), size: self.size, reason });
        }
        self.make_room(pages.len())?;
        // The i-th distinct page is read at line i (mod 64), so that all sets of a virtually indexed first-level data
        // cache get the same share; a page that comes again is read at its next word, then at its next line.
        let mut uses: HashMap<u64, (u64, u64)> = HashMap::with_capacity(pages.len());
        let mut places = Vec::with_capacity(pages.len());
        for &page in pages {
            let page = page & ((1 << self.page_bits()) - 1);
            let next = uses.len() as u64;
            let (order, times) = uses.entry(page).or_insert((next, 0));
            let words = LINE_BYTES / WORD;
            let line = (*order + *times / words) % LINES;
            let place = self.part(*order) + line * LINE_BYTES + *times % words * WORD;
            places.push(self.base + (page << self.size.shift()) + place);
            *times += 1;
            self.touched.insert(page);
        }
        for (i, &place) in places.iter().enumerate() {
            let next = places[(i + 1) % places.len()];
            // SAFETY: the page number was cut to the reservation, the offset lies in the page and is aligned.
            unsafe { (place as *mut u64).write_volatile(next) };
        }
        Ok(places[0])
    }

    /// Gives all pages back if `pages` more might be too many.
    pub(crate) fn make_room(&mut self, pages: usize) -> Result<(), MetalError> {
        if pages > self.max_pages {
            let reason = format!("at most {} at a time", self.max_pages);
            return Err(MetalError::Memory { pages, size: self.size, reason });
        }
        if self.touched.len() + pages > self.max_pages {
            self.drop_all()?;
        }
        Ok(())
    }

    /// Gives all pages back if there are others than these. To look at the bits of pages the system touches their
    /// tables, each of which may take an entry of the TLBs: where the host backs them with small pages, whatever the
    /// guest maps them with. (Seen on Zen 5: beside 1000 others, 50 of 300 pages were put out.)
    #[cfg(target_os = "linux")]
    pub(crate) fn keep_only(&mut self, pages: &[u64]) -> Result<(), MetalError> {
        let mask = (1 << self.page_bits()) - 1;
        let pages: HashSet<u64> = pages.iter().map(|page| page & mask).collect();
        match self.touched.is_subset(&pages) {
            true => Ok(()),
            false => self.drop_all(),
        }
    }

    /// Pages whose bit is set.
    #[cfg(target_os = "linux")]
    pub(crate) fn referenced(&self, bits: &mut ReferencedBits) -> Result<u64, MetalError> {
        let ours = self.base..self.base + self.bytes();
        let seen = bits.look(ours.end).map_err(|error| MetalError::Cannot(error.to_string()))?.iter();
        let bytes = seen.filter(|(at, _)| ours.start <= at.start && at.end <= ours.end).map(|(_, bytes)| bytes);
        Ok(bytes.sum::<u64>() / self.size.bytes())
    }

    /// The address of a word (modulo a line's) in a line (modulo a page's) of a page. In a huge page `order` chooses
    /// one of its small ones.
    pub(crate) fn word(&self, page: u64, order: u64, line: u64, word: u64) -> u64 {
        let page = page & ((1 << self.page_bits()) - 1);
        let in_page = line % LINES * LINE_BYTES + word % (LINE_BYTES / WORD) * WORD;
        self.base + (page << self.size.shift()) + self.part(order) + in_page
    }

    /// Where the small page of a huge one begins whose lines the `order`-th page is read at: with line `order` of that,
    /// all sets of a physically indexed cache get the same share.
    fn part(&self, order: u64) -> u64 {
        (order / LINES * SMALL) & (self.size.bytes() - 1)
    }

    /// A page that is about to be written to.
    pub(crate) fn touch(&mut self, page: u64) {
        self.touched.insert(page & ((1 << self.page_bits()) - 1));
    }

    /// An address in a page, which is backed from now on until there is no room for more.
    pub(crate) fn present(&mut self, page: u64) -> Result<u64, MetalError> {
        self.make_room(1)?;
        self.touch(page);
        // Pages of one TLB set must not meet in one set of the data cache: a line by a hash of all bits (Knuth's
        // multiplicative, with 2^64 over the golden ratio).
        let line = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let at = self.word(page, line, line, 0);
        // SAFETY: a word of our own page.
        unsafe { (at as *mut u64).write_volatile(0) };
        Ok(at)
    }

    /// Address of so many pages in a row, each with a frame of its own from now on until there is no room for more.
    /// Should they be given back meanwhile, they read as zeros.
    pub(crate) fn row(&mut self, first: u64, pages: usize) -> Result<u64, MetalError> {
        self.make_room(pages)?;
        let last = first.checked_add(pages as u64);
        if last.is_none_or(|last| last > 1 << self.page_bits()) {
            let reason = "beyond the reservation".to_string();
            return Err(MetalError::Memory { pages, size: self.size, reason });
        }
        for page in first..first + pages as u64 {
            self.zero(page)?;
            self.touch(page);
        }
        Ok(self.base + (first << self.size.shift()))
    }

    /// Gives all pages and their tables back.
    pub(crate) fn drop_all(&mut self) -> Result<(), MetalError> {
        if self.touched.is_empty() {
            return Ok(());
        }
        self.touched.clear();
        map_at(self.base, self.bits, self.size).map_err(|e| MetalError::Memory {
            pages: 0,
            size: self.size,
            reason: e.to_string(),
        })
    }
}

impl Drop for PageReservation {
    fn drop(&mut self) {
        release(self.base, self.bits);
    }
}

/// A reservation and how long it took: the shorter of two times where the first was long, since the thread may have
/// waited for its CPU.
fn reserve_timed(bits: u32, size: PageSize) -> std::io::Result<(u64, Duration)> {
    let start = Instant::now();
    let base = reserve(bits, size)?;
    let took = start.elapsed();
    if took < QUICK {
        return Ok((base, took));
    }
    release(base, bits);
    let start = Instant::now();
    Ok((reserve(bits, size)?, start.elapsed()))
}

/// Gives a reservation back; nobody uses links into it any more.
fn release(base: u64, bits: u32) {
    // SAFETY: a mapping that `reserve` made, of that size.
    unsafe { libc::munmap(base as *mut libc::c_void, 1 << bits) };
}

/// Reserves `2^bits` bytes at a multiple of their number.
fn reserve(bits: u32, size: PageSize) -> std::io::Result<u64> {
    let bytes = 1usize << bits;
    // Twice as much surely holds an aligned half, which is then mapped anew.
    // SAFETY: a new mapping wherever the system likes.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), 2 * bytes, libc::PROT_NONE, FLAGS, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    let base = (at as u64).next_multiple_of(1 << bits);
    let (before, after) = ((base - at as u64) as usize, bytes - (base - at as u64) as usize);
    // SAFETY: parts of the mapping just made, on both sides of the half that stays.
    unsafe {
        if before > 0 {
            libc::munmap(at, before);
        }
        if after > 0 {
            libc::munmap((base as usize + bytes) as *mut libc::c_void, after);
        }
    }
    map_at(base, bits, size).inspect_err(|_| {
        // SAFETY: the half that is left.
        unsafe { libc::munmap(base as *mut libc::c_void, bytes) };
    })?;
    Ok(base)
}

/// Takes address space, not memory.
const FLAGS: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

/// Maps a reservation (anew).
fn map_at(base: u64, bits: u32, size: PageSize) -> std::io::Result<()> {
    let bytes = 1usize << bits;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: only over our own reservation.
    let at = unsafe { libc::mmap(base as *mut libc::c_void, bytes, access, FLAGS | libc::MAP_FIXED, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    let advice = if size > PageSize::K4 { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
    // A kernel without transparent huge pages refuses, and then gives small pages: what is wanted, or found out by
    // `has_pages_of_its_size`.
    // A forked child (`Peer`) has no use for the pages, and copying on write would change their frames.
    // SAFETY: advice about our own range.
    unsafe {
        libc::madvise(at, bytes, advice);
        libc::madvise(at, bytes, libc::MADV_DONTFORK);
    }
    Ok(())
}

/// Makes the kernel map a huge page of ours by small ones, frames staying as they are: its first small page gets other
/// rights for a moment, in which nobody may use it.
pub(crate) fn split(huge_page: u64) -> std::io::Result<()> {
    for rights in [libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE] {
        // SAFETY: rights of a page of our own; the contents stay.
        if unsafe { libc::mprotect(huge_page as *mut libc::c_void, SMALL as usize, rights) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Bytes of transparent huge pages in the area that begins at `base`.
pub(crate) fn huge_bytes_at(base: u64) -> Option<u64> {
    let areas = Process::own().smaps().ok()?;
    areas.iter().find(|area| area.start == base).map(|area| area.anonymous_huge_bytes)
}
