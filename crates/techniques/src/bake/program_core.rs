//! The program's core: the engine says what each access waits for, the core what of that it waits for by turns.

use lookaside_engine::{BackgroundCounts, Engine, ModelClock};
use lookaside_machine::{Machine, Serves};
use lookaside_timing::{AddressFlow, CoreParameters, MemoryTimes, TimedAccess, TimedCore};
use lookaside_trace::{Block, Kind};

use super::baker::{at_least, BakeModelError, ProgramFlow};

/// A program on its core.
pub(super) struct ProgramCore<'a> {
    core: TimedCore,
    flow: ProgramFlow<'a>,
    /// Cycles of an access that waits for nothing.
    hit_cycles: f64,
    /// Blocks begun, and accesses of the last one.
    blocks: usize,
    accesses: usize,
    /// Of an instruction, between two accesses.
    instructions: f64,
    /// The engine's clocks after the last step: that of what counts, of what warms up.
    clocks: [ModelClock; 2],
}

impl<'a> ProgramCore<'a> {
    /// At cycle 0.
    pub(super) fn new(flow: ProgramFlow<'a>, machine: &Machine) -> Result<Self, BakeModelError> {
        let (core, hit_cycles) = match flow {
            // The engine's clock counts a cycle an access, too.
            ProgramFlow::Chained => (CoreParameters::default(), 1.0),
            ProgramFlow::Known { core, instructions_per_access, .. } => {
                at_least("program.instructions_per_access", instructions_per_access, 1.0)?;
                let loads = machine.caches.iter().filter(|cache| cache.serves.contains(&Serves::Load));
                (core, loads.min_by_key(|cache| cache.level).map_or(1.0, |first| first.hit_cycles))
            }
        };
        let memory = MemoryTimes {
            walk_reference_cycles: machine.walk_memory_cycles(),
            line_cycles: machine.memory_line_cycles(),
        };
        let core = TimedCore::new(core, memory);
        Ok(Self { core, flow, hit_cycles, blocks: 0, accesses: 0, instructions: 0.0, clocks: Default::default() })
    }

    /// What is run from here on is of the next block.
    pub(super) fn next_block(&mut self) {
        self.blocks += 1;
        self.accesses = 0;
    }

    /// Runs the next accesses of the block. `counts`: those of what warms up or of what counts, which nobody else adds to.
    pub(super) fn run(&mut self, engine: &mut Engine, step: &Block, is_warm: bool, counts: &mut BackgroundCounts) {
        let (mut at, mut told) = (0, 0.0);
        engine.run_background_traced(step, counts, &mut |result| {
            let (flow, instructions) = self.next_flow();
            self.core.access(&TimedAccess {
                is_store: step.kind[at] == Kind::Store,
                address: step.addr[at],
                flow,
                instructions,
                hit_cycles: self.hit_cycles,
                translation_cycles: result.cycles,
                walks: result.hit.is_none(),
                walk_memory_references: result.memory_references as u32,
                data_cycles: result.stall_cycles,
                is_from_memory: result.is_from_memory,
            });
            told += 1.0 + result.cycles + result.stall_cycles;
            at += 1;
        });
        let after = engine.background_clock(counts);
        let before = std::mem::replace(&mut self.clocks[usize::from(is_warm)], after);
        let accesses = (after.accesses - before.accesses) as f64;
        // Left-out repeats and context switches.
        self.core.stall(accesses + after.waiting_cycles() - before.waiting_cycles() - told);
    }

    /// Cycles so far.
    pub(super) fn cycles(&self) -> f64 {
        self.core.cycles()
    }

    /// Where the next access's address comes from, and its instructions.
    fn next_flow(&mut self) -> (AddressFlow, u32) {
        let at = self.accesses;
        self.accesses += 1;
        match self.flow {
            ProgramFlow::Chained => (AddressFlow::CHAINED, 1),
            ProgramFlow::Known { flows, instructions_per_access, .. } => {
                let flow = flows.get(self.blocks - 1).and_then(|block| block.get(at));
                self.instructions += instructions_per_access;
                let whole = self.instructions.floor();
                self.instructions -= whole;
                (flow.copied().unwrap_or_default(), whole as u32)
            }
        }
    }
}
