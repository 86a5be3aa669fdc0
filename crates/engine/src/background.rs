//! Background activity beside the program, such as a helper thread: its accesses go through the same hardware and are
//! counted separately (`SEMANTICS.md` §12).

use std::sync::Arc;

use lookaside_trace::{Block, Kind};

use crate::classes::BASE;
use crate::context::{WalkRequest, KERNEL};
use crate::counts::EngineCounts;
use crate::data_cache::serve;
use crate::engine::Engine;
use crate::os::{is_global, to_cycles, translated, HOST_SPACE};
use crate::plan::WalkPlan;
use crate::space::physical;
use crate::trace_hook::SeenPart;
use crate::walker::PageWalker;
use crate::{AccessResult, Outcome};

/// Counts of background activity, which are not the program's.
#[derive(Clone, Debug)]
pub struct BackgroundCounts(EngineCounts);

/// The modelled time of the program or of background activity so far: the parts of [`Outcome::modelled_cycles`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModelClock {
    /// Accesses, a cycle each.
    pub accesses: u64,
    /// Cycles of TLB hits and walks.
    pub translation_cycles: f64,
    /// Cycles of stalls beyond the first cache level, and of context switches.
    pub other_cycles: f64,
}

impl ModelClock {
    /// Cycles spent waiting: translation, stalls, switches.
    pub fn waiting_cycles(&self) -> f64 {
        self.translation_cycles + self.other_cycles
    }
}

impl Engine {
    /// Empty counts for background activity.
    pub fn background_counts(&self) -> BackgroundCounts {
        BackgroundCounts(EngineCounts::new(&self.plan))
    }

    /// Runs a block that is not the program's. What it does to the hardware and to the process stays; its counts go to
    /// `background`.
    pub fn run_background(&mut self, block: &Block, background: &mut BackgroundCounts) {
        std::mem::swap(&mut self.counts, &mut background.0);
        self.run(block);
        std::mem::swap(&mut self.counts, &mut background.0);
    }

    /// As [`Self::run_background`], and shows what each recorded access did, but for the references of its walk.
    pub fn run_background_traced(
        &mut self,
        block: &Block,
        background: &mut BackgroundCounts,
        see: &mut impl FnMut(AccessResult),
    ) {
        std::mem::swap(&mut self.counts, &mut background.0);
        self.run_with(block, SeenPart::Waits, see);
        std::mem::swap(&mut self.counts, &mut background.0);
    }

    /// The kernel, on the hardware thread of `thread`, reads the entry for `addr` in the table of this level (the leaf
    /// table of base pages being 1) of a process, by its own mapping of all memory: a load of the entry's line, and
    /// nested the host's walk for it. Cycles that the load takes; 0 where the format has no such level.
    pub fn read_entry(
        &mut self,
        (process, thread): (u32, u32),
        addr: u64,
        level: u32,
        background: &mut BackgroundCounts,
    ) -> f64 {
        let plan = Arc::clone(&self.plan);
        let thread = self.thread(process, thread);
        let Some(level) = plan.guest_levels.iter().find(|of| of.level == level) else { return 0.0 };
        let routing = self.hardware.routing(&plan, self.threads[thread].hw);
        let va = addr & plan.address_mask;
        let space = self.space(process);
        let entry = plan.guest_memory.entry_address(self.spaces[space].number, level, va);
        let (mut physical, mut units) = (entry, 0);
        if let Some(host) = &plan.host {
            if plan.walks == WalkPlan::CountOnly {
                physical = host.memory.data_address(HOST_SPACE, entry, host.page_shift);
            } else {
                let of = WalkRequest { routing: &routing, side: 0, space: 0, id: 0, run_id: 0, hw: 0, va, class: 0 };
                let (hardware, tables) = (&mut self.hardware, &mut self.tables);
                let mut entries = Vec::new();
                let mut cost;
                let walker = PageWalker::new(&plan, hardware, tables, &mut background.0, (&mut entries, None), of);
                (physical, cost) = walker.guest_address(entry);
                if let WalkPlan::AlwaysAt(number) = plan.walks {
                    (0..cost.references).for_each(|_| cost.serve(&plan, Some(number)));
                }
                for entry in entries {
                    let position = serve(&mut self.hardware.caches, &routing.walk_route, Kind::Load as usize, entry);
                    background.0.walk_served[0][position] += 1;
                    cost.serve(&plan, plan.walk_route.get(position).copied());
                }
                units = cost.units;
            }
        }
        let load = Kind::Load as usize;
        let route = &routing.data_route[load];
        if !route.is_empty() {
            let position = serve(&mut self.hardware.caches, route, load, physical);
            background.0.data_served[load][position] += 1;
            let server = plan.data_route[load].get(position);
            units += server.map_or(plan.memory_units, |&number| plan.caches[number].hit_units);
        }
        to_cycles(units.into())
    }

    /// A thread's access to a line of which only the data caches are of interest, its translation being at hand: no TLB
    /// is asked.
    pub fn touch_line(
        &mut self,
        (process, thread): (u32, u32),
        kind: Kind,
        addr: u64,
        background: &mut BackgroundCounts,
    ) {
        let plan = Arc::clone(&self.plan);
        let thread = self.thread(process, thread);
        let routing = self.hardware.routing(&plan, self.threads[thread].hw);
        let owner = self.space(process);
        let owner = if is_global(plan.format, addr) { KERNEL } else { owner };
        let va = translated(plan.format, addr);
        let class = self.spaces[owner].pages.decided(va).unwrap_or(BASE);
        let route = &routing.data_route[kind as usize];
        if !route.is_empty() {
            let physical = physical(&plan, &self.spaces[owner], va, class);
            let position = serve(&mut self.hardware.caches, route, kind as usize, physical);
            background.0.data_served[kind as usize][position] += 1;
        }
    }

    /// Level of the table that holds the leaf entry of a process's page at an address: of base pages, where the size of
    /// the page is not decided yet.
    pub fn leaf_level(&mut self, process: u32, addr: u64) -> u32 {
        let space = self.space(process);
        let class = self.spaces[space].pages.decided(addr & self.plan.address_mask).unwrap_or(BASE);
        self.plan.guest_levels[self.plan.leaf_at[class]].level
    }

    /// The program's modelled time so far.
    pub fn clock(&self) -> ModelClock {
        let (accesses, translation, other) = self.units();
        ModelClock { accesses, translation_cycles: to_cycles(translation), other_cycles: to_cycles(other) }
    }

    /// The modelled time of background activity so far.
    pub fn background_clock(&mut self, background: &mut BackgroundCounts) -> ModelClock {
        std::mem::swap(&mut self.counts, &mut background.0);
        let clock = self.clock();
        std::mem::swap(&mut self.counts, &mut background.0);
        clock
    }

    /// The outcome with the background's counts in place of the program's. Rows, touched pages, and loads, stores and
    /// instructions by process are not kept separately: they are everyone's. It tells of no intervals.
    pub fn background_outcome(&mut self, background: &mut BackgroundCounts) -> Outcome {
        std::mem::swap(&mut self.counts, &mut background.0);
        let outcome = Outcome { intervals: Vec::new(), ..self.outcome() };
        std::mem::swap(&mut self.counts, &mut background.0);
        outcome
    }
}
