//! Exact LRU stack distances: how many distinct pages were touched since a page was last touched.
//!
//! Each visit takes the next slot of a timeline; a bit marks slots that are their page's last visit. The
//! distance of a visit is the number of marked slots after the page's last one. Counts of marks by groups of
//! slots, one cache line of counts a group of groups, make that a few lines however long the timeline (Bennett
//! and Kruskal 1975, with wide nodes in place of a binary tree). A full timeline is compacted.

/// log2 of the slots of a bit word.
const WORD_SHIFT: u32 = 6;
/// log2 of the counts in a line: of words (bytes), of their lines (two bytes), then of lines of lines (four bytes).
const BYTES_SHIFT: u32 = 6;
const SHORTS_SHIFT: u32 = 5;
const UPPER_SHIFT: u32 = 4;

/// Slots under one count of each line above the words.
const BYTE_COUNT_SHIFT: u32 = WORD_SHIFT;
const SHORT_COUNT_SHIFT: u32 = BYTE_COUNT_SHIFT + BYTES_SHIFT;
const UPPER_COUNT_SHIFT: u32 = SHORT_COUNT_SHIFT + SHORTS_SHIFT;

/// Slots of the first timeline; a multiple of what one line of `shorts` covers.
const FIRST_SLOTS: usize = 1 << UPPER_COUNT_SHIFT;

/// Slots a live page, at least, when a timeline begins: compaction then costs little an access.
const SLOTS_PER_PAGE: usize = 4;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line<T, const N: usize>([T; N]);

/// Last-visit order of pages.
#[derive(Default)]
pub struct Recency {
    /// Last slot of each page, plus one; 0 = never visited.
    last: Vec<u32>,
    /// Page of each slot.
    page: Vec<u32>,
    /// Is the slot its page's last visit?
    marks: Vec<u64>,
    bytes: Vec<Line<u8, 64>>,
    shorts: Vec<Line<u16, 32>>,
    /// Lines of counts of lines below, until one line covers everything.
    upper: Vec<Vec<Line<u32, 16>>>,
    /// The next slot.
    now: usize,
    /// Pages visited.
    live: usize,
}

impl Recency {
    /// Notes a visit; the number of distinct other pages since the page's last visit, `None` at its first.
    #[inline]
    pub fn visit(&mut self, page: u32) -> Option<u32> {
        if self.now == self.page.len() {
            self.compact();
        }
        if page as usize >= self.last.len() {
            self.last.resize(page as usize + 1, 0);
        }
        let slot = self.now;
        let before = std::mem::replace(&mut self.last[page as usize], slot as u32 + 1);
        self.page[slot] = page;
        self.now += 1;
        let distance = match before.checked_sub(1) {
            None => {
                self.live += 1;
                None
            }
            Some(before) => {
                let distance = self.marked_after(before as usize);
                self.unmark(before as usize);
                Some(distance)
            }
        };
        self.mark(slot);
        distance
    }

    /// Marked slots after this one.
    #[inline]
    fn marked_after(&self, slot: usize) -> u32 {
        // Two shifts, as the last slot of a word leaves nothing.
        let mut count = (self.marks[slot >> WORD_SHIFT] >> (slot & 63) >> 1).count_ones();
        let at = slot >> BYTE_COUNT_SHIFT;
        count += sum_after_bytes(&self.bytes[at >> BYTES_SHIFT], at & 63);
        let at = slot >> SHORT_COUNT_SHIFT;
        count += sum_after_shorts(&self.shorts[at >> SHORTS_SHIFT], at & 31);
        let mut at = slot >> UPPER_COUNT_SHIFT;
        for lines in &self.upper {
            count += sum_after(&lines[at >> UPPER_SHIFT], at & 15);
            at >>= UPPER_SHIFT;
        }
        count
    }

    #[inline]
    fn unmark(&mut self, slot: usize) {
        self.marks[slot >> WORD_SHIFT] &= !(1 << (slot & 63));
        let at = slot >> BYTE_COUNT_SHIFT;
        self.bytes[at >> BYTES_SHIFT].0[at & 63] -= 1;
        let at = slot >> SHORT_COUNT_SHIFT;
        self.shorts[at >> SHORTS_SHIFT].0[at & 31] -= 1;
        let mut at = slot >> UPPER_COUNT_SHIFT;
        for lines in &mut self.upper {
            lines[at >> UPPER_SHIFT].0[at & 15] -= 1;
            at >>= UPPER_SHIFT;
        }
    }

    #[inline]
    fn mark(&mut self, slot: usize) {
        self.marks[slot >> WORD_SHIFT] |= 1 << (slot & 63);
        let at = slot >> BYTE_COUNT_SHIFT;
        self.bytes[at >> BYTES_SHIFT].0[at & 63] += 1;
        let at = slot >> SHORT_COUNT_SHIFT;
        self.shorts[at >> SHORTS_SHIFT].0[at & 31] += 1;
        let mut at = slot >> UPPER_COUNT_SHIFT;
        for lines in &mut self.upper {
            lines[at >> UPPER_SHIFT].0[at & 15] += 1;
            at >>= UPPER_SHIFT;
        }
    }

    /// Moves the live pages to the start of a timeline that is long enough for them, in their order.
    #[cold]
    fn compact(&mut self) {
        let marks = std::mem::take(&mut self.marks);
        let mut live = Vec::with_capacity(self.live);
        for (i, mut word) in marks.into_iter().enumerate() {
            while word != 0 {
                live.push(self.page[i << WORD_SHIFT | word.trailing_zeros() as usize]);
                word &= word - 1;
            }
        }
        let slots = (SLOTS_PER_PAGE * live.len()).next_power_of_two().max(FIRST_SLOTS);
        self.marks = vec![0; slots >> WORD_SHIFT];
        self.bytes = vec![Line([0; 64]); slots >> SHORT_COUNT_SHIFT];
        self.shorts = vec![Line([0; 32]); slots >> UPPER_COUNT_SHIFT];
        self.upper.clear();
        let mut counts = slots >> UPPER_COUNT_SHIFT;
        while counts > 1 {
            counts = counts.div_ceil(1 << UPPER_SHIFT);
            self.upper.push(vec![Line([0; 16]); counts]);
        }
        self.page.resize(slots, 0);
        for (slot, &page) in live.iter().enumerate() {
            self.page[slot] = page;
            self.last[page as usize] = slot as u32 + 1;
            self.mark(slot);
        }
        self.now = live.len();
    }
}

/// Sum of the counts after the given one. The loops have fixed lengths, so that they become vector code.
#[inline]
fn sum_after_bytes(line: &Line<u8, 64>, at: usize) -> u32 {
    let mut sum = 0;
    for i in 0..64u8 {
        sum += u32::from(if i > at as u8 { line.0[i as usize] } else { 0 });
    }
    sum
}

#[inline]
fn sum_after_shorts(line: &Line<u16, 32>, at: usize) -> u32 {
    let mut sum = 0;
    for i in 0..32u16 {
        // At most 32 × 4096: more than 16 bits hold.
        sum += u32::from(if i > at as u16 { line.0[i as usize] } else { 0 });
    }
    sum
}

#[inline]
fn sum_after(line: &Line<u32, 16>, at: usize) -> u32 {
    let mut sum = 0;
    for i in 0..16u32 {
        sum += if i > at as u32 { line.0[i as usize] } else { 0 };
    }
    sum
}
