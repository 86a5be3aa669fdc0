//! Exact LRU stack distances: how many distinct pages were touched since a page was last touched.
//!
//! Each visit takes the next slot of a timeline; a bit marks slots that are their page's last visit. The
//! distance of a visit is the number of marked slots after the page's last one: all of them but those up to it. Marks
//! are counted by groups of slots, groups by wider groups: a tree as in Bennett and Kruskal (1975), with a
//! cache line a node. A line's counts are of the marks *before* each of its groups, so that a question reads one number
//! a line, clearing a mark adds to whole vectors, and setting the latest one changes no count at all: a
//! group's count is set when the timeline reaches it. A full timeline is compacted.

use crate::prefetch::prefetch;

/// log2 of the slots of a bit word.
const WORD_SHIFT: u32 = 6;
/// log2 of the words of a line of `near`: its counts, of at most 2048 marks, are two bytes each.
const NEAR_SHIFT: u32 = 5;
/// log2 of the lines that a line of `far` counts, at each of its levels.
const FAR_SHIFT: u32 = 4;

/// log2 of the slots of a line of `near`.
const NEAR_LINE_SHIFT: u32 = WORD_SHIFT + NEAR_SHIFT;

/// Slots of the first timeline: what one line of `far` covers.
const FIRST_SLOTS: usize = 1 << (NEAR_LINE_SHIFT + FAR_SHIFT);

/// Slots a live page, at least, when a timeline begins: compaction then costs little an access.
const SLOTS_PER_PAGE: usize = 4;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct CountLine<T, const N: usize>([T; N]);

/// Last-visit order of pages.
#[derive(Default)]
pub struct Recency {
    /// Last slot of each page, plus one; 0 = never visited.
    last: Vec<u32>,
    /// Page of each slot.
    page: Vec<u32>,
    /// Is the slot its page's last visit?
    marks: Vec<u64>,
    /// Marks in earlier words of the same line, by word; not yet said where the timeline has not been.
    near: Vec<CountLine<u16, 32>>,
    /// Marks in earlier lines below the same line, by line below; level by level until one line covers everything.
    far: Vec<Vec<CountLine<u32, 16>>>,
    /// The next slot.
    now: usize,
    /// Pages visited.
    live: u32,
}

impl Recency {
    /// Notes a visit; the number of distinct other pages since the page's last visit, `None` at its first.
    #[inline(always)]
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
                let distance = self.live - self.marked_up_to(before as usize);
                self.unmark(before as usize);
                Some(distance)
            }
        };
        self.mark(slot);
        distance
    }

    /// A visit to this page, or its being taken out, is near.
    #[inline(always)]
    pub fn prefetch(&self, page: u32) {
        prefetch(&self.last, page as usize);
    }

    /// Takes a page out; the number of pages visited since its last visit, `None` if it is not in.
    pub fn take(&mut self, page: u32) -> Option<u32> {
        let before = self.last.get_mut(page as usize).map_or(0, std::mem::take).checked_sub(1)?;
        let distance = self.live - self.marked_up_to(before as usize);
        self.unmark(before as usize);
        self.live -= 1;
        Some(distance)
    }

    /// Marked slots up to this one, it included.
    #[inline(always)]
    fn marked_up_to(&self, slot: usize) -> u32 {
        let word = slot >> WORD_SHIFT;
        // Two is one bit beyond the slot's; beyond the last slot of a word there is none.
        let up_to = (2u64 << (slot & 63)).wrapping_sub(1);
        let mut count = (self.marks[word] & up_to).count_ones();
        count += u32::from(self.near[word >> NEAR_SHIFT].0[word & 31]);
        let mut at = word >> NEAR_SHIFT;
        for lines in &self.far {
            count += lines[at >> FAR_SHIFT].0[at & 15];
            at >>= FAR_SHIFT;
        }
        count
    }

    #[inline(always)]
    fn unmark(&mut self, slot: usize) {
        let word = slot >> WORD_SHIFT;
        self.marks[word] &= !(1 << (slot & 63));
        // Ones in all bits are minus one.
        add(&mut self.near[word >> NEAR_SHIFT].0, shorts_after(word & 31), u16::wrapping_add);
        let mut at = word >> NEAR_SHIFT;
        for lines in &mut self.far {
            add(&mut lines[at >> FAR_SHIFT].0, words_after(at & 15), u32::wrapping_add);
            at >>= FAR_SHIFT;
        }
    }

    /// Marks the next slot of the timeline.
    #[inline(always)]
    fn mark(&mut self, slot: usize) {
        if slot & 63 == 0 && slot > 0 {
            self.begin_word(slot >> WORD_SHIFT);
        }
        self.marks[slot >> WORD_SHIFT] |= 1 << (slot & 63);
    }

    /// Sets the counts of the groups that begin with this word, which is not the first.
    #[inline(never)]
    fn begin_word(&mut self, word: usize) {
        let last = self.marks[word - 1].count_ones();
        let line = word >> NEAR_SHIFT;
        if word & 31 > 0 {
            let counts = &mut self.near[line].0;
            counts[word & 31] = counts[(word & 31) - 1].wrapping_add(last as u16);
            return;
        }
        self.near[line].0[0] = 0;
        // Marks of the whole line before, then of the wider ones that end there.
        let mut before = u32::from(self.near[line - 1].0[31]) + last;
        let mut at = line;
        for lines in &mut self.far {
            let line = at >> FAR_SHIFT;
            if at & 15 > 0 {
                let counts = &mut lines[line].0;
                counts[at & 15] = counts[(at & 15) - 1].wrapping_add(before);
                return;
            }
            lines[line].0[0] = 0;
            before = before.wrapping_add(lines[line - 1].0[15]);
            at = line;
        }
    }

    /// Moves the live pages to the start of a timeline that is long enough for them, in their order.
    #[cold]
    #[inline(never)]
    fn compact(&mut self) {
        let marks = std::mem::take(&mut self.marks);
        let mut live = Vec::with_capacity(self.live as usize);
        for (i, mut word) in marks.into_iter().enumerate() {
            while word != 0 {
                live.push(self.page[i << WORD_SHIFT | word.trailing_zeros() as usize]);
                word &= word - 1;
            }
        }
        let slots = (SLOTS_PER_PAGE * live.len()).next_power_of_two().max(FIRST_SLOTS);
        self.marks = vec![0; slots >> WORD_SHIFT];
        self.near = vec![CountLine([0; 32]); slots >> NEAR_LINE_SHIFT];
        self.far.clear();
        let mut lines = slots >> NEAR_LINE_SHIFT;
        while lines > 1 {
            lines = lines.div_ceil(1 << FAR_SHIFT);
            self.far.push(vec![CountLine([0; 16]); lines]);
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

/// Of fixed length, and read as a whole before it is written, so that it becomes vector code.
#[inline(always)]
fn add<T: Copy, const N: usize>(counts: &mut [T; N], masks: &[T; N], sum: impl Fn(T, T) -> T) {
    let (old, masks) = (*counts, *masks);
    *counts = std::array::from_fn(|i| sum(old[i], masks[i]));
}

/// As many zeros as a line is long, then ones: a window has ones after `at` if it begins as far before the ones.
static SHORTS: [u16; 64] = {
    let mut table = [0; 64];
    let mut i = 32;
    while i < 64 {
        table[i] = u16::MAX;
        i += 1;
    }
    table
};
static WORDS: [u32; 32] = {
    let mut table = [0; 32];
    let mut i = 16;
    while i < 32 {
        table[i] = u32::MAX;
        i += 1;
    }
    table
};

#[inline(always)]
fn shorts_after(at: usize) -> &'static [u16; 32] {
    SHORTS[31 - (at & 31)..].first_chunk().unwrap_or(&[0; 32])
}

#[inline(always)]
fn words_after(at: usize) -> &'static [u32; 16] {
    WORDS[15 - (at & 15)..].first_chunk().unwrap_or(&[0; 16])
}
