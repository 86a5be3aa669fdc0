//! The short path of an access to a base page where every level has one plain array: the same rules
//! as in `engine.rs`, with one key for all levels and totals only.

use crate::counts::SIDE_OF;
use crate::engine::{Engine, Run};
use crate::plan::{Plan, WalkPlan, BASE, BASE_SHIFT};
use crate::rows::RowCost;
use crate::trace_hook::Blind;
use crate::walker::{walk, WalkFor};

/// Most levels that the short path is for.
const MAX_LEVELS: usize = 4;

/// The arrays that base pages of a kind ask, level by level, if the short path can be taken.
pub(crate) fn plain_route(plan: &Plan, kind: usize) -> Option<Vec<usize>> {
    let levels = &plan.routes[kind][BASE].levels;
    let arrays = levels.iter().map(|level| match level.arrays[..] {
        [array] => {
            let tlb = &plan.tlbs[array];
            (tlb.coalesce_shift == 0 && !tlb.hw_tag && tlb.locks.is_empty() && level.shift == BASE_SHIFT)
                .then_some(array)
        }
        _ => None,
    });
    let arrays = arrays.collect::<Option<Vec<_>>>()?;
    (!arrays.is_empty() && arrays.len() <= MAX_LEVELS && plan.tlbs.iter().all(|t| t.locks.is_empty())).then_some(arrays)
}

impl Engine {
    /// Translates `va` of the run's own process: lookup, walk, fills, counts.
    #[inline(always)]
    pub(crate) fn translate_plain(&mut self, run: &Run, arrays: &[usize], kind: usize, va: u64) {
        let plan = &*run.plan;
        let page = va >> BASE_SHIFT;
        let key = run.id << (plan.number_bits + 1) | page;
        let mut at = arrays.len();
        for (level, &array) in arrays.iter().enumerate() {
            let set = plan.tlbs[array].index.set_of(page);
            if self.parts.tlbs[run.slots.tlbs[array]].assoc.access(set, key) {
                at = level;
                break;
            }
        }
        let reached = &mut self.counts.reached[kind][BASE];
        reached[..=at].iter_mut().for_each(|count| *count += 1);
        for &array in &arrays[..at] {
            let set = plan.tlbs[array].index.set_of(page);
            let (_, old) = self.parts.tlbs[run.slots.tlbs[array]].assoc.fill(set, key);
            let tally = &mut self.counts.tlbs[array];
            tally.fills += 1;
            tally.evictions += u64::from(old != crate::assoc::EMPTY);
        }
        if at < arrays.len() {
            self.counts.tlbs[arrays[at]].hits[kind][BASE] += 1;
        }
        if at == 0 {
            return;
        }
        let mut cost = RowCost { l1_misses: 1, ..RowCost::default() };
        if at < arrays.len() {
            cost.hit_units = plan.tlbs[arrays[at]].hit_units;
        } else {
            self.spaces[run.space].pages.touch(va, BASE);
            cost.walks = 1;
            if plan.walks != WalkPlan::CountOnly {
                let space = self.spaces[run.space].number;
                let side = SIDE_OF[kind];
                let of = WalkFor { slots: &run.slots, side, space, id: run.id, va, class: BASE };
                let walk = walk(plan, &mut self.parts, &mut self.tables, &mut self.counts, &mut Blind, of);
                cost.walk_references = walk.references;
                cost.walk_references_memory = walk.references_memory;
                cost.walk_units = walk.units;
            }
        }
        self.threads[run.thread].cost.add(&cost);
    }
}
