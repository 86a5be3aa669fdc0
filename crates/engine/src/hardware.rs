//! The hardware's state: TLB instances, walk caches, data caches, made when a hardware thread first needs them.

use std::sync::Arc;

use lookaside_machine::{SharedBy, Stage};

use crate::data_cache::CacheInstance;
use crate::fasthash::{FastMap, FastSet};
use crate::os::{generator, Structure};
use crate::plan::{EnginePlan, FillRule};
use crate::routing::Routing;
use crate::store::KeyStore;
use crate::tags::Tags;
use crate::tlb::TlbInstance;

/// All instances that exist.
#[derive(Debug)]
pub(crate) struct Hardware {
    seed: u64,
    pub(crate) tags: Tags,
    pub(crate) tlbs: Vec<TlbInstance>,
    pub(crate) walk_caches: Vec<WalkCacheInstance>,
    pub(crate) caches: Vec<CacheInstance>,
    made: FastMap<(u64, usize, usize), u32>,
    routing: Vec<Option<Arc<Routing>>>,
}

/// One walk cache instance. Guest ones hold tags, host ones the numbers themselves.
#[derive(Debug)]
pub(crate) struct WalkCacheInstance {
    /// Its number in the machine file.
    pub(crate) number: usize,
    pub(crate) store: KeyStore,
    set_mask: u64,
}

impl WalkCacheInstance {
    /// The set of an entry's prefix.
    #[inline(always)]
    pub(crate) fn set_of(&self, prefix: u64) -> usize {
        (prefix & self.set_mask) as usize
    }

    /// Is this prefix there, under this key? Touches it if so.
    #[inline]
    pub(crate) fn access(&mut self, prefix: u64, key: u64) -> bool {
        self.store.access(self.set_of(prefix), key)
    }

    /// Fills a prefix, which may be there: then it is touched.
    #[inline]
    pub(crate) fn fill(&mut self, prefix: u64, key: u64) {
        self.store.access_or_fill(self.set_of(prefix), key);
    }
}

impl Hardware {
    pub(crate) fn new(plan: &EnginePlan, seed: u64) -> Self {
        Self {
            seed,
            tags: Tags::new(),
            tlbs: Vec::new(),
            walk_caches: Vec::new(),
            caches: Vec::new(),
            made: FastMap::default(),
            routing: vec![None; plan.hw_threads],
        }
    }

    /// The instances that a hardware thread uses, made if they are not there.
    pub(crate) fn routing(&mut self, plan: &EnginePlan, hw: usize) -> Arc<Routing> {
        if let Some(routing) = &self.routing[hw] {
            return Arc::clone(routing);
        }
        let mut tlbs = Vec::new();
        for (number, tlb) in plan.tlbs.iter().enumerate() {
            let instance = plan.instance_of(tlb.shared_by, hw);
            let slot = self.made_or_next(Structure::Tlb, number, instance, self.tlbs.len());
            if slot == self.tlbs.len() {
                let rng = generator(self.seed, Structure::Tlb, number, instance);
                self.tlbs.push(TlbInstance::new(plan, number, rng));
            }
            tlbs.push(slot);
        }
        let mut walk_caches = Vec::new();
        for (number, cache) in plan.walk_caches.iter().enumerate() {
            let instance = plan.instance_of(cache.shared_by, hw);
            let slot = self.made_or_next(Structure::WalkCache, number, instance, self.walk_caches.len());
            if slot == self.walk_caches.len() {
                let rng = generator(self.seed, Structure::WalkCache, number, instance);
                // Host-physical page numbers have more bits than a tag.
                let key_bits = if cache.stage == Stage::Guest { 32 } else { 64 };
                let store = KeyStore::new(cache.shape, key_bits, rng);
                self.walk_caches.push(WalkCacheInstance { number, store, set_mask: cache.shape.sets as u64 - 1 });
            }
            walk_caches.push(slot);
        }
        let mut caches = Vec::new();
        for (number, cache) in plan.caches.iter().enumerate() {
            let instance = plan.instance_of(cache.shared_by, hw);
            let slot = self.made_or_next(Structure::Cache, number, instance, self.caches.len());
            if slot == self.caches.len() {
                let rng = generator(self.seed, Structure::Cache, number, instance);
                self.caches.push(CacheInstance::new(number, cache, rng));
            }
            caches.push(slot);
        }
        for (number, cache) in plan.caches.iter().enumerate() {
            if let FillRule::VictimsOf(feeder) = cache.fill {
                self.caches[caches[number]].add_feeder(caches[feeder]);
            }
        }
        let routing = Arc::new(Routing::new(plan, tlbs, walk_caches, caches));
        self.routing[hw] = Some(Arc::clone(&routing));
        routing
    }

    fn made_or_next(&mut self, kind: Structure, number: usize, instance: usize, next: usize) -> usize {
        *self.made.entry((kind as u64, number, instance)).or_insert(next as u32) as usize
    }

    /// Invalidates, in every TLB instance, the entries of a space that overlap the range (`None` = all):
    /// how many, added by array.
    pub(crate) fn shoot_down(
        &mut self,
        plan: &EnginePlan,
        id: u64,
        range: Option<(u64, u64)>,
        invalidated: &mut [u64],
    ) {
        let tags = &self.tags;
        for tlb in &mut self.tlbs {
            let of = &plan.tlbs[tlb.number];
            let picks = |tag: u32, mask: u64| {
                of.id_of(plan, tags, tag) == id && range.is_none_or(|range| of.overlaps(plan, tags, tag, mask, range))
            };
            tlb.invalidate(picks, invalidated);
        }
        self.invalidate_walk_caches(plan, |holder| holder == id);
    }

    /// Throws out what a context switch does: TLB and guest walk-cache entries held under such ids, maybe the caches
    /// too.
    pub(crate) fn flush(
        &mut self,
        plan: &EnginePlan,
        routing: &Routing,
        picks: impl Fn(u64) -> bool,
        caches_too: bool,
        invalidated: &mut [u64],
    ) {
        let tags = &self.tags;
        for &slot in &routing.tlbs {
            let tlb = &mut self.tlbs[slot];
            let of = &plan.tlbs[tlb.number];
            tlb.invalidate(|tag, _| picks(of.id_of(plan, tags, tag)), invalidated);
        }
        for &slot in &routing.walk_caches {
            let cache = &mut self.walk_caches[slot];
            if plan.walk_caches[cache.number].stage == Stage::Guest {
                cache.store.invalidate(|tag| picks(tags.of(tag as u32).0));
            }
        }
        for &slot in routing.caches.iter().filter(|_| caches_too) {
            let cache = &mut self.caches[slot];
            if plan.caches[cache.number].shared_by != SharedBy::Socket {
                cache.store.invalidate(|_| true);
            }
        }
    }

    fn invalidate_walk_caches(&mut self, plan: &EnginePlan, picks: impl Fn(u64) -> bool) {
        let tags = &self.tags;
        for cache in &mut self.walk_caches {
            if plan.walk_caches[cache.number].stage == Stage::Guest {
                cache.store.invalidate(|tag| picks(tags.of(tag as u32).0));
            }
        }
    }

    /// Ids that any entry is held under.
    pub(crate) fn ids_held(&self, plan: &EnginePlan) -> FastSet<u64> {
        let mut ids = FastSet::default();
        for tlb in &self.tlbs {
            tlb.for_each(|tag| {
                ids.insert(plan.tlbs[tlb.number].id_of(plan, &self.tags, tag));
            });
        }
        for cache in self.walk_caches.iter().filter(|cache| plan.walk_caches[cache.number].stage == Stage::Guest) {
            cache.store.for_each(|tag| {
                ids.insert(self.tags.of(tag as u32).0);
            });
        }
        ids
    }

    /// Invalidates all entries of TLBs and guest walk caches, and gives out all tags anew.
    pub(crate) fn empty_tlbs(&mut self, plan: &EnginePlan, invalidated: &mut [u64]) {
        for tlb in &mut self.tlbs {
            tlb.invalidate(|_, _| true, invalidated);
        }
        self.invalidate_walk_caches(plan, |_| true);
        self.tags = self.tags.emptied();
    }

    /// Gives out the tags anew, to what entries bear.
    pub(crate) fn renew_tags(&mut self, plan: &EnginePlan) {
        let old = &self.tags;
        let mut new = old.emptied();
        let mut name = |tag: u32| {
            let (holder, chunk) = old.of(tag);
            new.of_chunk(holder, chunk) | crate::tags::page_in_chunk(tag)
        };
        for tlb in &mut self.tlbs {
            tlb.rename(&mut name);
        }
        for cache in self.walk_caches.iter_mut().filter(|cache| plan.walk_caches[cache.number].stage == Stage::Guest) {
            cache.store.rename(&mut name);
        }
        self.tags = new;
    }
}
