//! Stages that items go through until one has what they look for: TLB levels, walk caches, data caches.
//!
//! What a stage holds depends on nothing but what came to it before, in order. So a batch of items can go through the
//! first stage as a whole; the items that it missed go through the next, and so on.

use crate::list_lookup::collect;
use crate::lookup::SimdLevel;

/// Most items of a batch: what is known of them stays in a first-level cache, and their fields in a [`StageOrder`]
/// word.
pub(crate) const MAX_ITEMS: usize = 256;

/// In `next`: the item before is to the same page by the same route, so that the first stage has it, and is not changed
/// by it.
pub(crate) const SAME_PAGE: u8 = 0x80;

/// Room for a list of keys: a batch's references to page tables, and its own lines.
pub(crate) const MAX_KEYS: usize = (MAX_ITEMS * (crate::plan::MAX_WALK_STEPS + 1)).next_power_of_two();

/// Room for the routes through some stages. The most are a TLB's six, one for each kind and class.
pub(crate) const MAX_ROUTES: usize = 8;

/// The stages, numbered in an order that every route keeps to.
#[derive(Clone, Debug)]
pub(crate) struct StageOrder {
    /// By stage: the stage after it, by route. The number of stages is the end.
    after: Vec<[u8; MAX_ROUTES]>,
    pub(crate) first: [u8; MAX_ROUTES],
    /// One item of each route, as counted in a field of a word.
    one: [u64; MAX_ROUTES],
    field: u32,
    routes: usize,
}

/// How many items came to each stage, by route; the last is the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct StageArrivals(Vec<[u64; MAX_ROUTES]>);

impl StageArrivals {
    /// Sets all counts to zero.
    pub(crate) fn clear(&mut self, order: &StageOrder) {
        if self.0.len() == order.after.len() + 1 {
            self.0.fill([0; MAX_ROUTES]);
        } else {
            self.0 = vec![[0; MAX_ROUTES]; order.after.len() + 1];
        }
    }

    /// Items of a route that came to a stage.
    pub(crate) fn at(&self, stage: u8, route: usize) -> u64 {
        self.0[usize::from(stage)][route]
    }

    /// Items of a route begin.
    pub(crate) fn begin(&mut self, order: &StageOrder, route: usize, items: u64) {
        self.0[usize::from(order.first[route])][route] += items;
    }
}

impl StageOrder {
    /// Routes through stages numbered below `stages`, each ascending.
    pub(crate) fn new(routes: &[Vec<usize>], stages: usize) -> Self {
        let end = stages as u8;
        let mut after = vec![[end; MAX_ROUTES]; stages];
        let mut first = [end; MAX_ROUTES];
        for (route, its) in routes.iter().enumerate() {
            first[route] = its.first().map_or(end, |&stage| stage as u8);
            for pair in its.windows(2) {
                after[pair[0]][route] = pair[1] as u8;
            }
        }
        let field = 64 / routes.len().max(1) as u32;
        let one = std::array::from_fn(|route| 1u64.checked_shl(field * route as u32).unwrap_or(0));
        Self { after, first, one, field, routes: routes.len() }
    }

    /// The number that stands for the end.
    pub(crate) fn end(&self) -> u8 {
        self.after.len() as u8
    }

    /// The stages of a route, in order, then the end.
    pub(crate) fn stages_of(&self, route: usize) -> impl Iterator<Item = u8> + '_ {
        let mut at = Some(self.first[route]);
        std::iter::from_fn(move || {
            let stage = at?;
            at = self.after.get(usize::from(stage)).map(|after| after[route]);
            Some(stage)
        })
    }

    /// Sends the items that a stage missed on to the next of their routes. `list`: the items that came to it; `missed`:
    /// places in that list; `only`: the one route of all of them. There are fewer items than a field of 10 bits (12, of five
    /// routes) counts.
    #[inline]
    pub(crate) fn advance<const N: usize>(
        &self,
        stage: u8,
        (list, missed): (&[u16; MAX_KEYS], &[u16]),
        (routes, only): (&[u8; N], Option<usize>),
        next: &mut [u8; N],
        arrivals: &mut StageArrivals,
    ) {
        let after = &self.after[usize::from(stage)];
        if let Some(route) = only {
            let to = after[route];
            for &k in missed {
                next[usize::from(list[usize::from(k) % MAX_KEYS]) % N] = to;
            }
            arrivals.0[usize::from(to)][route] += missed.len() as u64;
            return;
        }
        let mut counts = 0u64;
        for &k in missed {
            let item = usize::from(list[usize::from(k) % MAX_KEYS]) % N;
            let route = usize::from(routes[item]) % MAX_ROUTES;
            next[item] = after[route];
            counts += self.one[route];
        }
        if missed.is_empty() {
            return;
        }
        for (route, &after) in after.iter().enumerate().take(self.routes) {
            let count = counts >> (self.field * route as u32) & (u64::MAX >> (64 - self.field));
            arrivals.0[usize::from(after)][route] += count;
        }
    }

    /// The stage after this one on a route.
    pub(crate) fn after(&self, stage: u8, route: usize) -> u8 {
        self.after[usize::from(stage)][route]
    }

    /// Sends one item on that a stage missed.
    pub(crate) fn advance_one(&self, stage: u8, route: usize, next: &mut u8, arrivals: &mut StageArrivals) {
        *next = self.after(stage, route);
        arrivals.0[usize::from(*next)][route] += 1;
    }

    /// The items that are at a stage, in order: how many.
    #[inline]
    pub(crate) fn items_at(&self, simd: SimdLevel, stage: u8, next: &[u8], list: &mut [u16]) -> usize {
        collect(simd, next, stage, list)
    }
}
