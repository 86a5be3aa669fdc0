//! What a walk costs (`SEMANTICS.md` §6): the walker's own cycles, hits in walk caches, and each entry that it reads by
//! what served it.

use crate::plan::EnginePlan;

/// What one walk read and cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WalkCost {
    pub(crate) references: u64,
    pub(crate) references_memory: u64,
    pub(crate) units: u64,
}

impl WalkCost {
    /// A walk begins.
    #[inline(always)]
    pub(crate) fn begin(&mut self, plan: &EnginePlan) {
        *self = Self { units: plan.base_units, ..Self::default() };
    }

    /// A walk cache had what it looked for.
    #[inline(always)]
    pub(crate) fn add_hit(&mut self, plan: &EnginePlan, walk_cache: usize) {
        self.units += plan.walk_caches[walk_cache].hit_units;
    }

    /// Adds what one of its references costs; `server`: the data cache that had the entry, memory if none.
    #[inline(always)]
    pub(crate) fn serve(&mut self, plan: &EnginePlan, server: Option<usize>) {
        self.units += plan.reference_units(server);
        self.references_memory += u64::from(server.is_none());
    }
}

impl EnginePlan {
    /// Units of a walk's reference that this data cache served, memory if none.
    #[inline(always)]
    pub(crate) fn reference_units(&self, server: Option<usize>) -> u64 {
        server.map_or(self.walk_memory_units, |number| self.caches[number].hit_units)
    }
}
