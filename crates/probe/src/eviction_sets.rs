//! Chooses pages by the TLB sets that they map to, where the geometry is known: pages that conflict, and pages that do
//! not.

use std::collections::{BTreeMap, BTreeSet};

use lookaside_machine::{IndexFn, Machine, PageSize, Serves};
use lookaside_stats::SplitMix64;

use crate::gf2;
use crate::tlb::geometry::Geometry;

/// Bits of a window of page numbers that pages come from: near enough that their upper page-table entries, which some
/// cores keep in the second-level TLB (Zen), are few.
const WINDOW_BITS: u32 = 14;
/// Foreign pages for each way that put a page out of its set, whatever the policy but random, walked once.
const FLOOD: usize = 4;
/// Tries to find a page outside the sets to be avoided.
const TRIES: usize = 64;

/// The data-TLB levels of a machine for 4 KiB loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlbLevels {
    /// First level.
    pub first: Geometry,
    /// Second level, if there is one.
    pub second: Option<Geometry>,
}

impl TlbLevels {
    /// Those that a machine description names for loads of 4 KiB pages: the largest array of each level.
    ///
    /// # Errors
    /// It has no first level for them.
    pub fn of(machine: &Machine) -> Result<Self, String> {
        let level = |number: u32| {
            let arrays = machine.tlbs.iter().filter(|tlb| {
                tlb.level == number && tlb.serves.contains(&Serves::Load) && tlb.page_sizes.contains(&PageSize::K4)
            });
            arrays.max_by_key(|tlb| tlb.entries).map(|tlb| {
                let sets = tlb.sets();
                let masks = match &tlb.index {
                    IndexFn::Linear => (0..sets.trailing_zeros()).map(|bit| 1 << bit).collect(),
                    IndexFn::Masks(masks) => masks.clone(),
                };
                Geometry { entries: tlb.entries, ways: tlb.ways.count(tlb.entries), sets, masks }
            })
        };
        match level(1) {
            Some(first) => Ok(Self { first, second: level(2) }),
            None => Err(format!("{}: no first-level TLB for loads of 4K pages", machine.name)),
        }
    }

    /// The level whose misses walk.
    pub fn last(&self) -> &Geometry {
        self.second.as_ref().unwrap_or(&self.first)
    }
}

/// Chooses page numbers of so many bits.
#[derive(Clone, Debug)]
pub(crate) struct PagePicker<'a> {
    pub levels: &'a TlbLevels,
    bits: u32,
    pub rng: SplitMix64,
    /// The window that pages come from at present.
    start: u64,
}

impl<'a> PagePicker<'a> {
    pub(crate) fn new(levels: &'a TlbLevels, bits: u32, seed: u64) -> Self {
        let mut picker = Self { levels, bits, rng: SplitMix64::new(seed), start: 0 };
        picker.move_window();
        picker
    }

    /// From now on pages of another window.
    pub(crate) fn move_window(&mut self) {
        self.start = self.rng.next_u64() & mask(self.bits);
    }

    fn page(&mut self) -> u64 {
        self.start ^ (self.rng.next_u64() & mask(self.bits.min(WINDOW_BITS)))
    }

    /// The set of a page in the last level.
    pub(crate) fn set(&self, page: u64) -> u64 {
        gf2::apply(&self.levels.last().masks, page)
    }

    /// `count` pages, each in another set of the last level while there are sets.
    pub(crate) fn in_different_sets(&mut self, count: usize) -> Vec<u64> {
        let (mut pages, mut used) = (Vec::new(), BTreeSet::new());
        while pages.len() < count {
            let mut page = self.page();
            for _ in 0..TRIES {
                if !used.contains(&self.set(page)) && !pages.contains(&page) {
                    break;
                }
                page = self.page();
            }
            used.insert(self.set(page));
            pages.push(page);
        }
        pages
    }

    /// `count` different pages of this set of a level (fewer if it has no more).
    pub(crate) fn of_set(&mut self, level: &Geometry, set: u64, count: usize, but: &[u64]) -> Vec<u64> {
        let page = self.page();
        let page = page ^ flips(&level.masks, gf2::apply(&level.masks, page) ^ set);
        let mut kernel = gf2::near_first(&gf2::null_space(&level.masks, self.bits));
        // Twice as many as needed, so that they are at random too.
        kernel.truncate(((2 * (count + but.len())).next_power_of_two().ilog2() as usize).max(1));
        let mut pages: Vec<u64> = gf2::span(&kernel).into_iter().map(|v| v ^ page).collect();
        pages.retain(|page| !but.contains(page));
        self.rng.shuffle(&mut pages);
        pages.truncate(count);
        pages
    }

    /// Pages that put `pages` out of the last level: of their sets, several for each way.
    pub(crate) fn evicting(&mut self, pages: &[u64]) -> Vec<u64> {
        let level = self.levels.last();
        let sets: BTreeSet<u64> = pages.iter().map(|&page| self.set(page)).collect();
        let count = FLOOD * level.ways as usize;
        let mut all: Vec<u64> = sets.into_iter().flat_map(|set| self.of_set(level, set, count, pages)).collect();
        self.rng.shuffle(&mut all);
        all
    }

    /// Pages that put everything out of the first level, and keep out of these sets of the second as far as possible.
    pub(crate) fn flooding_first_level(&mut self, avoid: &BTreeSet<u64>) -> Vec<u64> {
        let first = &self.levels.first;
        let mut pages = Vec::new();
        let mut load: BTreeMap<u64, u32> = BTreeMap::new();
        for set in 0..u64::from(first.sets) {
            for _ in 0..FLOOD * first.ways as usize {
                let mut best: Option<(u32, u64)> = None;
                for _ in 0..TRIES {
                    let page = self.page();
                    let page = page ^ flips(&first.masks, gf2::apply(&first.masks, page) ^ set);
                    let set = self.set(page);
                    let crowd = load.get(&set).copied().unwrap_or(0);
                    let weight = if avoid.contains(&set) { u32::MAX } else { crowd };
                    if best.is_none_or(|(least, _)| weight < least) {
                        best = Some((weight, page));
                    }
                    // A page or two of a set is nobody's harm.
                    if weight < 2 {
                        break;
                    }
                }
                if let Some((_, page)) = best {
                    *load.entry(self.set(page)).or_default() += 1;
                    pages.push(page);
                }
            }
        }
        self.rng.shuffle(&mut pages);
        pages
    }
}

fn mask(bits: u32) -> u64 {
    (1u64 << bits.min(63)) - 1
}

/// A vector whose image under the masks is `change`.
fn flips(masks: &[u64], change: u64) -> u64 {
    // Gaussian elimination on (mask, which rows were added): each reduced row's lowest bit flips that row alone.
    let mut rows: Vec<(u64, u64)> = Vec::new();
    for (i, &mask) in masks.iter().enumerate() {
        let mut row = (mask, 1u64 << i);
        for &(other, from) in &rows {
            if row.0 & lowest(other) != 0 {
                row = (row.0 ^ other, row.1 ^ from);
            }
        }
        if row.0 == 0 {
            continue;
        }
        for other in &mut rows {
            if other.0 & lowest(row.0) != 0 {
                *other = (other.0 ^ row.0, other.1 ^ row.1);
            }
        }
        rows.push(row);
    }
    rows.iter().filter(|(_, from)| (from & change).count_ones() % 2 == 1).fold(0, |v, (mask, _)| v ^ lowest(*mask))
}

fn lowest(row: u64) -> u64 {
    row & row.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn geometry(masks: Vec<u64>, ways: u32) -> Geometry {
        let sets = 1 << masks.len();
        Geometry { entries: sets * ways, ways, sets, masks }
    }

    proptest! {
        #[test]
        fn flips_lead_to_any_set(rows in proptest::collection::vec(1u64..4096, 1..8), change in 0u64..256) {
            prop_assume!(gf2::reduce(&rows).len() == rows.len());
            let change = change & ((1 << rows.len()) - 1);
            prop_assert_eq!(gf2::apply(&rows, flips(&rows, change)), change);
        }
    }

    #[test]
    fn pages_lie_where_they_were_asked_for() {
        let first = geometry(vec![1, 2, 4], 4);
        let second = geometry(vec![0x11, 0x22, 0x44, 0x88, 0x300], 6);
        let levels = TlbLevels { first: first.clone(), second: Some(second.clone()) };
        let mut picker = PagePicker::new(&levels, 24, 3);
        let pages = picker.in_different_sets(8);
        let sets: BTreeSet<u64> = pages.iter().map(|&page| picker.set(page)).collect();
        assert_eq!(sets.len(), 8);
        let others = picker.evicting(&pages);
        assert_eq!(others.len(), 8 * FLOOD * 6);
        assert!(others.iter().all(|&page| sets.contains(&picker.set(page)) && !pages.contains(&page)));
        let flood = picker.flooding_first_level(&sets);
        assert!(flood.iter().all(|&page| !sets.contains(&picker.set(page))));
        for set in 0..8 {
            let count = flood.iter().filter(|&&page| gf2::apply(&first.masks, page) == set).count();
            assert!(count >= 16, "{count} pages in set {set}");
        }
    }
}
