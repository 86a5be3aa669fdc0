//! What batches count as they go: few numbers for each, from which `batch_counts.rs` works out the rest at the end.

use crate::classes::{CLASSES, KINDS, SIDES};
use crate::routing::Routing;
use crate::stages::{StageArrivals, MAX_ROUTES};

/// What a run's batches came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct BatchTally {
    /// What came to the stages after their first.
    pub(crate) tlb: StageArrivals,
    pub(crate) walk_cache: StageArrivals,
    pub(crate) cache: StageArrivals,
    /// By TLB route: items, recorded accesses, left-out repeats.
    pub(crate) items: [u64; MAX_ROUTES],
    pub(crate) accesses: [u64; MAX_ROUTES],
    pub(crate) repeats: [u64; MAX_ROUTES],
    /// Hit costs after the first level, in levels of several arrays.
    pub(crate) hit_units: u64,
    /// By route through the walk caches: short walks.
    pub(crate) walks: [u64; SIDES * CLASSES],
    /// By side: what all walks read.
    pub(crate) references: [u64; SIDES],
    /// What all walks cost but for what they read; and what they cost less since their accesses were foreseen.
    pub(crate) walk_units: u64,
    pub(crate) walk_units_ahead: u64,
    /// By kind: lines that asked the data caches beside the items.
    pub(crate) lines: [u64; KINDS],
}

impl BatchTally {
    /// Nothing was counted.
    pub(crate) fn clear(&mut self, routing: &Routing) {
        self.tlb.clear(&routing.tlb.order);
        self.walk_cache.clear(&routing.walk_cache_stages);
        self.cache.clear(&routing.data_cache_stages);
        [self.items, self.accesses, self.repeats] = [[0; MAX_ROUTES]; 3];
        [self.hit_units, self.walk_units, self.walk_units_ahead] = [0; 3];
        self.walks = [0; SIDES * CLASSES];
        self.references = [0; SIDES];
        self.lines = [0; KINDS];
    }
}
