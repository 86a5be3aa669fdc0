//! A block of a coloured heap: a header of 8 bytes, then what the caller has, or, while it is free, links.
//!
//! ```text
//! header  size | FIRST | PREVIOUS_FREE | FREE, and above bit 48 a seal
//! +8      caller's bytes; free: next of the list, one before in the list, …, and in the last 8 bytes its own address
//! ```
//!
//! Blocks lie one behind another in a *run* of contiguous pages: its first 8 bytes are not used, so that callers' bytes
//! are aligned to 16, and its last 8 are the header of a block of size 0 that is never free. Everything about a block
//! stands in its run's pages.

/// Bytes of a block that the caller does not have.
pub(crate) const HEADER: usize = 8;
/// Smallest block: header, two links, its address.
pub(crate) const MIN_BLOCK: usize = 32;
/// Bytes of a run that no block has.
pub(crate) const RUN_OVERHEAD: usize = 16;
/// Callers' bytes begin at multiples of this, as malloc's do on 64-bit systems.
pub(crate) const ALIGNMENT: usize = 16;

const FREE: u64 = 1;
const PREVIOUS_FREE: u64 = 2;
const FIRST: u64 = 4;
/// Bits of the size: below 2^48, as user addresses are, without those of the flags.
const SIZE: u64 = (1 << 48) - 16;
const SEAL_SHIFT: u32 = 48;

/// Address of a block's header; 0 = none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct BlockHeader(usize);

/// The size of the block that `bytes` of a caller need; `None` where it overflows what a block can be.
pub(crate) fn block_size(bytes: usize) -> Option<usize> {
    (bytes as u64 <= SIZE - (HEADER + ALIGNMENT) as u64).then(|| fitting_size(bytes))
}

/// The same for `bytes` that some run of pages can hold.
#[inline]
pub(crate) fn fitting_size(bytes: usize) -> usize {
    ((bytes + HEADER + ALIGNMENT - 1) & !(ALIGNMENT - 1)).max(MIN_BLOCK)
}

// SAFETY of all below: a `BlockHeader` that is not null is the address of a header in a run of its heap, as each function's
// contract says; whoever calls holds the heap's lock.
impl BlockHeader {
    pub(crate) fn at(address: usize) -> Self {
        Self(address)
    }

    /// The block whose caller's bytes begin here.
    pub(crate) fn of(bytes: *mut u8) -> Self {
        Self((bytes as usize).wrapping_sub(HEADER))
    }

    pub(crate) fn is_null(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn address(self) -> usize {
        self.0
    }

    pub(crate) fn bytes(self) -> *mut u8 {
        (self.0 + HEADER) as *mut u8
    }

    fn word(self, n: usize) -> *mut u64 {
        (self.0 + 8 * n) as *mut u64
    }

    fn header(self) -> u64 {
        // SAFETY: the address of a header.
        unsafe { *self.word(0) }
    }

    pub(crate) fn size(self) -> usize {
        (self.header() & SIZE) as usize
    }

    /// An unsealed header of a block in use: only its size and the other flags are set.
    #[inline]
    pub(crate) fn is_plainly_used(self) -> bool {
        self.header() & !(SIZE | FIRST | PREVIOUS_FREE) == 0
    }

    pub(crate) fn is_free(self) -> bool {
        self.header() & FREE != 0
    }

    pub(crate) fn is_first(self) -> bool {
        self.header() & FIRST != 0
    }

    /// The block behind this one, or the end of its run (size 0).
    pub(crate) fn behind(self) -> Self {
        Self(self.0 + self.size())
    }

    /// The block in front, if it is free.
    pub(crate) fn free_in_front(self) -> Option<Self> {
        // SAFETY: where the one in front is free its last 8 bytes are its address.
        (self.header() & PREVIOUS_FREE != 0).then(|| unsafe { Self(*self.word(0).sub(1) as usize) })
    }

    /// The whole run is this one block.
    pub(crate) fn is_whole_run(self) -> bool {
        self.is_first() && self.behind().size() == 0
    }

    /// # Safety
    /// The block is free.
    pub(crate) unsafe fn links(self) -> (Self, Self) {
        // SAFETY: a free block has links.
        unsafe { (Self(*self.word(1) as usize), Self(*self.word(2) as usize)) }
    }

    /// # Safety
    /// As [`BlockHeader::links`].
    pub(crate) unsafe fn set_next(self, next: Self) {
        // SAFETY: the caller's.
        unsafe { *self.word(1) = next.0 as u64 };
    }

    /// # Safety
    /// As [`BlockHeader::links`].
    pub(crate) unsafe fn set_before(self, before: Self) {
        // SAFETY: the caller's.
        unsafe { *self.word(2) = before.0 as u64 };
    }
}

/// How headers are written: with a seal (`ON`), or without.
///
/// A seal is 16 bits of a product of the header, its address and a secret: what is written over a header, or was never
/// one, passes once in 65,536 times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seal<const ON: bool>(pub(crate) u64);

impl<const ON: bool> Seal<ON> {
    #[inline]
    fn of(self, block: BlockHeader, low: u64) -> u64 {
        if !ON {
            return 0;
        }
        // An odd constant without a pattern: 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming
        // 3, 6.4).
        let mixed = (low ^ block.0 as u64 ^ self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> SEAL_SHIFT
    }

    /// A header without its seal.
    #[inline]
    fn low(header: u64) -> u64 {
        if ON {
            header & (u64::MAX >> 16)
        } else {
            header
        }
    }

    /// Whether a header is one, as far as that shows.
    pub(crate) fn holds(self, block: BlockHeader) -> bool {
        let word = block.header();
        word >> SEAL_SHIFT == self.of(block, word & (u64::MAX >> 16))
    }

    fn write(self, block: BlockHeader, low: u64) {
        // SAFETY: the address of a header (see above).
        unsafe { *block.word(0) = low | self.of(block, low) << SEAL_SHIFT };
    }

    /// Begins a block that is in use.
    #[inline]
    pub(crate) fn set_used(self, block: BlockHeader, size: usize, first: bool) {
        self.write(block, size as u64 | if first { FIRST } else { 0 });
    }

    /// Gives a block in use, or one that comes into use, another size; what was in front of it stays as it is.
    pub(crate) fn set_used_like(self, block: BlockHeader, size: usize) {
        self.write(block, size as u64 | block.header() & (FIRST | PREVIOUS_FREE));
    }

    /// Makes a block free: its address at its end, the mark in the one behind it. What is in front is in use.
    #[inline]
    pub(crate) fn set_free(self, block: BlockHeader, size: usize, first: bool) {
        self.set_free_still(block, size, first);
        self.mark(BlockHeader(block.0 + size));
    }

    /// Marks the block behind one that is free.
    #[inline]
    pub(crate) fn mark(self, behind: BlockHeader) {
        self.write(behind, Self::low(behind.header()) | PREVIOUS_FREE);
    }

    /// As [`Seal::set_free`] where what is in front of the one behind was free already, so that this has its mark.
    #[inline]
    pub(crate) fn set_free_still(self, block: BlockHeader, size: usize, first: bool) {
        self.write(block, size as u64 | FREE | if first { FIRST } else { 0 });
        // SAFETY: the last 8 bytes of the block.
        unsafe { *((block.0 + size - 8) as *mut u64) = block.0 as u64 };
    }

    /// Takes the mark from the block behind one that is in use now.
    pub(crate) fn clear_mark_behind(self, block: BlockHeader) {
        let behind = block.behind();
        self.write(behind, Self::low(behind.header()) & !PREVIOUS_FREE);
    }

    /// Marks the header of a block that is joined to one in front, so that it is not freed twice. (One that is joined
    /// to what is in front while it is free has the mark.)
    pub(crate) fn set_stale(self, block: BlockHeader) {
        self.write(block, FREE);
    }
}
