//! Neighbours that press on the shared caches.

use lookaside_engine::{BackgroundCounts, Engine};
use lookaside_machine::Machine;
use lookaside_stats::SplitMix64;
use lookaside_trace::{Block, Event, Kind};

use super::baker::{BakeModelError, Stressor, TouchCost, TouchMethod};

/// Where a stressor's memory begins: below the user half of every 64-bit format.
const BASE: u64 = 1 << 36;
const LINE_BYTES: u64 = 64;
/// Accesses at a time.
const STEP: u64 = 16;

/// A stressor under way.
pub(super) struct RunningStressor {
    stressor: Stressor,
    lines: u64,
    /// Line that is accessed next, of a walk.
    next: u64,
    random: SplitMix64,
    now: f64,
    /// Cycles that it has waited for, by its counts.
    waited: f64,
    pace: TouchCost,
    block: Block,
    counts: BackgroundCounts,
}

impl RunningStressor {
    /// The number-th stressor, in a process and on a core of its own, at time 0. `taken` cores are others'.
    pub(super) fn new(
        stressor: Stressor,
        number: u32,
        taken: u32,
        machine: &Machine,
        engine: &mut Engine,
    ) -> Result<Self, BakeModelError> {
        let core = taken + number;
        if core >= machine.topology.cores_per_socket {
            return Err(BakeModelError::Stressors {
                machine: machine.name.clone(),
                cores: machine.topology.cores_per_socket,
            });
        }
        // No program has such a process: Linux's pids end at 2^22.
        let mut block = Block { process: u32::MAX - number, thread: 1, ..Block::default() };
        block.push_event(Event::Migrate { cpu: core * machine.topology.threads_per_core });
        let mut counts = engine.background_counts();
        engine.run_background(&block, &mut counts);
        Ok(Self {
            stressor,
            lines: (stressor.bytes() / LINE_BYTES).max(1),
            next: 0,
            random: SplitMix64::new(number.into()),
            now: 0.0,
            waited: 0.0,
            pace: TouchCost::zen3(TouchMethod::Entries),
            block,
            counts,
        })
    }

    /// When it makes the next accesses.
    pub(super) fn now(&self) -> f64 {
        self.now
    }

    /// Makes them.
    pub(super) fn step(&mut self, engine: &mut Engine) {
        self.block.clear();
        for _ in 0..STEP {
            let line = match self.stressor {
                Stressor::Walk { .. } => self.next,
                Stressor::Random { .. } => self.random.next_u64() % self.lines,
            };
            self.next = (self.next + 1) % self.lines;
            self.block.push(Kind::Load, BASE + line * LINE_BYTES);
        }
        engine.run_background(&self.block, &mut self.counts);
        let waited = engine.background_clock(&mut self.counts).waiting_cycles();
        // A loop of a load each, as many under way as a core has room for.
        let latency = waited - std::mem::replace(&mut self.waited, waited);
        self.now += (STEP as f64).max(latency / self.pace.in_flight);
    }
}
