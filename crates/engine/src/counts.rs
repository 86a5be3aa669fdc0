//! Integer counts of a run, from which the outcome's totals are worked out at its end.

use crate::array_forms::PlaceCounts;
use crate::classes::{CLASSES, KINDS, SIDES};
use crate::lookup::LookupResult;
use crate::plan::EnginePlan;

/// All counts.
#[derive(Clone, Debug)]
pub(crate) struct EngineCounts {
    /// By kind and class: accesses that came to each level of the route; the last are the walks.
    pub(crate) reached: [[Vec<u64>; CLASSES]; KINDS],
    /// By array.
    pub(crate) tlbs: Vec<ArrayCounts>,
    /// By walk cache and side: lookups and hits; then those of directory entries in TLB arrays.
    pub(crate) walk_caches: Vec<[(u64, u64); SIDES]>,
    /// By kind: data accesses served by each cache of the route; the last is memory.
    pub(crate) data_served: [Vec<u64>; KINDS],
    /// Of those, the ones that went on with an ascending walk, where the machine has such.
    pub(crate) data_streamed: [Vec<u64>; KINDS],
    /// By side: units that walks cost less since their accesses went on with an ascending walk.
    pub(crate) walk_units_ahead: [u128; SIDES],
    /// By side: walk references served by each cache of the route; the last is memory.
    pub(crate) walk_served: [Vec<u64>; SIDES],
    /// By side: walk references to each table, guest levels then host levels, ascending.
    pub(crate) tables: [Vec<u64>; SIDES],
    /// Left-out repeats by kind.
    pub(crate) repeats: [u64; KINDS],
    pub(crate) context_switches: u64,
    pub(crate) shootdowns: u64,
    /// By array; then by place of those in forms.
    pub(crate) invalidated: Vec<u64>,
    /// By place.
    pub(crate) forms: Vec<PlaceCounts>,
    pub(crate) table_bytes: u64,
}

/// Counts of one array.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArrayCounts {
    /// By kind and class, repeats included.
    pub(crate) hits: [[u64; CLASSES]; KINDS],
    pub(crate) locked_hits: u64,
    /// Lookups of left-out repeats.
    pub(crate) repeat_lookups: u64,
    pub(crate) fills: u64,
    pub(crate) evictions: u64,
}

impl ArrayCounts {
    /// Counts a fill, and what it evicted; nothing where the page was added to an entry of its block.
    #[inline(always)]
    pub(crate) fn add_fill(&mut self, filled: LookupResult) {
        self.fills += u64::from(filled != LookupResult::Hit);
        self.evictions += u64::from(filled == LookupResult::Evicted);
    }
}

impl EngineCounts {
    pub(crate) fn new(plan: &EnginePlan) -> Self {
        let places = plan.forms.as_ref().map_or(0, |forms| forms.places);
        let tables = plan.guest_levels.len() + plan.host.as_ref().map_or(0, |host| host.levels.len());
        Self {
            reached: std::array::from_fn(|kind| {
                std::array::from_fn(|class| vec![0; plan.routes[kind][class].levels.len() + 1])
            }),
            tlbs: vec![ArrayCounts::default(); plan.tlbs.len()],
            walk_caches: vec![Default::default(); plan.walk_caches.len() + plan.directories.arrays.len()],
            data_served: std::array::from_fn(|kind| vec![0; plan.data_route[kind].len() + 1]),
            data_streamed: std::array::from_fn(|kind| vec![0; plan.data_route[kind].len() + 1]),
            walk_units_ahead: [0; SIDES],
            walk_served: std::array::from_fn(|_| vec![0; plan.walk_route.len() + 1]),
            tables: std::array::from_fn(|_| vec![0; tables]),
            repeats: [0; KINDS],
            context_switches: 0,
            shootdowns: 0,
            invalidated: vec![0; plan.tlbs.len() + places],
            forms: vec![PlaceCounts::default(); places],
            table_bytes: 0,
        }
    }
}
