//! The hardware's state: TLB instances, walk caches, data caches, made when a hardware thread first needs them.

use std::sync::Arc;

use lookaside_machine::{SharedBy, Stage};

use crate::assoc::Assoc;
use crate::fasthash::FastMap;
use crate::os::{SplitMix64, Structure};
use crate::plan::{Plan, TlbPlan, BASE, BASE_SHIFT};

/// Id of the kernel's space in keys. Processes have ids from 1.
pub(crate) const KERNEL_ID: u64 = 0;

/// Bits of an entry prefix or host page number in a walk-cache key: 57-bit addresses above 12 bits of offset.
const PREFIX_BITS: u32 = 45;

/// Largest space id that a walk-cache key holds.
pub(crate) const MAX_WALK_ID: u64 = (1 << (64 - PREFIX_BITS)) - 2;

/// All instances that exist.
#[derive(Debug)]
pub(crate) struct Parts {
    seed: u64,
    pub(crate) tlbs: Vec<TlbInstance>,
    pub(crate) walk_caches: Vec<Instance>,
    pub(crate) caches: Vec<Instance>,
    made: FastMap<(u64, usize, usize), u32>,
    slots: Vec<Option<Arc<Slots>>>,
}

/// Where a hardware thread's instance of each array and cache is, by number in the machine file.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    pub(crate) tlbs: Vec<usize>,
    pub(crate) walk_caches: Vec<usize>,
    pub(crate) caches: Vec<usize>,
}

/// One walk cache or data cache.
#[derive(Debug)]
pub(crate) struct Instance {
    /// Its number in the machine file.
    pub(crate) number: usize,
    pub(crate) assoc: Assoc,
    set_mask: u64,
}

/// One TLB array instance.
#[derive(Debug)]
pub(crate) struct TlbInstance {
    pub(crate) number: usize,
    pub(crate) assoc: Assoc,
    /// Of coalescing arrays, by slot: pages covered, and frame minus page number.
    blocks: Vec<(u64, u64)>,
    /// Fills shared out to the arrays beside this one.
    pub(crate) rotation: u64,
}

/// What an access looks for in one array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) set: usize,
    pub(crate) key: u64,
    /// The page's bit in its block; 1 where the array does not coalesce it.
    pub(crate) bit: u64,
}

/// What a fill did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// A new entry, in an invalid way.
    New,
    /// A new entry, in place of another.
    Evicted,
    /// The pages were added to an entry of their block.
    Merged,
}

impl TlbPlan {
    /// Largest space id that a key of this array holds, below the all-ones key.
    pub(crate) fn max_id(&self, plan: &Plan) -> u64 {
        let holders = 1u64 << (63 - plan.number_bits);
        (holders - 1) / self.hw_factor(plan) - 1
    }

    fn hw_factor(&self, plan: &Plan) -> u64 {
        if self.hw_tag {
            plan.hw_threads as u64
        } else {
            1
        }
    }

    /// Id of the space that a key is held under.
    pub(crate) fn id_of(&self, plan: &Plan, key: u64) -> u64 {
        (key >> (plan.number_bits + 1)) / self.hw_factor(plan)
    }

    /// First byte and end of what an entry covers.
    pub(crate) fn range_of(&self, plan: &Plan, key: u64) -> (u64, u64) {
        let number = key & ((1 << plan.number_bits) - 1);
        let is_base = key >> plan.number_bits & 1 == 0;
        let shift = match (is_base, self.entry_shift) {
            (true, [Some(shift), _]) => shift + self.block_shift(shift),
            (_, [_, Some(shift)]) => shift,
            _ => 0,
        };
        (number << shift, (number + 1) << shift)
    }

    /// log2 of the pages in an entry of this page size.
    fn block_shift(&self, shift: u32) -> u32 {
        if shift == BASE_SHIFT {
            self.coalesce_shift
        } else {
            0
        }
    }

    /// Does an entry of this page size stand for a block of pages?
    pub(crate) fn coalesces(&self, shift: u32) -> bool {
        self.block_shift(shift) > 0
    }

    /// What to look for: the page of `2^shift` bytes at `va`, held under `id`.
    #[inline(always)]
    pub(crate) fn wanted(&self, plan: &Plan, id: u64, hw: usize, va: u64, shift: u32) -> Wanted {
        let page = va >> shift;
        let holder = if self.hw_tag { id * plan.hw_threads as u64 + hw as u64 } else { id };
        let code = u64::from(self.entry_shift[BASE] != Some(shift));
        let set = self.index.set_of(page >> self.coalesce_shift);
        let block_shift = self.block_shift(shift);
        let key = (holder << 1 | code) << plan.number_bits | page >> block_shift;
        Wanted { set, key, bit: 1 << (page & ((1 << block_shift) - 1)) }
    }
}

impl TlbInstance {
    /// The slot that holds the page.
    #[inline(always)]
    pub(crate) fn find(&self, wanted: &Wanted) -> Option<usize> {
        if self.blocks.is_empty() {
            return self.assoc.find(wanted.set, wanted.key);
        }
        self.assoc.find_that(wanted.set, wanted.key, |slot| self.blocks[slot].0 & wanted.bit != 0)
    }

    /// Fills an entry of one page.
    #[inline(always)]
    pub(crate) fn fill(&mut self, wanted: &Wanted) -> Filled {
        self.fill_block(wanted, wanted.bit, 0)
    }

    /// Fills pages of a block that have one distance to their frames.
    #[inline(always)]
    pub(crate) fn fill_block(&mut self, wanted: &Wanted, mask: u64, distance: u64) -> Filled {
        if !self.blocks.is_empty() {
            let same = |slot: usize| self.blocks[slot].1 == distance;
            if let Some(slot) = self.assoc.find_that(wanted.set, wanted.key, same) {
                self.blocks[slot].0 |= mask;
                self.assoc.touch(wanted.set, slot);
                return Filled::Merged;
            }
        }
        let (slot, old) = self.assoc.fill(wanted.set, wanted.key);
        if let Some(block) = self.blocks.get_mut(slot) {
            *block = (mask, distance);
        }
        if old == crate::assoc::EMPTY {
            Filled::New
        } else {
            Filled::Evicted
        }
    }
}

impl Instance {
    /// Set of a key's number (line number or prefix).
    #[inline]
    fn set_of(&self, number: u64) -> usize {
        (number & self.set_mask) as usize
    }

    /// Is this line there? Touches it if so, else fills it.
    #[inline]
    pub(crate) fn access_or_fill_line(&mut self, line: u64) -> bool {
        let set = self.set_of(line);
        self.assoc.access_or_fill(set, line)
    }

    /// This line will be asked soon.
    #[inline]
    pub(crate) fn prefetch_line(&self, line: u64) {
        self.assoc.prefetch(self.set_of(line));
    }

    /// Is this prefix there? Touches it if so.
    #[inline]
    pub(crate) fn access_prefix(&mut self, id: u64, prefix: u64) -> bool {
        let set = self.set_of(prefix);
        self.assoc.access(set, id << PREFIX_BITS | prefix)
    }

    #[inline]
    pub(crate) fn fill_prefix(&mut self, id: u64, prefix: u64) {
        let set = self.set_of(prefix);
        self.assoc.fill(set, id << PREFIX_BITS | prefix);
    }
}

impl Parts {
    pub(crate) fn new(plan: &Plan, seed: u64) -> Self {
        Self {
            seed,
            tlbs: Vec::new(),
            walk_caches: Vec::new(),
            caches: Vec::new(),
            made: FastMap::default(),
            slots: vec![None; plan.hw_threads],
        }
    }

    /// The instances that a hardware thread uses, made if they are not there.
    pub(crate) fn slots(&mut self, plan: &Plan, hw: usize) -> Arc<Slots> {
        if let Some(slots) = &self.slots[hw] {
            return Arc::clone(slots);
        }
        let mut slots = Slots::default();
        for (number, tlb) in plan.tlbs.iter().enumerate() {
            let slot = self.tlb(plan, number, tlb, plan.instance_of(tlb.shared_by, hw));
            slots.tlbs.push(slot);
        }
        for (number, cache) in plan.walk_caches.iter().enumerate() {
            let instance = plan.instance_of(cache.shared_by, hw);
            let slot = self.made_or_next(Structure::WalkCache, number, instance, self.walk_caches.len());
            if slot == self.walk_caches.len() {
                let rng = SplitMix64::of_instance(self.seed, Structure::WalkCache, number, instance);
                let assoc = Assoc::new(cache.shape, rng);
                self.walk_caches.push(Instance { number, assoc, set_mask: cache.shape.sets as u64 - 1 });
            }
            slots.walk_caches.push(slot);
        }
        for (number, cache) in plan.caches.iter().enumerate() {
            let instance = plan.instance_of(cache.shared_by, hw);
            let slot = self.made_or_next(Structure::Cache, number, instance, self.caches.len());
            if slot == self.caches.len() {
                let rng = SplitMix64::of_instance(self.seed, Structure::Cache, number, instance);
                let assoc = Assoc::new(cache.shape, rng);
                self.caches.push(Instance { number, assoc, set_mask: cache.shape.sets as u64 - 1 });
            }
            slots.caches.push(slot);
        }
        let slots = Arc::new(slots);
        self.slots[hw] = Some(Arc::clone(&slots));
        slots
    }

    fn tlb(&mut self, plan: &Plan, number: usize, tlb: &TlbPlan, instance: usize) -> usize {
        let slot = self.made_or_next(Structure::Tlb, number, instance, self.tlbs.len());
        if slot == self.tlbs.len() {
            let rng = SplitMix64::of_instance(self.seed, Structure::Tlb, number, instance);
            let shape = plan.tlbs[number].shape;
            let blocks = if tlb.coalesce_shift > 0 { vec![(0, 0); shape.sets * shape.ways] } else { Vec::new() };
            self.tlbs.push(TlbInstance { number, assoc: Assoc::new(shape, rng), blocks, rotation: 0 });
        }
        slot
    }

    fn made_or_next(&mut self, kind: Structure, number: usize, instance: usize, next: usize) -> usize {
        *self.made.entry((kind as u64, number, instance)).or_insert(next as u32) as usize
    }

    /// Invalidates, in every TLB instance, the entries of a space that overlap the range (`None` = all):
    /// how many, added by array.
    pub(crate) fn shoot_down(&mut self, plan: &Plan, id: u64, range: Option<(u64, u64)>, invalidated: &mut [u64]) {
        for tlb in &mut self.tlbs {
            let of = &plan.tlbs[tlb.number];
            let blocks = &tlb.blocks;
            invalidated[tlb.number] += tlb.assoc.invalidate(|slot, key| {
                of.id_of(plan, key) == id
                    && range.is_none_or(|(start, end)| {
                        let (first, last) = of.range_of(plan, key);
                        let covers = |i: u64| {
                            let page = first + (i << BASE_SHIFT);
                            blocks[slot].0 >> i & 1 == 1 && page < end && start < page + (1 << BASE_SHIFT)
                        };
                        let is_block = !blocks.is_empty() && last - first == (1 << BASE_SHIFT) << of.coalesce_shift;
                        first < end && start < last && (!is_block || (0..1 << of.coalesce_shift).any(covers))
                    })
            });
        }
        for cache in &mut self.walk_caches {
            if plan.walk_caches[cache.number].stage == Stage::Guest {
                cache.assoc.invalidate(|_, key| key >> PREFIX_BITS == id);
            }
        }
    }

    /// Throws out what a context switch does: non-global TLB and guest walk-cache entries, maybe the caches too.
    pub(crate) fn flush(&mut self, plan: &Plan, slots: &Slots, caches_too: bool, invalidated: &mut [u64]) {
        for &slot in &slots.tlbs {
            let tlb = &mut self.tlbs[slot];
            let of = &plan.tlbs[tlb.number];
            invalidated[tlb.number] += tlb.assoc.invalidate(|_, key| of.id_of(plan, key) != KERNEL_ID);
        }
        for &slot in &slots.walk_caches {
            let cache = &mut self.walk_caches[slot];
            if plan.walk_caches[cache.number].stage == Stage::Guest {
                cache.assoc.invalidate(|_, key| key >> PREFIX_BITS != KERNEL_ID);
            }
        }
        for &slot in slots.caches.iter().filter(|_| caches_too) {
            let cache = &mut self.caches[slot];
            if plan.caches[cache.number].shared_by != SharedBy::Socket {
                cache.assoc.invalidate(|_, _| true);
            }
        }
    }

    /// Ids that any entry is held under.
    pub(crate) fn ids_held(&self, plan: &Plan) -> crate::fasthash::FastSet<u64> {
        let mut ids = crate::fasthash::FastSet::default();
        for tlb in &self.tlbs {
            let of = &plan.tlbs[tlb.number];
            let valid = tlb.assoc.keys().iter().filter(|&&key| key != crate::assoc::EMPTY);
            ids.extend(valid.map(|&key| of.id_of(plan, key)));
        }
        for cache in &self.walk_caches {
            let valid = cache.assoc.keys().iter().filter(|&&key| key != crate::assoc::EMPTY);
            ids.extend(valid.map(|&key| key >> PREFIX_BITS));
        }
        ids
    }
}
