//! Stages that items go through until one has what they ask for: TLB levels, walk caches, data caches.
//!
//! What a stage holds depends on nothing but what came to it, in its order. So a batch of items can go through the first
//! stage as a whole, what it had not through the next, and so on.

use crate::ask::{collect, Isa};
use crate::batch::MOST_KEYS as LIST;

/// Room for the routes of a ladder. The most are a TLB's six, one for each kind and class.
pub(crate) const ROUTES: usize = 8;

/// The stages, numbered in an order that every route keeps to.
#[derive(Clone, Debug)]
pub(crate) struct Ladder {
    /// By stage: the stage after it, by route. The number of stages is the end.
    after: Vec<[u8; ROUTES]>,
    pub(crate) first: [u8; ROUTES],
    /// One item of each route, as counted in a field of a word.
    one: [u64; ROUTES],
    field: u32,
    routes: usize,
}

/// How many items came to each stage, by route; the last is the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Came(Vec<[u64; ROUTES]>);

impl Came {
    /// Nothing came.
    pub(crate) fn clear(&mut self, ladder: &Ladder) {
        self.0.clear();
        self.0.resize(ladder.after.len() + 1, [0; ROUTES]);
    }

    /// Items of a route that came to a stage.
    pub(crate) fn at(&self, stage: u8, route: usize) -> u64 {
        self.0[usize::from(stage)][route]
    }

    /// Items of a route begin.
    pub(crate) fn begin(&mut self, ladder: &Ladder, route: usize, items: u64) {
        self.0[usize::from(ladder.first[route])][route] += items;
    }
}

impl Ladder {
    /// Routes through stages numbered below `stages`, each ascending.
    pub(crate) fn new(routes: &[Vec<usize>], stages: usize) -> Self {
        let end = stages as u8;
        let mut after = vec![[end; ROUTES]; stages];
        let mut first = [end; ROUTES];
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
    /// places in that list. There are fewer items than a field of 10 bits (12, of five routes) counts.
    #[inline]
    pub(crate) fn go_on<const N: usize>(
        &self,
        stage: u8,
        (list, missed): (&[u16; LIST], &[u16]),
        routes: &[u8; N],
        next: &mut [u8; N],
        came: &mut Came,
    ) {
        let after = &self.after[usize::from(stage)];
        let mut counts = 0u64;
        for &k in missed {
            let item = usize::from(list[usize::from(k) % LIST]) % N;
            let route = usize::from(routes[item]) % ROUTES;
            next[item] = after[route];
            counts += self.one[route];
        }
        if missed.is_empty() {
            return;
        }
        for (route, &after) in after.iter().enumerate().take(self.routes) {
            let count = counts >> (self.field * route as u32) & (u64::MAX >> (64 - self.field));
            came.0[usize::from(after)][route] += count;
        }
    }

    /// The items that are at a stage, in order: how many.
    #[inline]
    pub(crate) fn items_at(&self, isa: Isa, stage: u8, next: &[u8], list: &mut [u16]) -> usize {
        collect(isa, next, stage, list)
    }
}
