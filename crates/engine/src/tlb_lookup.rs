//! The scalar path through the TLB arrays: which level has an access's page, and which levels are filled.

use crate::classes::{BASE, BASE_SHIFT};
use crate::context::{AccessContext, KERNEL};
use crate::engine::Engine;
use crate::plan::EnginePlan;
use crate::space::{physical, AddressSpace};
use crate::tlb::held_under;

/// A hit: position of the level in the route, array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    pub(crate) at: usize,
    pub(crate) array: usize,
    pub(crate) locked: bool,
}

impl Engine {
    /// Asks the levels in turn.
    #[inline]
    pub(crate) fn look_up(
        &mut self,
        context: &AccessContext,
        kind: usize,
        global: bool,
        va: u64,
        class: usize,
    ) -> Option<Hit> {
        let plan = &*context.plan;
        let reached = &mut self.counts.reached[kind][class];
        let levels = &plan.routes[kind][class].levels;
        for (at, level) in levels.iter().enumerate() {
            reached[at] += 1;
            for &array in &level.arrays {
                let tlb = &plan.tlbs[array];
                let locked = tlb.is_locked(context.process, global, va, level.shift);
                let hit = locked || {
                    let holder = tlb.holder(plan, held_under(tlb, global, context.id), context.hw);
                    let key = tlb.key(plan, &mut self.hardware.tags, holder, va, level.shift);
                    self.hardware.tlbs[context.routing.tlbs[array]].access(&key)
                };
                if hit {
                    let tally = &mut self.counts.tlbs[array];
                    tally.hits[kind][class] += 1;
                    tally.locked_hits += u64::from(locked);
                    return Some(Hit { at, array, locked });
                }
            }
        }
        reached[levels.len()] += 1;
        None
    }

    /// Fills the levels before `upto`: the array that the first level's fill went to.
    #[inline]
    pub(crate) fn fill(
        &mut self,
        context: &AccessContext,
        kind: usize,
        global: bool,
        va: u64,
        class: usize,
        upto: usize,
    ) -> Option<usize> {
        let plan = &*context.plan;
        let mut first = None;
        for (at, level) in plan.routes[kind][class].levels[..upto].iter().enumerate() {
            let mut array = level.arrays[0];
            if level.arrays.len() > 1 {
                let rotation = &mut self.hardware.tlbs[context.routing.tlbs[array]].rotation;
                array = level.arrays[(*rotation % level.arrays.len() as u64) as usize];
                *rotation += 1;
            }
            if at == 0 {
                first = Some(array);
            }
            let tlb = &plan.tlbs[array];
            let holder = tlb.holder(plan, held_under(tlb, global, context.id), context.hw);
            let key = tlb.key(plan, &mut self.hardware.tags, holder, va, level.shift);
            let (mask, distance) = if tlb.coalesces(level.shift) {
                let space = &self.spaces[if global { KERNEL } else { context.space }];
                let (mask, distance) = block_of(plan, space, va, class, tlb.coalesce_shift);
                (mask, if plan.blocks_keep_distance(tlb) { 0 } else { distance })
            } else {
                (key.bit, 0)
            };
            let filled = self.hardware.tlbs[context.routing.tlbs[array]].fill(&key, mask, distance);
            self.counts.tlbs[array].add_fill(filled);
        }
        first
    }

    /// Counts left-out repeats as lookups and hits of the array that holds the page.
    pub(crate) fn count_repeats(&mut self, kind: usize, class: usize, count: u64, holder: Option<(usize, bool)>) {
        self.counts.repeats[kind] += count;
        if let Some((array, locked)) = holder {
            let tally = &mut self.counts.tlbs[array];
            tally.repeat_lookups += count;
            tally.hits[kind][class] += count;
            tally.locked_hits += if locked { count } else { 0 };
        }
    }
}

/// Pages of the block of `va` that one entry can cover, and their common distance to the frames.
fn block_of(plan: &EnginePlan, space: &AddressSpace, va: u64, class: usize, block_shift: u32) -> (u64, u64) {
    let distance = |va: u64| (physical(plan, space, va, class) >> BASE_SHIFT).wrapping_sub(va >> BASE_SHIFT);
    let own = distance(va);
    let first = va >> (BASE_SHIFT + block_shift) << block_shift;
    let pages = 1u64 << block_shift;
    // Then all of them keep one distance.
    let in_one_run = plan.host.is_none()
        && plan.guest_memory.run_shift(plan.leaf_shift[BASE]).is_some_and(|run| run >= BASE_SHIFT + block_shift);
    let mask = (0..pages).fold(0, |mask, i| {
        let page = (first + i) << BASE_SHIFT;
        let is_own = page >> BASE_SHIFT == va >> BASE_SHIFT;
        let joins =
            is_own || (class == BASE && space.pages.is_touched(page, BASE) && (in_one_run || distance(page) == own));
        mask | u64::from(joins) << i
    });
    (mask, own)
}
