//! Which pages, which lines of them, and what a restore prefetches.

use lookaside_stats::SplitMix64;
use schemars::JsonSchema;
use serde::Serialize;

use super::treatment::{Caches, MovePattern, Treatment};

/// Bytes of a small page.
pub const PAGE_BYTES: u64 = 4096;
/// Bytes of a huge page.
pub const HUGE_BYTES: u64 = 2 << 20;
/// The paper's strides, 4 and 68 KiB: of the first, eight pages share a line of page-table entries (on the Cortex-A7
/// sixteen); of the second, each has one of its own, and they don't meet in few sets (Landsberg 2018, section 4.3).
pub const STRIDES_BYTES: [u64; 2] = [PAGE_BYTES, 17 * PAGE_BYTES];

/// Bytes of a line of the data caches.
pub const LINE_BYTES: u64 = 64;
/// Lines of a page.
const LINES: u64 = PAGE_BYTES / LINE_BYTES;
/// Lines between the three of a page that are used, so that none is the neighbour of another, which some processors
/// bring along.
const LINES_APART: u64 = 21;
/// Entries of 8 bytes in a line of page-table entries, on x86-64 and AArch64.
const ENTRIES_A_LINE: u64 = LINE_BYTES / 8;
/// Pages further, in the same line of entries and another aligned group of four: Zen keeps such a group in one TLB
/// entry, if frames lie side by side.
const OTHER_HALF: u64 = 4;

/// What a line of a page is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// What a restore prefetches.
    Prefetched,
    /// What is accessed first.
    Accessed,
    /// What is accessed then, the translations being there.
    Again,
}

/// What is measured, in several ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct MoveCase {
    /// How pages are accessed.
    pub pattern: MovePattern,
    /// Bytes from one page to the next.
    pub stride_bytes: u64,
    /// What the new CPU's caches hold.
    pub caches: Caches,
    /// How many there are.
    pub pages: u64,
}

impl MoveCase {
    /// All, in the order of patterns, strides, caches, pages; numbers of pages ascending, each once.
    pub fn all(pages: &[u64]) -> Vec<Self> {
        let mut pages = pages.to_vec();
        pages.sort_unstable();
        pages.dedup();
        let mut all = Vec::new();
        for pattern in MovePattern::ALL {
            for stride_bytes in STRIDES_BYTES {
                for caches in Caches::ALL {
                    all.extend(pages.iter().map(|pages| Self { pattern, stride_bytes, caches, pages: *pages }));
                }
            }
        }
        all
    }

    /// Page numbers from the area's begin, ascending.
    pub fn hot(&self) -> impl ExactSizeIterator<Item = u64> + use<> {
        let (step, pages) = (self.stride_bytes / PAGE_BYTES, self.pages as usize);
        (0..pages).map(move |i| i as u64 * step)
    }

    /// Where its `i`-th page is read, in bytes from the area's begin: each page on lines of its own, so that all sets
    /// of the data caches get the same share.
    pub fn at(&self, i: u64, line: Use) -> u64 {
        i * self.stride_bytes + line_of(i, line) * LINE_BYTES
    }

    /// The pages' turns in a chase.
    pub fn order(&self, seed: u64) -> Vec<u64> {
        let mut order: Vec<u64> = (0..self.pages).collect();
        SplitMix64::new(seed).shuffle(&mut order);
        order
    }

    /// What is prefetched, in bytes from the area's begin, ascending; empty where nothing is.
    pub fn restored(&self, way: Treatment) -> Vec<u64> {
        match way {
            Treatment::Direct => (0..self.pages).map(|i| self.at(i, Use::Prefetched)).collect(),
            Treatment::Indirect => {
                let hot: Vec<u64> = self.hot().collect();
                let pages = one_a_line(&hot);
                let line = |i| line_of(i, Use::Prefetched) * LINE_BYTES;
                (0..).zip(pages).map(|(i, page)| page * PAGE_BYTES + line(i)).collect()
            }
            Treatment::Nothing | Treatment::Huge | Treatment::Returns => Vec::new(),
        }
    }
}

/// Of each 64-byte line that holds page-table entries of hot pages (ascending), a page: one that is not hot, so that
/// the line comes into the caches and the translation does not, or the first hot one where its place in the other half
/// of the line is hot too.
pub fn one_a_line(hot: &[u64]) -> Vec<u64> {
    let lines = hot.chunk_by(|a, b| a / ENTRIES_A_LINE == b / ENTRIES_A_LINE);
    let page = |line: &[u64]| {
        let other = line[0] ^ OTHER_HALF;
        if line.contains(&other) {
            line[0]
        } else {
            other
        }
    };
    lines.map(page).collect()
}

/// All pages that any case of at most so many pages accesses or prefetches, each once, ascending.
pub fn used(most: u64) -> Vec<u64> {
    let mut all = Vec::new();
    for stride_bytes in STRIDES_BYTES {
        let case = MoveCase { pattern: MovePattern::Sweep, stride_bytes, caches: Caches::Kept, pages: most };
        let hot: Vec<u64> = case.hot().collect();
        // Whatever the number of pages, what is prefetched is in the other half of a line that has a hot page.
        all.extend(hot.iter().flat_map(|page| [*page, page ^ OTHER_HALF]));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Bytes of addresses that so many pages lie in, whole huge pages.
pub fn span_bytes(most: u64) -> u128 {
    let stride = STRIDES_BYTES.into_iter().max().unwrap_or(PAGE_BYTES);
    let whole_line = u128::from(ENTRIES_A_LINE * PAGE_BYTES);
    (u128::from(most) * u128::from(stride) + whole_line).next_multiple_of(HUGE_BYTES.into())
}

/// Memory for so many pages: small ones, the same addresses in huge ones, their tables and lists.
pub fn bytes_needed(most: u64) -> u128 {
    let span = span_bytes(most);
    // In small pages both strides' and a neighbour of each; a page of tables for each 2 MiB; in lists some words a
    // page.
    let small = u128::from(most) * 4 * u128::from(PAGE_BYTES);
    span + small + span / 512 + u128::from(most) * 128
}

fn line_of(i: u64, line: Use) -> u64 {
    let turn = match line {
        Use::Prefetched => 0,
        Use::Accessed => 1,
        Use::Again => 2,
    };
    (i + turn * LINES_APART) % LINES
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn case(stride_bytes: u64, pages: u64) -> MoveCase {
        MoveCase { pattern: MovePattern::Chase, stride_bytes, caches: Caches::Kept, pages }
    }

    #[test]
    fn cases_come_in_order_each_once() {
        let all = MoveCase::all(&[64, 1, 8, 1]);
        assert_eq!(all.len(), 2 * 2 * 2 * 3);
        assert_eq!(all.iter().take(4).map(|case| case.pages).collect::<Vec<_>>(), [1, 8, 64, 1]);
        assert_eq!(all[0].caches, Caches::Kept);
        assert_eq!(
            (all[3].caches, all[6].stride_bytes, all[12].pattern),
            (Caches::Thrashed, 69632, MovePattern::Chase)
        );
    }

    #[test]
    fn a_line_is_prefetched_by_a_page_that_is_not_hot_where_there_is_one() {
        assert_eq!(one_a_line(&[]), [0; 0]);
        assert_eq!(one_a_line(&[0]), [4]);
        assert_eq!(one_a_line(&[0, 1, 2, 3]), [4]);
        assert_eq!(one_a_line(&[0, 1, 2, 3, 4]), [0]);
        assert_eq!(one_a_line(&(0..20).collect::<Vec<_>>()), [0, 8, 20]);
        // 68 KiB apart: a line each, the page itself never.
        assert_eq!(one_a_line(&[0, 17, 34, 51]), [4, 21, 38, 55]);
    }

    #[test]
    fn direct_prefetches_every_page_and_the_others_nothing() {
        for stride in STRIDES_BYTES {
            let case = case(stride, 100);
            let pages: Vec<u64> = case.restored(Treatment::Direct).iter().map(|at| at / PAGE_BYTES).collect();
            assert_eq!(pages, case.hot().collect::<Vec<_>>());
            for way in [Treatment::Nothing, Treatment::Huge, Treatment::Returns] {
                assert!(case.restored(way).is_empty());
            }
        }
        assert_eq!(case(STRIDES_BYTES[0], 1536).restored(Treatment::Indirect).len(), 1536 / 8);
        assert_eq!(case(STRIDES_BYTES[1], 1536).restored(Treatment::Indirect).len(), 1536);
    }

    #[test]
    fn memory_is_reckoned_without_overflow() {
        assert!(bytes_needed(1536) > u128::from(1536 * STRIDES_BYTES[1]));
        assert!(bytes_needed(1536) < 160 << 20);
        assert!(bytes_needed(u64::MAX) > u128::from(u64::MAX));
    }

    proptest! {
        /// Against the definition: the lines of the hot pages, each once; a hot page only where the whole line's other
        /// half is no use.
        #[test]
        fn each_line_has_one_prefetch(hot in proptest::collection::btree_set(0u64..300, 0..80)) {
            let hot: Vec<u64> = hot.into_iter().collect();
            let lines: BTreeSet<u64> = hot.iter().map(|page| page / 8).collect();
            let chosen = one_a_line(&hot);
            prop_assert_eq!(chosen.iter().map(|page| page / 8).collect::<Vec<_>>(), lines.into_iter().collect::<Vec<_>>());
            for page in chosen {
                let first = hot.iter().find(|other| *other / 8 == page / 8).copied();
                prop_assert!(!hot.contains(&page) || Some(page) == first);
            }
        }

        #[test]
        fn the_lines_of_a_page_are_three_and_no_neighbours(stride in 0usize..2, i in 0u64..5000) {
            let case = case(STRIDES_BYTES[stride], 5000);
            let at = [Use::Prefetched, Use::Accessed, Use::Again].map(|line| case.at(i, line));
            for (n, a) in at.iter().enumerate() {
                prop_assert_eq!(a / PAGE_BYTES, i * case.stride_bytes / PAGE_BYTES);
                for b in &at[n + 1..] {
                    prop_assert!(a / (2 * LINE_BYTES) != b / (2 * LINE_BYTES));
                }
            }
        }

        #[test]
        fn an_order_has_each_page_once_and_is_its_seeds(pages in 1u64..300, seed: u64) {
            let order = case(PAGE_BYTES, pages).order(seed);
            prop_assert_eq!(&order, &case(PAGE_BYTES, pages).order(seed));
            let sorted: BTreeSet<u64> = order.iter().copied().collect();
            prop_assert_eq!(sorted, (0..pages).collect::<BTreeSet<_>>());
        }

        /// Whatever is accessed or prefetched has a frame.
        #[test]
        fn all_that_is_used_is_among_the_used(most in 1u64..200, fewer in 1u64..200) {
            let used: BTreeSet<u64> = used(most).into_iter().collect();
            for stride in STRIDES_BYTES {
                let case = case(stride, fewer.min(most));
                let prefetched = case.restored(Treatment::Indirect).into_iter().map(|at| at / PAGE_BYTES);
                for page in case.hot().chain(prefetched) {
                    prop_assert!(used.contains(&page), "{}", page);
                }
            }
            let last = used.last().copied().unwrap_or_default();
            prop_assert!(u128::from((last + 1) * PAGE_BYTES) <= span_bytes(most));
        }
    }
}
