//! Which TLB, walk-cache and data-cache instances a hardware thread's accesses go through, worked out once.

use crate::classes::{BASE, CLASSES, KINDS, SIDES};
use crate::plan::{EnginePlan, RouteLevel, WalkPlan};
use crate::stages::{StageOrder, MAX_ROUTES, SAME_PAGE};

/// Where a hardware thread's instance of each array and cache is, by number in the machine file; and the routes of its
/// accesses through them.
#[derive(Debug)]
pub(crate) struct Routing {
    pub(crate) tlbs: Vec<usize>,
    pub(crate) walk_caches: Vec<usize>,
    pub(crate) caches: Vec<usize>,
    /// Through the TLBs. Routes: [`tlb_route`].
    pub(crate) tlb: TlbStages,
    /// Through the walk caches, where walks are short. Routes: [`walk_cache_route`].
    pub(crate) walk_cache_stages: StageOrder,
    /// Through the data caches, by their order in [`EnginePlan::cache_order`]. Routes: kinds, then walks by side.
    pub(crate) data_cache_stages: StageOrder,
    /// By kind: instances of data caches, in order.
    pub(crate) data_route: [Vec<usize>; KINDS],
    /// Instances of data caches that a walk asks, in order.
    pub(crate) walk_route: Vec<usize>,
}

/// The TLB as stages.
#[derive(Debug)]
pub(crate) struct TlbStages {
    pub(crate) order: StageOrder,
    pub(crate) stages: Vec<TlbStage>,
    /// By route: [`SAME_PAGE`] where the first stage is one array, else 0.
    pub(crate) again: [u8; MAX_ROUTES],
    /// The first stage that has entries of several pages; the number of stages if none has.
    pub(crate) first_coalescing: u8,
    /// The first stage that has several arrays, or that walks change: from here on one item asks all stages before the
    /// next one asks any.
    pub(crate) first_in_turn: u8,
    /// An item walks before the next one asks these.
    pub(crate) walks_change_stages: bool,
}

/// One array; or arrays of one level that some accesses ask together.
#[derive(Debug)]
pub(crate) struct TlbStage {
    /// By route: the arrays asked, in order.
    pub(crate) arrays: [Vec<AskedArray>; MAX_ROUTES],
    /// The one array that all its routes ask for lists of keys, if it is one and can be.
    pub(crate) only: Option<AskedArray>,
}

impl TlbStage {
    /// Does it ask this instance?
    pub(crate) fn has(&self, slot: usize) -> bool {
        self.arrays.iter().flatten().any(|array| array.slot == slot)
    }
}

/// One array, as a hardware thread asks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AskedArray {
    /// Its number in the machine file, and among [`EnginePlan::tlbs`].
    pub(crate) array: usize,
    /// Its instance.
    pub(crate) slot: usize,
}

/// The route of an access through the TLBs.
#[inline(always)]
pub(crate) fn tlb_route(kind: usize, class: usize) -> usize {
    kind * CLASSES + class
}

/// Kind and class of a TLB route.
#[inline(always)]
pub(crate) fn kind_and_class(route: usize) -> (usize, usize) {
    (route / CLASSES, route % CLASSES)
}

/// The route of a walk through the walk caches.
#[inline(always)]
pub(crate) fn walk_cache_route(side: usize, class: usize) -> usize {
    side * CLASSES + class
}

/// Side and class of a route through the walk caches.
#[inline(always)]
pub(crate) fn side_and_class(route: u8) -> (usize, usize) {
    (usize::from(route) / CLASSES % SIDES, usize::from(route) % CLASSES)
}

/// Routes of walks through the data caches, by side, follow those of the kinds.
pub(crate) const WALKS_THROUGH_CACHES: usize = KINDS;

impl Routing {
    pub(crate) fn new(plan: &EnginePlan, tlbs: Vec<usize>, walk_caches: Vec<usize>, caches: Vec<usize>) -> Self {
        let of = |route: &[usize]| route.iter().map(|&number| caches[number]).collect::<Vec<_>>();
        let stage_of = |number: &usize| plan.cache_order.iter().position(|other| other == number);
        let stages_of = |route: &Vec<usize>| route.iter().filter_map(stage_of).collect::<Vec<_>>();
        let mut routes: Vec<Vec<usize>> = plan.data_route.iter().map(stages_of).collect();
        routes.extend([(); SIDES].map(|()| stages_of(&plan.walk_route)));
        Self {
            tlb: TlbStages::new(plan, &tlbs),
            walk_cache_stages: walk_cache_stages(plan),
            data_cache_stages: StageOrder::new(&routes, caches.len()),
            walk_route: of(&plan.walk_route),
            data_route: std::array::from_fn(|kind| of(&plan.data_route[kind])),
            tlbs,
            walk_caches,
            caches,
        }
    }
}

/// Both classes ask the walk caches in one order; that of huge pages begins later.
fn walk_cache_stages(plan: &EnginePlan) -> StageOrder {
    let all = plan.guest_walk_caches[BASE].len();
    let of_class = |class: usize| (all - plan.guest_walk_caches[class].len()..all).collect::<Vec<_>>();
    let routes: Vec<_> = (0..SIDES * CLASSES).map(|route| of_class(route % CLASSES)).collect();
    StageOrder::new(&routes, all)
}

impl TlbStages {
    fn new(plan: &EnginePlan, tlbs: &[usize]) -> Self {
        let mut numbers: Vec<u32> = Vec::new();
        let mut members: Vec<(u32, usize, &RouteLevel)> = Vec::new();
        for route in 0..KINDS * CLASSES {
            let (kind, class) = kind_and_class(route);
            for level in &plan.routes[kind][class].levels {
                numbers.push(level.level);
                members.push((level.level, route, level));
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        // Routes whose arrays of a level overlap go through one stage.
        let mut stages: Vec<Vec<(usize, &RouteLevel)>> = Vec::new();
        for number in numbers {
            let mut of_level: Vec<Vec<(usize, &RouteLevel)>> = Vec::new();
            for &(_, route, level) in members.iter().filter(|member| member.0 == number) {
                let overlaps = |stage: &Vec<(usize, &RouteLevel)>| {
                    stage.iter().any(|(_, other)| other.arrays.iter().any(|array| level.arrays.contains(array)))
                };
                let (joined, mut rest): (Vec<_>, Vec<_>) = of_level.into_iter().partition(overlaps);
                let mut stage: Vec<_> = joined.into_iter().flatten().collect();
                stage.push((route, level));
                rest.push(stage);
                of_level = rest;
            }
            stages.extend(of_level);
        }
        let asked = |level: &RouteLevel| {
            level.arrays.iter().map(|&array| AskedArray { array, slot: tlbs[array] }).collect::<Vec<_>>()
        };
        let mut routes = vec![Vec::new(); KINDS * CLASSES];
        for (number, stage) in stages.iter().enumerate() {
            stage.iter().for_each(|&(route, _)| routes[route].push(number));
        }
        let stages: Vec<TlbStage> = stages
            .iter()
            .map(|stage| {
                let mut arrays: [Vec<AskedArray>; MAX_ROUTES] = Default::default();
                stage.iter().for_each(|&(route, level)| arrays[route] = asked(level));
                let first = arrays[stage[0].0][0];
                let is_only = arrays.iter().flatten().all(|&array| array == first)
                    && arrays.iter().all(|arrays| arrays.len() <= 1)
                    && stage.iter().all(|&(route, _)| {
                        let tlb = &plan.tlbs[first.array];
                        tlb.keeps_distance && !tlb.layouts[kind_and_class(route).1].is_beyond_chunks
                    });
                let only = is_only.then_some(first);
                TlbStage { arrays, only }
            })
            .collect();
        let order = StageOrder::new(&routes, stages.len());
        let is_one = |route: usize| stages.get(usize::from(order.first[route])).is_some_and(|s| s.only.is_some());
        let first_with =
            |is_such: &dyn Fn(&TlbStage) -> bool| stages.iter().position(is_such).unwrap_or(stages.len()) as u8;
        let coalesces = |stage: &TlbStage| {
            let by_route = stage.arrays.iter().enumerate();
            by_route.flat_map(|(route, arrays)| arrays.iter().map(move |asked| (route, asked))).any(|(route, asked)| {
                let (_, class) = kind_and_class(route);
                plan.tlbs[asked.array].layouts[class].coalesces()
            })
        };
        let holds_directories = |asked: &AskedArray| plan.directories.arrays.contains(&asked.array);
        let is_changed = |stage: &TlbStage| {
            plan.walks != WalkPlan::CountOnly && stage.arrays.iter().flatten().any(holds_directories)
        };
        Self {
            again: std::array::from_fn(|route| if is_one(route) { SAME_PAGE } else { 0 }),
            first_coalescing: first_with(&coalesces),
            first_in_turn: first_with(&|stage| stage.only.is_none() || is_changed(stage)),
            walks_change_stages: stages.iter().any(is_changed),
            order,
            stages,
        }
    }
}
