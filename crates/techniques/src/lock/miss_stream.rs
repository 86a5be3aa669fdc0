//! The stream of first-level misses: what choosing pages needs of a program, often a thousandth of its accesses.
//!
//! A lock beyond the first level leaves the first level as it is. So the accesses that miss there are the same whatever
//! is locked, and the later levels, which see no others, do the same over them alone: lookups, hits and walks are
//! exact, random victims too. Data caches see fewer lines, so that a walk finds its tables cached more often and costs
//! less.

use lookaside_engine::{Detail, Engine, Setup};
use lookaside_machine::Tlb;
use lookaside_trace::{Block, Event};

use super::target;
use crate::plan::PlanError;

/// Accesses that missed the first level, and a setup where base pages ask no first level.
#[derive(Debug)]
pub struct MissStream {
    /// The setup.
    pub setup: Setup,
    /// The accesses, with the events between them but for those of left-out accesses.
    pub blocks: Vec<Block>,
}

impl MissStream {
    /// Of a program on a machine, for locks in the array `tlb`; `None` where accesses may come to that array without
    /// having missed another.
    ///
    /// # Errors
    /// A setup that can't be run; no such array.
    pub fn of(base: &Setup, tlb: &str, blocks: &[Block]) -> Result<Option<Self>, PlanError> {
        let array = target::array(&base.machine, tlb)?;
        let smallest = base.machine.page_table.format.page_sizes().into_iter().min();
        let tlbs = &base.machine.tlbs;
        let Some(first) = tlbs.iter().map(|tlb| tlb.level).min() else { return Ok(None) };
        let is_first = |tlb: &&Tlb| tlb.level == first && tlb.page_sizes.iter().copied().min() == smallest;
        let missed_before = |kind| tlbs.iter().filter(is_first).any(|tlb| tlb.serves.contains(kind));
        if array.level == first || !array.serves.iter().all(missed_before) {
            return Ok(None);
        }
        let mut setup = base.clone();
        // An array of the largest pages alone takes no part in accesses to base pages, and keeps its number in the
        // file, which random victims depend on.
        let largest = base.machine.page_table.format.page_sizes().into_iter().max();
        for tlb in setup.machine.tlbs.iter_mut().filter(|tlb| tlb.level == first) {
            tlb.page_sizes = largest.into_iter().collect();
        }
        let mut run = base.clone();
        run.detail = Detail::Totals;
        run.locks.clear();
        let mut engine = Engine::new(run)?;
        let blocks = blocks.iter().map(|block| missed(&mut engine, block, first)).collect();
        Ok(Some(Self { setup, blocks }))
    }
}

/// What of a block missed a level, in a run under way.
fn missed(engine: &mut Engine, block: &Block, level: u32) -> Block {
    let mut lean = Block { process: block.process, thread: block.thread, ..Block::default() };
    // How many accesses were kept before each position.
    let mut before = Vec::with_capacity(block.len() + 1);
    engine.run_traced(block, &mut |result| {
        let i = before.len();
        before.push(lean.addr.len() as u32);
        if result.hit.is_none_or(|(hit_level, _)| hit_level > level) {
            lean.push(block.kind[i], block.addr[i]);
        }
    });
    before.push(lean.addr.len() as u32);
    let of_left_out = |event: &Event| matches!(event, Event::Repeats { .. });
    for (position, event) in block.events.iter().filter(|(_, event)| !of_left_out(event)) {
        let last = before.len() - 1;
        lean.events.push((before[(*position as usize).min(last)], event.clone()));
    }
    lean
}
