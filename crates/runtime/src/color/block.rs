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

// SAFETY of all below: a `BlockHeader` that is not null is the address of a header in a run of its heap, as each
// function's contract says; whoever calls holds the heap's lock.
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Room for blocks, a header at each of its words, all of which headers may be changed by.
    struct Room([AtomicU64; 64]);

    impl Room {
        fn new() -> Self {
            Self([const { AtomicU64::new(0) }; 64])
        }

        fn block(&self, word: usize) -> BlockHeader {
            BlockHeader::at(self.0[word].as_ptr() as usize)
        }

        fn word(&self, word: usize) -> u64 {
            self.0[word].load(Ordering::Relaxed)
        }

        fn write(&self, word: usize, value: u64) {
            self.0[word].store(value, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_request_gets_the_smallest_block_that_holds_it_and_its_header() {
        let sizes = [(0, 32), (24, 32), (25, 48), (40, 48), (41, 64), (4072, 4080), (4073, 4096)];
        for (bytes, size) in sizes {
            assert_eq!((block_size(bytes), fitting_size(bytes)), (Some(size), size), "{bytes} bytes");
        }
        // 2^48 less the flags' bits, and less a header and what is rounded up.
        let most = (1 << 48) - 16 - 24;
        assert_eq!(block_size(most), Some((1 << 48) - 32));
        assert_eq!([most + 1, 1 << 48, usize::MAX].map(block_size), [None; 3]);
    }

    #[test]
    fn a_header_says_its_size_and_its_flags_each_by_itself() {
        let room = Room::new();
        let at = room.block(0);
        for flags in 0..8 {
            for size in [0, 16, 32, (1 << 48) - 16] {
                room.write(0, size | flags);
                assert_eq!((at.size() as u64, at.is_free(), at.is_first()), (size, flags & 1 != 0, flags & 4 != 0));
                assert_eq!(at.is_plainly_used(), flags & 1 == 0, "{size:#x} {flags}");
                assert_eq!(at.behind().address() as u64, at.address() as u64 + size);
            }
        }
        for beyond in [1 << 3, 1 << 48, 1 << 63] {
            room.write(0, 32 | beyond);
            assert_eq!((at.size(), at.is_plainly_used()), (32, false), "{beyond:#x}");
        }
    }

    #[test]
    fn a_block_begins_8_bytes_before_what_its_caller_has() {
        let block = BlockHeader::at(0x7000_1008);
        assert_eq!((block.address(), block.bytes() as usize), (0x7000_1008, 0x7000_1010));
        assert_eq!(BlockHeader::of(block.bytes()), block);
        assert_eq!([0, 8].map(|address| BlockHeader::at(address).is_null()), [true, false]);
    }

    #[test]
    fn a_run_is_whole_where_its_first_block_ends_it() {
        let room = Room::new();
        let (first, end) = (room.block(1), 1 + 64 / 8);
        for (is_first, size_behind, whole) in
            [(true, 0, true), (true, 32, false), (false, 0, false), (false, 32, false)]
        {
            Seal::<false>(0).set_used(first, 64, is_first);
            room.write(end, size_behind);
            assert_eq!(first.is_whole_run(), whole, "{is_first} {size_behind}");
        }
    }

    fn marks_and_links<const ON: bool>(seal: Seal<ON>) {
        let room = Room::new();
        let (front, block, end) = (room.block(1), room.block(5), room.block(13));
        seal.set_used(front, 32, true);
        seal.set_used(block, 64, false);
        seal.set_used(end, 0, false);
        assert!((front.size(), front.is_first(), block.is_first()) == (32, true, false));
        assert_eq!((front.behind(), block.behind(), block.free_in_front()), (block, end, None));
        // Free: its address at its end, and the mark behind it, once or twice.
        seal.set_free(block, 64, false);
        assert!(block.is_free() && !block.is_first() && !end.is_free());
        assert_eq!((room.word(12), end.free_in_front(), end.size()), (block.address() as u64, Some(block), 0));
        seal.mark(end);
        assert_eq!((end.free_in_front(), end.size(), end.is_first(), end.is_free()), (Some(block), 0, false, false));
        // SAFETY: it is free, so that it has links.
        unsafe {
            block.set_next(front);
            block.set_before(end);
            assert_eq!((block.links(), block.size()), ((front, end), 64));
        }
        // In use again: the one behind loses the mark alone.
        seal.set_used_like(block, 64);
        seal.clear_mark_behind(block);
        assert_eq!((end.free_in_front(), end.size(), end.is_free()), (None, 0, false));
        assert!(!block.is_free() && !block.is_first());
        // Free, the first of its run: the one behind gets the mark, and keeps it when its own size changes.
        seal.set_free(front, 32, true);
        assert!(front.is_free() && front.is_first() && block.free_in_front() == Some(front));
        seal.set_used_like(block, 48);
        assert_eq!((block.size(), block.free_in_front()), (48, Some(front)));
        assert!(!block.is_first() && !block.is_free());
        // The flag of the first is kept too.
        seal.set_used_like(front, 32);
        assert!(front.is_first() && !front.is_free());
        assert!([front, block, end].iter().all(|header| seal.holds(*header)));
        seal.set_stale(block);
        assert!(seal.holds(block) && block.is_free() && block.size() == 0);
    }

    #[test]
    fn marks_and_links_are_the_same_with_seals_and_without() {
        marks_and_links(Seal::<false>(0));
        marks_and_links(Seal::<true>(0xfedc_ba98_7654_3211));
    }

    /// The first by the formula above with Python's integers: `((low ^ address ^ secret) * golden) & M`, and so on.
    #[test]
    fn a_seal_is_of_the_header_its_address_and_the_secret() {
        let of = |low, address, secret| Seal::<true>(secret).of(BlockHeader::at(address), low);
        assert_eq!(of(0x40, 0x7f00_0000_1008, 1), 0xf3c6);
        assert_eq!(of(0x45, 0x7f00_0000_1008, 1), 0x87d2);
        assert_eq!(of(0x40, 0x7f00_0000_1018, 1), 0xaf8b);
        assert_eq!(of(0x40, 0x7f00_0000_1008, 0xfedc_ba98_7654_3211), 0x2348);
        assert_eq!(Seal::<false>(1).of(BlockHeader::at(0x7f00_0000_1008), 0x40), 0);
        // No bit of them is left out.
        let (low, address, secret) = (0x1234_5678_9ab2, 0x7f12_3456_7898, 0xfedc_ba98_7654_3211);
        let seal = of(low, address, secret);
        for bit in 0..48 {
            assert_ne!(of(low ^ 1 << bit, address, secret), seal, "bit {bit} of the header");
            assert_ne!(of(low, address ^ 1 << bit, secret), seal, "bit {bit} of the address");
        }
        assert!((0..64).all(|bit| of(low, address, secret ^ 1 << bit) != seal));
    }

    #[test]
    fn a_header_holds_as_long_as_nobody_writes_over_it() {
        let room = Room::new();
        let block = room.block(3);
        let seal = Seal::<true>(0x0123_4567_89ab_cdef);
        seal.set_used(block, 480, true);
        assert!(seal.holds(block) && (block.size(), block.is_first(), block.is_free()) == (480, true, false));
        assert!(!block.is_plainly_used(), "a sealed header is none");
        let written = room.word(3);
        // Of any other seal none holds.
        for other in (1..1 << 16).step_by(255) {
            room.write(3, written ^ other << SEAL_SHIFT);
            assert!(!seal.holds(block), "{other:#x}");
            assert_eq!((block.size(), block.is_first()), (480, true));
        }
        // Without seals every header with nothing above its size does.
        let plain = Seal::<false>(0);
        assert!(!plain.holds(block));
        plain.set_used(block, 480, true);
        assert_eq!((plain.holds(block), room.word(3)), (true, 480 | FIRST));
        assert_eq!([Seal::<true>::low(!0), Seal::<false>::low(!0)], [(1 << 48) - 1, !0]);
    }
}
