//! One visit of a replay, and the accesses that it consists of.

use std::sync::atomic::{AtomicU64, Ordering};

use lookaside_timing::PageVisit;

/// A line is read so many times at the most for one visit: once for each of its words.
const MOST_READS: u32 = 8;
/// Other lines of a page.
const MOST_OTHERS: u8 = 63;

/// A visit: its line, how many other lines follow, and what is done with each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitStep {
    pub line: u32,
    pub others: u8,
    how: How,
}

/// What is done with a line: it is read, written to, or first the one and then the other, and then read some times
/// more. Some caches keep a line longer that is read several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct How(u16);

const STORES: u16 = 1;
/// Before it stores.
const LOADS: u16 = 2;
const LOADS_AND_STORES: u16 = LOADS | STORES;
/// It is another line of the page.
const OTHER: u16 = 4;
/// log2 of one further read.
const AGAIN: u32 = 8;

impl How {
    fn again(self) -> u32 {
        u32::from(self.0 >> AGAIN)
    }
}

impl VisitStep {
    /// Of a visit, whose line has this number.
    pub fn new(visit: &PageVisit, line: u32) -> Self {
        let a_line = visit.accesses / (u32::from(visit.others) + 1);
        let again = (a_line.clamp(1, MOST_READS) - 1) as u16;
        Self { line, others: visit.others, how: How(again << AGAIN | if visit.store { STORES } else { 0 }) }
    }

    /// Both as one, where a store follows a load of the same line: pages that are read and written have two visits
    /// where loads and stores have TLBs of their own.
    pub fn then_stored(self, next: Self) -> Option<Self> {
        let kinds = (self.how.0 & LOADS_AND_STORES, next.how.0 & LOADS_AND_STORES);
        let others = self.others + next.others;
        let both = self.line == next.line && kinds == (0, STORES) && others <= MOST_OTHERS;
        let again = (self.how.again() + next.how.again()).min(MOST_READS - 1) as u16;
        both.then_some(Self { line: self.line, others, how: How(again << AGAIN | LOADS_AND_STORES) })
    }

    /// Each of its lines is read so many times more.
    pub fn again(self) -> u32 {
        self.how.again()
    }

    /// The access to its line, which has this number now.
    pub fn access(self, line: u32) -> LineAccess {
        LineAccess(u64::from(line) | u64::from(self.how.0) << 32)
    }

    /// The access to another line of its page.
    pub fn other_access(self, line: u32) -> LineAccess {
        LineAccess(u64::from(line) | u64::from(self.how.0 | OTHER) << 32)
    }
}

/// What is done with one line of the replay's memory, in one word, since reading it takes time too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineAccess(u64);

/// Makes the accesses, the address of each visit's depending on the word that the last visit before it read. Nobody
/// waits for stores, nor for other lines.
#[inline(never)]
pub fn chained(base: u64, accesses: &[LineAccess]) -> u64 {
    let (mut before, mut link, mut sum) = (0, 0, 0);
    for &access in accesses {
        let how = access.how();
        if how.0 & OTHER != 0 {
            sum |= access.make(base, before);
        } else {
            before = link;
            let word = access.make(base, link);
            if how.0 & LOADS_AND_STORES != STORES {
                link = word;
            }
        }
    }
    link | sum
}

/// Makes the accesses, none depending on another; does `after` after each but those to other lines.
#[inline(always)]
pub fn free(base: u64, accesses: &[LineAccess], after: impl Fn()) -> u64 {
    let mut sum = 0;
    for &access in accesses {
        sum |= access.make(base, 0);
        if access.how().0 & OTHER == 0 {
            after();
        }
    }
    sum
}

impl LineAccess {
    /// The line's number.
    #[cfg(test)]
    pub fn line(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    fn how(self) -> How {
        How((self.0 >> 32) as u16)
    }

    /// Accesses its line; `link`, which is zero, is added to the address. What was read, zero.
    #[inline(always)]
    fn make(self, base: u64, link: u64) -> u64 {
        let place = (base + (u64::from(self.0 as u32) << 6) + link) as *mut u64;
        // SAFETY: `ReplaySlots` gave the line a place in the memory that `base` is the first byte of, and as long as
        // that is there the first words of lines are accessed here alone.
        let word = unsafe { AtomicU64::from_ptr(place) };
        let load = || word.load(Ordering::Relaxed);
        // The frequent ones first: all instructions here stand between the program's accesses.
        match self.how() {
            How(0) => load(),
            How(LOADS_AND_STORES) => {
                let first = load();
                word.store(0, Ordering::Relaxed);
                first
            }
            how => rarer(how, word),
        }
    }
}

/// The first read's word, where there is one.
#[inline(always)]
fn rarer(how: How, word: &AtomicU64) -> u64 {
    let load = || word.load(Ordering::Relaxed);
    let first = if how.0 & LOADS_AND_STORES == STORES { 0 } else { load() };
    if how.0 & STORES != 0 {
        word.store(0, Ordering::Relaxed);
    }
    for _ in 0..how.again() {
        std::hint::black_box(load());
    }
    first
}

#[cfg(test)]
mod tests {
    use lookaside_timing::VisitLine;

    use super::*;

    fn step(line: u32, others: u8, accesses: u32, store: bool) -> VisitStep {
        VisitStep::new(&PageVisit { line: VisitLine::new(0, 0, false), others, accesses, store }, line)
    }

    #[test]
    fn reads_of_a_line_are_those_of_the_visit_spread_over_its_lines() {
        let again = |others, accesses| step(7, others, accesses, false).again();
        assert_eq!([again(0, 1), again(0, 6), again(1, 6), again(3, 6), again(0, 900)], [0, 5, 2, 0, 7]);
    }

    #[test]
    fn a_store_right_after_a_load_of_its_line_is_one_step_with_it() {
        let both = step(7, 1, 4, false).then_stored(step(7, 2, 3, true)).expect("one");
        assert_eq!((both.line, both.others, both.again(), both.how.0 & LOADS_AND_STORES), (7, 3, 1, LOADS_AND_STORES));
        assert_eq!(step(7, 0, 1, false).then_stored(step(8, 0, 1, true)), None);
        assert_eq!(step(7, 0, 1, false).then_stored(step(7, 0, 1, false)), None);
        assert_eq!(step(7, 0, 1, true).then_stored(step(7, 0, 1, true)), None);
        assert_eq!(both.then_stored(step(7, 0, 1, true)), None);
        assert_eq!(step(7, 40, 1, false).then_stored(step(7, 40, 1, true)), None);
    }

    #[test]
    fn lines_are_read_and_written_as_the_step_says() {
        let both = step(2, 0, 1, false).then_stored(step(2, 0, 3, true)).expect("one");
        let visits = [step(0, 1, 1, false), step(1, 0, 1, true), both];
        for stored in [1, 2] {
            // Each line's first word is zero, as in the replay, but for those that are to be written to.
            let mut memory = [7u64; 40];
            [0, 8, 16, 24].iter().for_each(|&word| memory[word] = 0);
            memory[stored * 8] = u64::MAX;
            let base = memory.as_mut_ptr() as u64;
            let accesses = [visits[0].access(0), visits[0].other_access(3), visits[1].access(1), visits[2].access(2)];
            let after = std::cell::Cell::new(0);
            // What was there is read from the line that is read first, and not from that which is only written to.
            let read = free(base, &accesses, || after.set(after.get() + 1));
            assert_eq!((read, after.get()), (if stored == 2 { u64::MAX } else { 0 }, 3));
            assert_eq!(chained(base, &accesses), 0);
            let zeros: Vec<usize> = (0..40).filter(|&at| memory[at] == 0).collect();
            assert_eq!(zeros, [0, 8, 16, 24]);
        }
    }
}
