//! The blocks of one colour: malloc and free in constant time.
//!
//! Nothing here looks at more than: the colour's bins, the block itself, the two blocks beside it, and up to two blocks
//! of each list that one of these leaves or enters; and, where no list is sure to have a block, the first 16 of up to
//! three lists. So the longest call is a constant, whatever was allocated before (`realloc` that must move copies).

use super::bins::Bins;
use super::block::{block_size, fitting_size, BlockHeader, Seal, ALIGNMENT, HEADER, MIN_BLOCK, RUN_OVERHEAD};

/// What is wrong with a pointer that is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFree {
    /// It points to no memory of this heap.
    #[error("it points to no memory of this heap")]
    Foreign,
    /// It is not where an allocation begins, or what lies before it was written over.
    #[error("it is not the start of an allocation, or what lies before it was written over")]
    NoStart,
    /// It was freed before.
    #[error("it was freed before")]
    FreedBefore,
    /// It is of another colour than was said.
    #[error("it is of colour {0}")]
    Color(u32),
    /// Bytes behind the allocation's end were written over.
    #[error("bytes behind its end were written over")]
    Overrun,
}

/// Counts of a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ColorStats {
    /// Bytes of its pages.
    pub capacity_bytes: u64,
    /// Bytes of blocks in use, headers included.
    pub used_bytes: u64,
    /// The most that these ever were.
    pub peak_bytes: u64,
    /// Allocations in use.
    pub allocations: u64,
    /// Allocations that were refused.
    pub refused: u64,
    /// Bytes of the largest allocation ever asked for, refused ones included.
    pub largest_asked_bytes: u64,
}

/// A colour's blocks. Its bins follow it in memory.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ColorPool {
    pub(crate) stats: ColorStats,
    secret: u64,
    /// Ends of its memory: what is outside is nobody's of this pool.
    low: usize,
    high: usize,
    /// Bytes of its longest run.
    longest_run: usize,
    /// Bytes of the largest allocation in it, beside a header.
    largest: usize,
    bins: Bins,
}

impl ColorPool {
    /// Bytes that a pool takes for runs of up to `run_bytes`.
    pub(crate) const fn bytes(run_bytes: usize) -> usize {
        std::mem::size_of::<Self>() - std::mem::size_of::<Bins>() + Bins::bytes(run_bytes)
    }

    /// Makes a pool without memory. `secret` is what headers are sealed with, if they are: all calls of a pool have
    /// the same `ON`.
    ///
    /// # Safety
    /// `at` points to [`ColorPool::bytes`] writable bytes that are nobody else's, aligned to 8, and stay so.
    pub(crate) unsafe fn init(at: *mut Self, run_bytes: usize, secret: u64) {
        // SAFETY: the caller's.
        unsafe {
            (*at).stats = ColorStats::default();
            (*at).secret = secret;
            (*at).low = usize::MAX;
            (*at).high = 0;
            (*at).longest_run = 0;
            (*at).largest = 0;
            Bins::init(std::ptr::addr_of_mut!((*at).bins), run_bytes);
        }
    }

    #[inline]
    fn seal<const ON: bool>(&self) -> Seal<ON> {
        Seal(self.secret)
    }

    /// Adds a run of pages as one free block.
    ///
    /// # Safety
    /// The bytes are writable, nobody else's, and stay so; `start` and `bytes` are multiples of a page, `bytes` at most
    /// what the pool was made for.
    pub(crate) unsafe fn add_run<const ON: bool>(&mut self, start: usize, bytes: usize) {
        let block = BlockHeader::at(start + ALIGNMENT - HEADER);
        let size = bytes - RUN_OVERHEAD;
        self.seal::<ON>().set_used(BlockHeader::at(start + bytes - HEADER), 0, false);
        self.seal::<ON>().set_free(block, size, true);
        // SAFETY: the block is free and new.
        unsafe { self.bins.insert(block, size) };
        self.low = self.low.min(start);
        self.high = self.high.max(start + bytes);
        self.longest_run = self.longest_run.max(bytes);
        self.largest = self.longest_run - (RUN_OVERHEAD + HEADER);
        self.stats.capacity_bytes += bytes as u64;
    }

    /// Bytes of the longest run of pages.
    pub(crate) fn longest_run(&self) -> usize {
        self.longest_run
    }

    /// Bytes of the largest allocation beside a header that may ever succeed.
    #[inline]
    pub(crate) fn largest(&self) -> usize {
        self.largest
    }

    /// Memory for `bytes` bytes, at most [`ColorPool::largest`]; null where there is no block that is sure to hold
    /// them.
    pub(crate) fn malloc<const ON: bool>(&mut self, bytes: usize) -> *mut u8 {
        debug_assert!(bytes <= self.largest);
        let size = fitting_size(bytes);
        let Some(block) = self.bins.take(size) else { return self.malloc_among::<ON>(size, bytes) };
        self.use_block::<ON>(block, size, bytes);
        block.bytes()
    }

    /// The same where no list is sure to have a block.
    #[cold]
    fn malloc_among<const ON: bool>(&mut self, size: usize, bytes: usize) -> *mut u8 {
        let Some(block) = self.bins.take_among(size) else { return self.refuse(bytes) };
        self.use_block::<ON>(block, size, bytes);
        block.bytes()
    }

    /// As [`ColorPool::malloc`], at a multiple of `alignment`, a power of two.
    pub(crate) fn aligned<const ON: bool>(&mut self, alignment: usize, bytes: usize) -> *mut u8 {
        if alignment <= ALIGNMENT {
            return if bytes <= self.largest { self.malloc::<ON>(bytes) } else { self.refuse(bytes) };
        }
        // Room to move forward by less than `alignment`, and by a smallest block more where a gap must become one.
        let sizes =
            block_size(bytes).and_then(|size| Some((size, size.checked_add(alignment)?.checked_add(MIN_BLOCK)?)));
        let Some((size, most)) = sizes else { return self.refuse(bytes) };
        let found = self.bins.take(most).or_else(|| self.bins.take_among(most));
        let Some(block) = found else { return self.refuse(bytes) };
        let start = block.bytes() as usize;
        let mut aligned = start.next_multiple_of(alignment);
        if aligned != start && aligned - start < MIN_BLOCK {
            aligned = (start + MIN_BLOCK).next_multiple_of(alignment);
        }
        let gap = aligned - start;
        let (whole, first) = (block.size(), block.is_first());
        let kept = if gap == 0 {
            block
        } else {
            let kept = BlockHeader::at(block.address() + gap);
            self.seal::<ON>().set_used(kept, whole - gap, false);
            self.seal::<ON>().set_free(block, gap, first);
            // SAFETY: free, and in no list.
            unsafe { self.bins.insert(block, gap) };
            kept
        };
        self.use_block::<ON>(kept, size, bytes);
        kept.bytes()
    }

    /// A free run of at least `bytes`, whole, with nothing of the heap's in it.
    pub(crate) fn take_run<const ON: bool>(&mut self, bytes: usize) -> *mut u8 {
        let found = self.bins.find_run(bytes - RUN_OVERHEAD, self.longest_run - RUN_OVERHEAD);
        let Some(block) = found else { return self.refuse(bytes) };
        // SAFETY: it is in a list.
        unsafe { self.bins.remove(block, block.size()) };
        self.count_in(block.size() + RUN_OVERHEAD, bytes);
        (block.address() + HEADER - ALIGNMENT) as *mut u8
    }

    /// Takes back what [`ColorPool::take_run`] gave.
    ///
    /// # Safety
    /// That run, of `bytes` bytes, which nobody uses any more.
    pub(crate) unsafe fn give_run<const ON: bool>(&mut self, start: *mut u8, bytes: usize) {
        self.count_out(bytes);
        self.stats.capacity_bytes -= bytes as u64;
        // SAFETY: the caller's.
        unsafe { self.add_run::<ON>(start as usize, bytes) };
    }

    /// Looks whether a pointer is one that may be given back.
    ///
    /// # Errors
    /// What is wrong, as far as headers show it; without seals only what no header can be.
    pub(crate) fn check_pointer<const ON: bool>(&self, bytes: *mut u8) -> Result<BlockHeader, BadFree> {
        let address = bytes as usize;
        if address < self.low || address >= self.high {
            return Err(BadFree::Foreign);
        }
        if !address.is_multiple_of(ALIGNMENT) {
            return Err(BadFree::NoStart);
        }
        let block = BlockHeader::of(bytes);
        if !self.seal::<ON>().holds(block) {
            return Err(BadFree::NoStart);
        }
        if block.is_free() {
            return Err(BadFree::FreedBefore);
        }
        let size = block.size();
        if size < MIN_BLOCK || size > self.high - block.address() {
            return Err(BadFree::NoStart);
        }
        if ON && !self.seal::<ON>().holds(block.behind()) {
            return Err(BadFree::Overrun);
        }
        Ok(block)
    }

    /// Whether [`ColorPool::check_pointer`] finds nothing wrong, where headers have no seals, in as few steps as it
    /// takes.
    #[inline]
    fn is_plain(&self, bytes: *mut u8) -> bool {
        let address = bytes as usize;
        if address < self.low || address >= self.high || !address.is_multiple_of(ALIGNMENT) {
            return false;
        }
        let block = BlockHeader::of(bytes);
        block.is_plainly_used() && block.size() >= MIN_BLOCK && block.size() <= self.high - block.address()
    }

    /// Gives memory back.
    ///
    /// # Errors
    /// As [`ColorPool::check_pointer`]; nothing is changed then.
    ///
    /// # Safety
    /// `bytes` came from here and nobody uses it any more, or it lies outside of this pool's memory, or headers have
    /// seals.
    pub(crate) unsafe fn free<const ON: bool>(&mut self, bytes: *mut u8) -> Result<(), BadFree> {
        if ON || !self.is_plain(bytes) {
            self.check_pointer::<ON>(bytes)?;
        }
        let block = BlockHeader::of(bytes);
        self.count_out(block.size());
        self.release::<ON>(block);
        Ok(())
    }

    /// Bytes that the caller may use.
    ///
    /// # Errors
    /// As [`ColorPool::check_pointer`].
    pub(crate) fn usable<const ON: bool>(&self, bytes: *mut u8) -> Result<usize, BadFree> {
        Ok(self.check_pointer::<ON>(bytes)?.size() - HEADER)
    }

    /// Changes a block's size where it stands; `false`: it can't be, and nothing was changed.
    ///
    /// # Errors
    /// As [`ColorPool::check_pointer`].
    pub(crate) fn resize<const ON: bool>(&mut self, bytes: *mut u8, new_bytes: usize) -> Result<bool, BadFree> {
        let block = self.check_pointer::<ON>(bytes)?;
        let Some(size) = block_size(new_bytes) else { return Ok(false) };
        let old = block.size();
        let behind = block.behind();
        if size > old {
            if !behind.is_free() || behind.size() == 0 || old + behind.size() < size {
                return Ok(false);
            }
            // SAFETY: a free block is in its list.
            unsafe { self.bins.remove(behind, behind.size()) };
            let whole = old + behind.size();
            self.seal::<ON>().set_used_like(block, whole);
            self.seal::<ON>().clear_mark_behind(block);
        }
        self.split::<ON>(block, size);
        self.stats.used_bytes = self.stats.used_bytes - old as u64 + block.size() as u64;
        self.stats.peak_bytes = self.stats.peak_bytes.max(self.stats.used_bytes);
        Ok(true)
    }

    /// Invariants that can be seen in constant time: bins and their first blocks agree, counts are possible.
    pub(crate) fn sound(&mut self) -> bool {
        let stats = &self.stats;
        self.bins.agree()
            && stats.used_bytes <= stats.peak_bytes
            && stats.peak_bytes <= stats.capacity_bytes
            && (stats.allocations == 0) == (stats.used_bytes == 0)
            && stats.allocations.saturating_mul(MIN_BLOCK as u64) <= stats.used_bytes
    }

    /// Goes through the blocks of a run, in the order of addresses: caller's first byte, bytes, in use or not. `false`:
    /// a header is wrong, and no block behind it was looked at.
    pub(crate) fn walk<const ON: bool>(
        &self,
        start: usize,
        bytes: usize,
        each: &mut dyn FnMut(*mut u8, usize, bool),
    ) -> bool {
        let end = BlockHeader::at(start + bytes - HEADER);
        let mut block = BlockHeader::at(start + ALIGNMENT - HEADER);
        let mut free_before = false;
        while block != end {
            let size = block.size();
            let fits = size >= MIN_BLOCK && size <= end.address() - block.address();
            let marked = block.free_in_front().is_some();
            // Two free blocks side by side would have been joined.
            if !fits || !self.seal::<ON>().holds(block) || marked != free_before || (marked && block.is_free()) {
                return false;
            }
            each(block.bytes(), size - HEADER, !block.is_free());
            free_before = block.is_free();
            block = block.behind();
        }
        block.size() == 0 && (block.free_in_front().is_some() == free_before)
    }

    pub(crate) fn refuse(&mut self, bytes: usize) -> *mut u8 {
        self.stats.refused += 1;
        self.stats.largest_asked_bytes = self.stats.largest_asked_bytes.max(bytes as u64);
        std::ptr::null_mut()
    }

    #[inline]
    fn count_in(&mut self, size: usize, bytes: usize) {
        let stats = &mut self.stats;
        stats.used_bytes += size as u64;
        // Seldom: a branch, which is foreseen, in place of two stores.
        if stats.used_bytes > stats.peak_bytes {
            stats.peak_bytes = stats.used_bytes;
        }
        stats.allocations += 1;
        if bytes as u64 > stats.largest_asked_bytes {
            stats.largest_asked_bytes = bytes as u64;
        }
    }

    #[inline]
    fn count_out(&mut self, size: usize) {
        self.stats.used_bytes -= size as u64;
        self.stats.allocations -= 1;
    }

    /// Hands out a free block that was taken from its list: what is beyond `size` stays free, if a block can begin
    /// there.
    #[inline(always)] // into malloc, where it is most of the call
    fn use_block<const ON: bool>(&mut self, block: BlockHeader, size: usize, bytes: usize) {
        let whole = block.size();
        let rest = whole - size;
        if rest < MIN_BLOCK {
            self.seal::<ON>().set_used_like(block, whole);
            self.seal::<ON>().clear_mark_behind(block);
            self.count_in(whole, bytes);
            return;
        }
        self.seal::<ON>().set_used_like(block, size);
        let left = BlockHeader::at(block.address() + size);
        self.seal::<ON>().set_free_still(left, rest, false);
        // SAFETY: free, and in no list.
        unsafe { self.bins.insert(left, rest) };
        self.count_in(size, bytes);
    }

    /// Frees the end of a block in use, if a block can begin there.
    fn split<const ON: bool>(&mut self, block: BlockHeader, size: usize) {
        let rest = block.size() - size;
        if rest < MIN_BLOCK {
            return;
        }
        self.seal::<ON>().set_used_like(block, size);
        let left = BlockHeader::at(block.address() + size);
        self.seal::<ON>().set_used(left, rest, false);
        self.release::<ON>(left);
    }

    /// Makes a block free and joins it with what is free beside it.
    #[inline(always)] // into free, where it is most of the call
    fn release<const ON: bool>(&mut self, block: BlockHeader) {
        let mut size = block.size();
        let behind = block.behind();
        if behind.is_free() {
            let more = behind.size();
            // SAFETY: a free block is in its list.
            unsafe { self.bins.remove(behind, more) };
            // What is behind that has the mark.
            size += more;
        } else {
            self.seal::<ON>().mark(behind);
        }
        let Some(before) = block.free_in_front() else {
            self.seal::<ON>().set_free_still(block, size, block.is_first());
            // SAFETY: free, and in no list.
            return unsafe { self.bins.insert(block, size) };
        };
        self.seal::<ON>().set_stale(block);
        let had = before.size();
        self.seal::<ON>().set_free_still(before, had + size, before.is_first());
        // SAFETY: a free block is in its list.
        unsafe { self.bins.grown(before, had, had + size) };
    }
}

#[cfg(test)]
mod tests;
