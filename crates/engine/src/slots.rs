//! What a hardware thread's accesses go through, worked out once: its instances, and the short ways to them.

use crate::parts::Parts;
use crate::plan::{Plan, Route, RouteLevel, CLASSES, HUGE, KINDS};
use crate::set_index::SetIndex;
use crate::tlb::Naming;

/// Where a hardware thread's instance of each array and cache is, by number in the machine file; and the routes of its
/// accesses through them.
#[derive(Debug)]
pub(crate) struct Slots {
    pub(crate) tlbs: Vec<usize>,
    pub(crate) walk_caches: Vec<usize>,
    pub(crate) caches: Vec<usize>,
    /// By kind and class, where the short path can be taken.
    pub(crate) ways: [[Option<Way>; CLASSES]; KINDS],
    /// By kind: instances of data caches, in order.
    pub(crate) data_route: [Vec<usize>; KINDS],
    /// By kind: those whose sets take long to come.
    pub(crate) far_route: [Vec<usize>; KINDS],
    /// Instances of data caches that a walk asks, in order.
    pub(crate) walk_route: Vec<usize>,
}

/// The levels that an access asks in turn.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) levels: Vec<Vec<WayArray>>,
    /// The first level's array, if it is one array of pages.
    pub(crate) first: Option<WayArray>,
    /// So is every level's.
    pub(crate) is_plain: bool,
    /// Some entries on the way cover several pages.
    pub(crate) coalesces: bool,
}

/// Most levels of a way.
pub(crate) const MAX_LEVELS: usize = 4;

/// One array on the way.
#[derive(Clone, Debug)]
pub(crate) struct WayArray {
    /// Its number in the machine file.
    pub(crate) array: usize,
    /// Its instance.
    pub(crate) slot: usize,
    pub(crate) index: SetIndex,
    pub(crate) naming: Naming,
    /// Which of a place's tags it goes by: see `places.rs`.
    pub(crate) name: usize,
    pub(crate) coalesces: bool,
    /// Its entries are pages, without more ado.
    pub(crate) holds_pages: bool,
    pub(crate) hit_units: u64,
}

impl Slots {
    pub(crate) fn new(
        plan: &Plan,
        parts: &Parts,
        tlbs: Vec<usize>,
        walk_caches: Vec<usize>,
        caches: Vec<usize>,
    ) -> Self {
        let ways =
            std::array::from_fn(|kind| std::array::from_fn(|class| way(plan, parts, &tlbs, &plan.routes[kind][class])));
        let of = |route: &[usize]| route.iter().map(|&number| caches[number]).collect::<Vec<_>>();
        let data_route: [Vec<usize>; KINDS] = std::array::from_fn(|kind| of(&plan.data_route[kind]));
        let far = |route: &Vec<usize>| route.iter().copied().filter(|&slot| parts.caches[slot].is_large()).collect();
        Self {
            ways,
            far_route: data_route.each_ref().map(far),
            walk_route: of(&plan.walk_route),
            data_route,
            tlbs,
            walk_caches,
            caches,
        }
    }
}

/// The short way of a route: none if blocks keep no common distance to their frames.
fn way(plan: &Plan, parts: &Parts, tlbs: &[usize], route: &Route) -> Option<Way> {
    let in_runs = |array: usize| {
        let tlb = &plan.tlbs[array];
        tlb.coalesce_shift == 0 || plan.blocks_keep_distance(tlb)
    };
    // A place knows one page that is larger than a chunk.
    let named = |shift: u32| shift <= plan.chunk_shift || shift == plan.leaf_shift[HUGE];
    let known = route.levels.iter().all(|l| named(l.shift) && l.arrays.iter().all(|&array| in_runs(array)));
    if !known || route.levels.is_empty() || route.levels.len() > MAX_LEVELS {
        return None;
    }
    let array = |number: usize, shift: u32| {
        let tlb = &plan.tlbs[number];
        let naming = tlb.naming(plan, shift);
        WayArray {
            array: number,
            slot: tlbs[number],
            index: tlb.index.clone(),
            name: usize::from(tlb.hw_tag) + 2 * usize::from(naming.is_beyond_chunks(plan)),
            naming,
            coalesces: tlb.coalesces(shift),
            holds_pages: parts.tlbs[tlbs[number]].holds_pages(),
            hit_units: tlb.hit_units,
        }
    };
    let level = |level: &RouteLevel| level.arrays.iter().map(|&n| array(n, level.shift)).collect();
    let levels: Vec<Vec<WayArray>> = route.levels.iter().map(level).collect();
    let first = match &levels[0][..] {
        [array] if array.holds_pages => Some(array.clone()),
        _ => None,
    };
    let is_plain = levels.iter().all(|level| level.len() == 1 && level[0].holds_pages);
    Some(Way { first, is_plain, coalesces: levels.iter().flatten().any(|array| array.coalesces), levels })
}
