//! The page that each set of a first-level array was asked for last, within one run of accesses.
//!
//! Another access to that page is a hit, and changes nothing under any replacement policy: it is the
//! set's last touched way already. So it needs no lookup, only counting. Exact, because whatever
//! touches a set between two accesses of a run is an access too, and takes the set's place here.

use crate::plan::{Front, Plan, CLASSES, KINDS};

/// Recent pages and what was counted on them.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    pages: Vec<RecentPage>,
    hits: [[u64; CLASSES]; KINDS],
    /// Huge-page ranges looked at last, by their low bits: number and class.
    classes: Vec<(u64, usize)>,
    /// Page that a failed [`Self::hit`] asked for.
    asked: u64,
}

/// One recent page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecentPage {
    /// Page number of the entry's size, and class; `u64::MAX` = none.
    tag: u64,
    /// First byte of the entry's page in physical memory, where data caches are asked.
    pub(crate) frame: u64,
    /// Its row, with `Detail::Rows`.
    pub(crate) row: u32,
}

const NO_PAGE: RecentPage = RecentPage { tag: u64::MAX, frame: 0, row: 0 };

/// Ranges whose class is remembered: 128 MiB of 2 MiB ranges in 1 KiB.
const RANGES: usize = 64;

impl Recent {
    /// A run begins: others may have used the arrays meanwhile.
    pub(crate) fn begin(&mut self, plan: &Plan) {
        self.pages.clear();
        self.pages.resize(plan.front_sets, NO_PAGE);
        self.classes.clear();
        self.classes.resize(RANGES, (u64::MAX, 0));
    }

    /// The class of the range at this address, if it was looked at lately in this run: no event comes between.
    #[inline]
    pub(crate) fn class_of(&self, addr: u64, huge_shift: u32) -> Option<usize> {
        let number = addr >> huge_shift;
        let (range, class) = self.classes[number as usize % RANGES];
        (range == number).then_some(class)
    }

    #[inline]
    pub(crate) fn set_class(&mut self, addr: u64, huge_shift: u32, class: usize) {
        let number = addr >> huge_shift;
        if let Some(place) = self.classes.get_mut(number as usize % RANGES) {
            *place = (number, class);
        }
    }

    /// The set that the page goes to.
    #[inline]
    pub(crate) fn slot(&mut self, plan: &Plan, front: &Front, class: usize, addr: u64, va: u64) -> usize {
        self.asked = addr >> front.shift << 1 | class as u64;
        let tlb = &plan.tlbs[front.array];
        front.first_set + tlb.index.set_of(va >> front.shift >> tlb.coalesce_shift)
    }

    /// The page asked for, if it is the set's last.
    #[inline]
    pub(crate) fn hit(&self, slot: usize) -> Option<RecentPage> {
        let page = self.pages[slot];
        (page.tag == self.asked).then_some(page)
    }

    #[inline]
    pub(crate) fn count(&mut self, kind: usize, class: usize) {
        self.hits[kind][class] += 1;
    }

    /// The page asked for is the set's last now.
    #[inline]
    pub(crate) fn set(&mut self, slot: usize, row: u32, frame: u64) {
        self.pages[slot] = RecentPage { tag: self.asked, frame, row };
    }

    /// (kind, class, hits) since the last call.
    pub(crate) fn take_hits(&mut self) -> impl Iterator<Item = (usize, usize, u64)> {
        let hits = std::mem::take(&mut self.hits);
        (0..KINDS).flat_map(move |kind| (0..CLASSES).map(move |class| (kind, class, hits[kind][class])))
    }
}
