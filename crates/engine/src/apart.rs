//! Others beside the program: their accesses go through the same hardware and are counted apart (SEMANTICS.md §12).

use std::sync::Arc;

use lookaside_trace::{Block, Kind};

use crate::counts::Counts;
use crate::engine::{physical, Engine, KERNEL};
use crate::os::{is_global, to_cycles, translated, HOST_SPACE};
use crate::plan::{WalkPlan, BASE};
use crate::trace_hook::Blind;
use crate::walker::{serve, translate_guest, WalkFor};
use crate::Outcome;

/// What someone beside the program did: counts that are not the program's.
#[derive(Clone, Debug)]
pub struct Apart(Counts);

/// How far someone is: what [`Outcome::modelled_cycles`] is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clock {
    /// Accesses, a cycle each.
    pub accesses: u64,
    /// Cycles of TLB hits and walks.
    pub translation_cycles: f64,
    /// Cycles of stalls beyond the first cache level, and of context switches.
    pub other_cycles: f64,
}

impl Clock {
    /// Cycles of all that is waited for.
    pub fn waiting_cycles(&self) -> f64 {
        self.translation_cycles + self.other_cycles
    }
}

impl Engine {
    /// Empty counts for someone beside the program.
    pub fn apart(&self) -> Apart {
        Apart(Counts::new(&self.plan))
    }

    /// Runs a block that is not the program's: all it does to the hardware and to the process stays, and is counted apart.
    pub fn run_apart(&mut self, block: &Block, apart: &mut Apart) {
        std::mem::swap(&mut self.counts, &mut apart.0);
        self.run(block);
        std::mem::swap(&mut self.counts, &mut apart.0);
    }

    /// The kernel, on the hardware thread of `thread`, reads the entry for `addr` in the table of this level (the leaf table
    /// of base pages being 1) of a process, by its own mapping of all memory: a load of the entry's line, and nested the host's
    /// walk for it. Cycles that the load takes; 0 where the format has no such level.
    pub fn read_entry(&mut self, (process, thread): (u32, u32), addr: u64, level: u32, apart: &mut Apart) -> f64 {
        let plan = Arc::clone(&self.plan);
        let thread = self.thread(process, thread);
        let Some(level) = plan.guest_levels.iter().find(|of| of.level == level) else { return 0.0 };
        let slots = self.parts.slots(&plan, self.threads[thread].hw);
        let va = addr & plan.address_mask;
        let space = self.space(process);
        let entry = plan.guest_memory.entry_address(self.spaces[space].number, level, va);
        let (mut physical, mut units) = (entry, 0);
        if let Some(host) = &plan.host {
            if plan.walks == WalkPlan::CountOnly {
                physical = host.memory.data_address(HOST_SPACE, entry, host.page_shift);
            } else {
                let of = WalkFor { slots: &slots, side: 0, space: 0, id: 0, run_id: 0, hw: 0, va, class: 0 };
                let (parts, tables) = (&mut self.parts, &mut self.tables);
                (physical, units) = translate_guest(&plan, parts, tables, &mut apart.0, &mut Blind, of, entry);
            }
        }
        let load = Kind::Load as usize;
        let route = &slots.data_route[load];
        if !route.is_empty() {
            let position = serve(&mut self.parts.caches, route, load, physical);
            apart.0.data_served[load][position] += 1;
            let server = plan.data_route[load].get(position);
            units += server.map_or(plan.memory_units, |&number| plan.caches[number].hit_units);
        }
        to_cycles(units.into())
    }

    /// A thread's access to a line of which only the data caches are of interest, its translation being at hand: no TLB is asked.
    pub fn touch_line(&mut self, (process, thread): (u32, u32), kind: Kind, addr: u64, apart: &mut Apart) {
        let plan = Arc::clone(&self.plan);
        let thread = self.thread(process, thread);
        let slots = self.parts.slots(&plan, self.threads[thread].hw);
        let owner = self.space(process);
        let owner = if is_global(plan.format, addr) { KERNEL } else { owner };
        let va = translated(plan.format, addr);
        let class = self.spaces[owner].pages.decided(va).unwrap_or(BASE);
        let route = &slots.data_route[kind as usize];
        if !route.is_empty() {
            let physical = physical(&plan, &self.spaces[owner], va, class);
            let position = serve(&mut self.parts.caches, route, kind as usize, physical);
            apart.0.data_served[kind as usize][position] += 1;
        }
    }

    /// Level of the table that holds the leaf entry of a process's page at an address: of base pages, where the size of the page
    /// is not decided yet.
    pub fn leaf_level(&mut self, process: u32, addr: u64) -> u32 {
        let space = self.space(process);
        let class = self.spaces[space].pages.decided(addr & self.plan.address_mask).unwrap_or(BASE);
        self.plan.guest_levels[self.plan.leaf_at[class]].level
    }

    /// How far the program is.
    pub fn clock(&self) -> Clock {
        let (accesses, translation, other) = self.units();
        Clock { accesses, translation_cycles: to_cycles(translation), other_cycles: to_cycles(other) }
    }

    /// How far someone beside it is.
    pub fn clock_apart(&mut self, apart: &mut Apart) -> Clock {
        std::mem::swap(&mut self.counts, &mut apart.0);
        let clock = self.clock();
        std::mem::swap(&mut self.counts, &mut apart.0);
        clock
    }

    /// The outcome with someone else's counts in place of the program's. Rows, touched pages, and loads, stores and instructions
    /// by process are not counted apart: they are everyone's.
    pub fn outcome_apart(&mut self, apart: &mut Apart) -> Outcome {
        std::mem::swap(&mut self.counts, &mut apart.0);
        let outcome = self.outcome();
        std::mem::swap(&mut self.counts, &mut apart.0);
        outcome
    }
}
