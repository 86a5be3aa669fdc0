//! What is known of the pages of one space: touched or not, huge or not, and their rows.

use crate::classes::{BASE, BASE_SHIFT, HUGE};
use crate::fasthash::FastMap;
use crate::prefetch::prefetch;

/// No row, region or object.
pub(crate) const NONE: u32 = u32::MAX;

/// log2 of the base pages in a chunk: 512, one x86-64 leaf table's worth.
const CHUNK_BITS: u32 = 9;
const CHUNK_SHIFT: u32 = BASE_SHIFT + CHUNK_BITS;
const CHUNK_PAGES: usize = 1 << CHUNK_BITS;
/// Chunks remembered: 4 GiB of addresses, in 32 KiB.
const MEMO_LEN: usize = 1 << 11;

/// Pages of one space.
#[derive(Debug)]
pub(crate) struct PageStates {
    chunks: Vec<ChunkPages>,
    chunk_of: FastMap<u64, u32>,
    /// Chunks asked for lately, by the low bits of their numbers; none before the first.
    memo: Vec<(u64, u32)>,
    huge_shift: u32,
    ranges: FastMap<u64, HugeRange>,
    /// Distinct pages ever touched, by class.
    pub(crate) ever: [u64; 2],
}

/// State of 512 base pages.
#[derive(Clone, Debug)]
struct ChunkPages {
    number: u64,
    words: [PageBits; CHUNK_PAGES / 64],
    rows: Option<Box<[u32; CHUNK_PAGES]>>,
}

/// State of 64 base pages, a bit each, in one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct PageBits {
    touched: u64,
    ever: u64,
    /// Pages whose row is that of their present life.
    live: u64,
}

/// State of one aligned huge-page range.
#[derive(Clone, Copy, Debug)]
struct HugeRange {
    /// [`BASE`] or [`HUGE`]; `None` = not decided.
    class: Option<usize>,
    touched: bool,
    ever: bool,
    live: bool,
    row: u32,
}

const UNKNOWN: HugeRange = HugeRange { class: None, touched: false, ever: false, live: false, row: NONE };

/// The row slot of a page: its latest row, and whether that is of its present life.
pub(crate) struct RowSlot<'a> {
    pub(crate) row: &'a mut u32,
    live: LiveBit<'a>,
}

enum LiveBit<'a> {
    ChunkPages(&'a mut u64, u64),
    HugeRange(&'a mut bool),
}

impl RowSlot<'_> {
    #[inline]
    pub(crate) fn is_live(&self) -> bool {
        match &self.live {
            LiveBit::ChunkPages(word, bit) => **word & bit != 0,
            LiveBit::HugeRange(live) => **live,
        }
    }

    pub(crate) fn make_live(self) {
        match self.live {
            LiveBit::ChunkPages(word, bit) => *word |= bit,
            LiveBit::HugeRange(live) => *live = true,
        }
    }
}

impl PageStates {
    pub(crate) fn new(huge_shift: u32) -> Self {
        Self {
            chunks: Vec::new(),
            chunk_of: FastMap::default(),
            memo: Vec::new(),
            huge_shift,
            ranges: FastMap::default(),
            ever: [0; 2],
        }
    }

    /// The class that was decided for the range of this address.
    #[inline]
    pub(crate) fn decided(&self, va: u64) -> Option<usize> {
        self.ranges.get(&(va >> self.huge_shift)).and_then(|range| range.class)
    }

    pub(crate) fn decide(&mut self, va: u64, class: usize) {
        self.ranges.entry(va >> self.huge_shift).or_insert(UNKNOWN).class = Some(class);
    }

    /// Sets the touched mark of the base page at `va`, in the chunk of this number.
    #[inline(always)]
    pub(crate) fn touch_base(&mut self, chunk: usize, va: u64) {
        let (word, bit) = bit_of(va);
        let bits = &mut self.chunks[chunk].words[word];
        // A child's pages may be touched that it never accessed.
        if bits.touched & bits.ever & bit == 0 {
            bits.touched |= bit;
            self.ever[BASE] += u64::from(bits.ever & bit == 0);
            bits.ever |= bit;
        }
    }

    /// Touched base pages of the aligned 64 around `va`, a bit each.
    #[inline]
    pub(crate) fn touched_around(&self, chunk: usize, va: u64) -> u64 {
        self.chunks[chunk].words[bit_of(va).0].touched
    }

    /// The row of the base page at `va`, if it is of the page's present life.
    #[inline(always)]
    pub(crate) fn live_row(&self, chunk: usize, va: u64) -> Option<u32> {
        let (word, bit) = bit_of(va);
        let chunk = &self.chunks[chunk];
        if chunk.words[word].live & bit == 0 {
            return None;
        }
        chunk.rows.as_ref().map(|rows| rows[(va >> BASE_SHIFT) as usize % CHUNK_PAGES])
    }

    /// Brings the number of the row of the base page at `va` nearer.
    #[inline(always)]
    pub(crate) fn prefetch_row_number(&self, chunk: usize, va: u64) {
        let chunk = &self.chunks[chunk];
        if let Some(rows) = &chunk.rows {
            prefetch(&rows[..], (va >> BASE_SHIFT) as usize % CHUNK_PAGES);
        }
        prefetch(&chunk.words, bit_of(va).0);
    }

    /// Sets the touched mark of the page of this class at `va`.
    #[inline]
    pub(crate) fn touch(&mut self, va: u64, class: usize) {
        if class == BASE {
            let chunk = self.chunk_at(va);
            self.touch_base(chunk, va);
            return;
        }
        self.ranges.entry(va >> self.huge_shift).or_insert(UNKNOWN).touched = true;
        self.count(va, class);
    }

    /// Counts the page of this class at `va` among those ever touched.
    #[inline]
    pub(crate) fn count(&mut self, va: u64, class: usize) {
        if class == BASE {
            let chunk = self.chunk_at(va);
            let (word, bit) = bit_of(va);
            let ever = &mut self.chunks[chunk].words[word].ever;
            self.ever[BASE] += u64::from(*ever & bit == 0);
            *ever |= bit;
        } else {
            let range = self.ranges.entry(va >> self.huge_shift).or_insert(UNKNOWN);
            self.ever[HUGE] += u64::from(!range.ever);
            range.ever = true;
        }
    }

    /// Is the page of this class at `va` touched?
    #[cfg(test)]
    pub(crate) fn is_touched(&self, va: u64, class: usize) -> bool {
        if class == BASE {
            let (word, bit) = bit_of(va);
            self.chunk_of
                .get(&(va >> CHUNK_SHIFT))
                .is_some_and(|&c| self.chunks[c as usize].words[word].touched & bit != 0)
        } else {
            self.ranges.get(&(va >> self.huge_shift)).is_some_and(|range| range.touched)
        }
    }

    /// The row slot of the page of this class at `va`.
    #[inline]
    pub(crate) fn row_slot(&mut self, va: u64, class: usize) -> RowSlot<'_> {
        if class == BASE {
            let chunk = self.chunk_at(va);
            let chunk = &mut self.chunks[chunk];
            let rows = chunk.rows.get_or_insert_with(|| Box::new([NONE; CHUNK_PAGES]));
            let (word, bit) = bit_of(va);
            let page = (va >> BASE_SHIFT) as usize % CHUNK_PAGES;
            RowSlot { row: &mut rows[page], live: LiveBit::ChunkPages(&mut chunk.words[word].live, bit) }
        } else {
            let range = self.ranges.entry(va >> self.huge_shift).or_insert(UNKNOWN);
            RowSlot { row: &mut range.row, live: LiveBit::HugeRange(&mut range.live) }
        }
    }

    /// Number of the chunk that a base page is in.
    #[inline]
    pub(crate) fn chunk_at(&mut self, va: u64) -> usize {
        let number = va >> CHUNK_SHIFT;
        match self.memo.get(number as usize % MEMO_LEN) {
            Some(&(known, chunk)) if known == number => chunk as usize,
            _ => self.find_chunk(number),
        }
    }

    #[cold]
    fn find_chunk(&mut self, number: u64) -> usize {
        let next = self.chunks.len() as u32;
        let chunk = *self.chunk_of.entry(number).or_insert(next);
        if chunk == next {
            self.chunks.push(ChunkPages { number, words: [PageBits::default(); CHUNK_PAGES / 64], rows: None });
        }
        if self.memo.is_empty() {
            self.memo = vec![(u64::MAX, 0); MEMO_LEN];
        }
        self.memo[number as usize % MEMO_LEN] = (number, chunk);
        chunk as usize
    }

    /// `start` and `end` moved out to the bounds of the huge pages that they cut.
    pub(crate) fn widened(&self, start: u64, end: u64) -> (u64, u64) {
        let size = 1 << self.huge_shift;
        let is_huge = |va: u64| self.decided(va) == Some(HUGE);
        let low = if is_huge(start) { start & !(size - 1) } else { start };
        let high = if is_huge(end - 1) { ((end - 1) | (size - 1)) + 1 } else { end };
        (low, high)
    }

    /// Forgets the pages that overlap the range, their marks and decisions: was any of them touched?
    pub(crate) fn forget(&mut self, start: u64, end: u64) -> bool {
        let mut any = false;
        for chunk in self.chunks_over(start, end) {
            let chunk = &mut self.chunks[chunk];
            for (word, bits) in chunk.words.iter_mut().enumerate() {
                let first = (chunk.number << CHUNK_SHIFT) + ((word as u64) << (BASE_SHIFT + 6));
                let mask = pages_within(first, start, end);
                any |= bits.touched & mask != 0;
                bits.touched &= !mask;
                bits.live &= !mask;
            }
        }
        for number in self.ranges_over(start, end) {
            let Some(range) = self.ranges.get_mut(&number) else { continue };
            let (first, last) = (number << self.huge_shift, (number + 1) << self.huge_shift);
            any |= range.touched;
            if start <= first && last <= end {
                *range = HugeRange { ever: range.ever, row: range.row, ..UNKNOWN };
            } else if range.class == Some(HUGE) {
                *range = HugeRange { ever: range.ever, row: range.row, class: Some(BASE), ..UNKNOWN };
            }
        }
        any
    }

    /// Drops the base decisions of ranges that overlap this one: they are made anew.
    pub(crate) fn undecide_base(&mut self, start: u64, end: u64) {
        for number in self.ranges_over(start, end) {
            if let Some(range) = self.ranges.get_mut(&number).filter(|range| range.class == Some(BASE)) {
                range.class = None;
            }
        }
    }

    /// Forgets everything but what was ever touched.
    pub(crate) fn forget_all(&mut self) {
        for chunk in &mut self.chunks {
            chunk.words.iter_mut().for_each(|bits| (bits.touched, bits.live) = (0, 0));
        }
        for range in self.ranges.values_mut() {
            *range = HugeRange { ever: range.ever, row: range.row, ..UNKNOWN };
        }
    }

    /// Takes over the marks and decisions of a parent; this space's own are dropped.
    pub(crate) fn copy_from(&mut self, parent: &Self) {
        self.forget_all();
        for chunk in &parent.chunks {
            if chunk.words.iter().any(|bits| bits.touched != 0) {
                let own = self.chunk_at(chunk.number << CHUNK_SHIFT);
                for (bits, parents) in self.chunks[own].words.iter_mut().zip(&chunk.words) {
                    bits.touched = parents.touched;
                }
            }
        }
        for (&number, range) in &parent.ranges {
            let own = self.ranges.entry(number).or_insert(UNKNOWN);
            own.class = range.class;
            own.touched = range.touched;
        }
    }

    /// Calls `f` with the row of each live page that lies wholly in the range.
    pub(crate) fn live_rows_within(&self, start: u64, end: u64, mut f: impl FnMut(u32)) {
        for chunk in self.chunks_over(start, end) {
            let chunk = &self.chunks[chunk];
            let Some(rows) = &chunk.rows else { continue };
            for (page, &row) in rows.iter().enumerate() {
                let first = (chunk.number << CHUNK_SHIFT) + ((page as u64) << BASE_SHIFT);
                let live = chunk.words[page / 64].live >> (page % 64) & 1 == 1;
                if live && start <= first && first + (1 << BASE_SHIFT) <= end {
                    f(row);
                }
            }
        }
        for number in self.ranges_over(start, end) {
            let Some(range) = self.ranges.get(&number) else { continue };
            let (first, last) = (number << self.huge_shift, (number + 1) << self.huge_shift);
            if range.live && start <= first && last <= end {
                f(range.row);
            }
        }
    }

    /// Chunks that exist and overlap the range, in no particular order.
    fn chunks_over(&self, start: u64, end: u64) -> Vec<usize> {
        let (first, last) = (start >> CHUNK_SHIFT, (end - 1) >> CHUNK_SHIFT);
        if last - first < self.chunks.len() as u64 {
            (first..=last).filter_map(|number| self.chunk_of.get(&number).map(|&c| c as usize)).collect()
        } else {
            (0..self.chunks.len()).filter(|&c| (first..=last).contains(&self.chunks[c].number)).collect()
        }
    }

    fn ranges_over(&self, start: u64, end: u64) -> Vec<u64> {
        let (first, last) = (start >> self.huge_shift, (end - 1) >> self.huge_shift);
        if last - first < self.ranges.len() as u64 {
            (first..=last).collect()
        } else {
            self.ranges.keys().copied().filter(|number| (first..=last).contains(number)).collect()
        }
    }
}

#[inline]
fn bit_of(va: u64) -> (usize, u64) {
    let page = (va >> BASE_SHIFT) as usize % CHUNK_PAGES;
    (page / 64, 1 << (page % 64))
}

/// Bits of the 64 pages from `first` on that lie in the range (whose ends are page bounds).
fn pages_within(first: u64, start: u64, end: u64) -> u64 {
    let below = |bound: u64| {
        let pages = bound.saturating_sub(first) >> BASE_SHIFT;
        if pages >= 64 {
            u64::MAX
        } else {
            (1 << pages) - 1
        }
    };
    below(end) & !below(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_huge_page_becomes_base_and_untouched() {
        let mut pages = PageStates::new(21);
        pages.decide(0x20_0000, HUGE);
        pages.touch(0x20_0000, HUGE);
        assert_eq!(pages.widened(0x20_1000, 0x20_2000), (0x20_0000, 0x40_0000));
        assert!(pages.forget(0x20_1000, 0x20_2000));
        assert_eq!(pages.decided(0x3f_f000), Some(BASE));
        assert!(!pages.is_touched(0x20_0000, HUGE));
        assert!(!pages.forget(0x20_0000, 0x40_0000));
        assert_eq!(pages.decided(0x20_0000), None);
        assert_eq!(pages.ever, [0, 1]);
    }

    #[test]
    fn forgetting_ends_at_the_range() {
        let mut pages = PageStates::new(21);
        for page in 60..70 {
            pages.touch(page << 12, BASE);
        }
        assert!(pages.forget(62 << 12, 66 << 12));
        let left: Vec<u64> = (60..70).filter(|page| pages.is_touched(page << 12, BASE)).collect();
        assert_eq!(left, [60, 61, 66, 67, 68, 69]);
        assert_eq!(pages.ever[BASE], 10);
        assert!(!pages.forget(62 << 12, 66 << 12));
    }
}
