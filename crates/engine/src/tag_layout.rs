//! How the tag of a page comes from its address: the number of its chunk (`tags.rs`), and that of its entry within it.

use crate::classes::BASE_SHIFT;
use crate::tags::PAGE_BITS;

/// The bit of a tag that tells pages of the array's other size from base pages.
pub(crate) const OTHER_SIZE: u32 = 1 << (PAGE_BITS - 1);

/// The tags of an array's entries of one page size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TagLayout {
    /// Shift that gives the number which the set index is applied to.
    pub(crate) set_shift: u32,
    /// log2 bytes of what an entry covers, and of a page.
    shift: u32,
    pub(crate) page_shift: u32,
    chunk_shift: u32,
    /// Bits of the entry's number within its chunk.
    within: u32,
    other: u32,
    /// Pages of a block less one.
    block: u64,
    /// A page larger than a chunk is named by its first.
    pub(crate) is_beyond_chunks: bool,
}

impl TagLayout {
    /// For entries of pages of `2^page_shift` bytes.
    pub(crate) fn new(page_shift: u32, coalesce_shift: u32, chunk_shift: u32, is_other_size: bool) -> Self {
        // Only entries of base pages stand for a block of them.
        let block_shift = if page_shift == BASE_SHIFT { coalesce_shift } else { 0 };
        let shift = page_shift + block_shift;
        let is_beyond_chunks = shift > chunk_shift;
        Self {
            set_shift: page_shift + coalesce_shift,
            shift,
            page_shift,
            chunk_shift,
            within: if is_beyond_chunks { 0 } else { (1 << (chunk_shift - shift)) - 1 },
            other: if is_other_size { OTHER_SIZE } else { 0 },
            block: (1 << block_shift) - 1,
            is_beyond_chunks,
        }
    }

    /// Does an entry stand for a block of pages?
    #[inline]
    pub(crate) fn coalesces(&self) -> bool {
        self.block > 0
    }

    /// The chunk that the page is named by: that of its first byte.
    pub(crate) fn chunk(&self, va: u64) -> u64 {
        va >> self.shift << self.shift >> self.chunk_shift
    }

    /// The page's tag, its chunk's being given.
    #[inline(always)]
    pub(crate) fn tag(&self, chunk: u32, va: u64) -> u32 {
        chunk | self.other | (va >> self.shift) as u32 & self.within
    }

    /// The page's bit in its block.
    #[inline(always)]
    pub(crate) fn bit(&self, va: u64) -> u64 {
        1 << (va >> self.page_shift & self.block)
    }

    /// Those of the 64 pages around a page that are in its block.
    #[inline(always)]
    pub(crate) fn in_block(&self, pages: u64, va: u64) -> u64 {
        pages >> (va >> self.page_shift & !self.block & 63) & (u64::MAX >> (63 - self.block))
    }

    /// Number of the entry that the page would be in, among those of all sizes: these are told apart by bits that no page
    /// number has.
    pub(crate) fn entry_number(&self, va: u64) -> u64 {
        va >> self.shift | u64::from(self.page_shift) << 58
    }

    /// Does an entry overlap these bytes? It is given by its chunk's first byte and its number there, and the pages that
    /// it covers.
    pub(crate) fn overlaps(&self, (chunk, number): (u64, u32), mask: u64, (start, end): (u64, u64)) -> bool {
        let first = chunk + (u64::from(number) << self.shift);
        let covers = |i: u64| {
            let page = first + (i << self.page_shift);
            mask >> i & 1 == 1 && page < end && start < page + (1 << self.page_shift)
        };
        first < end && start < first + (1 << self.shift) && (0..=self.block).any(covers)
    }
}
