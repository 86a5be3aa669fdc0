//! Blocks and the kernel's reads beside the program, counted apart (SEMANTICS.md §12).

use lookaside_engine::os::{self, to_cycles};
use lookaside_engine::{CacheCounts, Engine, Outcome, Setup, TlbCounts};
use lookaside_machine::{PageSize, Stage};
use lookaside_trace::{Block, Kind};
use proptest::prelude::*;
use std::collections::BTreeMap;

use super::hardware::{total_threads, TranslationRequest};
use super::model::{serves, SideCounts, Twin, TwinStep};
use super::rows::CostCounts;

/// Counts that are not the program's.
pub struct TwinBackground {
    sides: [SideCounts; 2],
    tlbs: Vec<TlbCounts>,
    hits_by_size: Vec<BTreeMap<PageSize, u64>>,
    walk_caches: Vec<CacheCounts>,
    caches: Vec<CacheCounts>,
    context_switches: u64,
    shootdowns: u64,
}

/// What someone does.
pub enum BackgroundStep<'a> {
    Run(&'a Block),
    /// The kernel reads the entry for the block's first address, at this level.
    Read(&'a Block, u32),
    /// The lines of the block's accesses are touched.
    Touch(&'a Block),
}

impl Twin {
    pub fn apart(&self) -> TwinBackground {
        let fresh = Twin::new(&self.setup);
        TwinBackground {
            sides: fresh.sides,
            tlbs: fresh.hardware.tlb_counts,
            hits_by_size: fresh.hardware.hits_by_size,
            walk_caches: fresh.hardware.walk_cache_counts,
            caches: fresh.hardware.cache_counts,
            context_switches: 0,
            shootdowns: 0,
        }
    }

    pub fn swap(&mut self, apart: &mut TwinBackground) {
        std::mem::swap(&mut self.sides, &mut apart.sides);
        std::mem::swap(&mut self.hardware.tlb_counts, &mut apart.tlbs);
        std::mem::swap(&mut self.hardware.hits_by_size, &mut apart.hits_by_size);
        std::mem::swap(&mut self.hardware.walk_cache_counts, &mut apart.walk_caches);
        std::mem::swap(&mut self.hardware.cache_counts, &mut apart.caches);
        std::mem::swap(&mut self.context_switches, &mut apart.context_switches);
        std::mem::swap(&mut self.shootdowns, &mut apart.shootdowns);
    }

    /// From here on what is counted is kept apart, or no longer.
    pub fn count_apart(&mut self, apart: bool) {
        if std::mem::replace(&mut self.warms_up, apart) != apart {
            self.swap_warm_up();
        }
    }

    pub fn swap_warm_up(&mut self) {
        // Nobody asks for what was counted before.
        let mut apart = self.warm_up.take().unwrap_or_else(|| Box::new(self.apart()));
        self.swap(&mut apart);
        self.warm_up = Some(apart);
    }

    /// The interval counts from here on.
    pub fn counts(&mut self) {
        if self.warms_up {
            self.lines = Some(self.hardware.last_cache_lines());
        }
        self.count_apart(false);
    }

    pub fn filled_lines(&self) -> u64 {
        self.lines.map_or(0, |before| self.hardware.last_cache_lines().saturating_sub(before))
    }

    /// An interval begins.
    pub fn interval(&mut self, cpu_ns: u64) {
        self.count_apart(false);
        if !self.intervals.is_empty() {
            self.filled.push(self.filled_lines());
        }
        self.lines = None;
        self.intervals.push((cpu_ns, self.interval_units()));
        self.count_apart(true);
    }

    /// Accesses, walks, and units of walks, of translation and of all else, so far.
    pub fn interval_units(&self) -> [u64; 5] {
        let sum = |of: fn(&SideCounts) -> u64| self.sides.iter().map(of).sum::<u64>();
        let switches = self.context_switches * os::to_units(self.setup.machine.context_switch.cycles);
        [
            sum(|side| side.accesses),
            sum(|side| side.counts.walks),
            sum(|side| side.counts.walk_units),
            sum(|side| side.counts.walk_units + side.counts.tlb_hit_units),
            sum(|side| side.stall_units) + switches,
        ]
    }

    /// Cycles of the read.
    fn read_entry(&mut self, process: u32, thread: u32, addr: u64, level: u32) -> f64 {
        let seen = self.threads.len();
        let total = total_threads(&self.setup.machine);
        let hardware_thread = *self.threads.entry((process, thread)).or_insert(seen % total);
        let (mut step, mut counts) = (TwinStep::default(), CostCounts::default());
        let va = os::translated(self.format, addr);
        let units = self.hardware.read_entry(hardware_thread, u64::from(process), va, level, &mut step, &mut counts);
        if let Some(server) = step.data_server {
            let first = self.hardware.first_load_units();
            let all = self.hardware.load_units(server);
            self.sides[0].stall_units += all.saturating_sub(first);
        }
        self.sides[0].counts.add(&counts);
        for (stage, level, _, server) in &step.references {
            *self.sides[0].by_server.entry(*server).or_default() += 1;
            *self.sides[0].by_table.entry((*stage == Stage::Host, *level)).or_default() += 1;
        }
        to_cycles(units.into())
    }
}

impl Twin {
    fn touch_lines(&mut self, block: &Block) {
        let seen = self.threads.len();
        let total = total_threads(&self.setup.machine);
        let hardware_thread = *self.threads.entry((block.process, block.thread)).or_insert(seen % total);
        for (&kind, &addr) in block.kind.iter().zip(&block.addr) {
            let global = os::is_global(self.format, addr);
            let va = os::translated(self.format, addr);
            let leaf = self.decided_leaf(global, block.process, va);
            let r =
                TranslationRequest { hardware_thread, process: block.process, global, kind: serves(kind), va, leaf };
            self.sides[usize::from(kind == Kind::Fetch)].stall_units += self.hardware.touch_line(&r);
        }
    }
}

/// The twin's outcome by the program's counts or by the others', and what reads took.
fn twin(setup: &Setup, deeds: &[(BackgroundStep<'_>, bool)], of_others: bool) -> (Outcome, Vec<f64>) {
    let mut twin = Twin::new(setup);
    let mut apart = twin.apart();
    let mut took = Vec::new();
    for (deed, is_apart) in deeds {
        if *is_apart {
            twin.swap(&mut apart);
        }
        match deed {
            BackgroundStep::Run(block) => twin.run(block),
            BackgroundStep::Read(block, level) => {
                took.push(twin.read_entry(block.process, block.thread, block.addr[0], *level));
            }
            BackgroundStep::Touch(block) => twin.touch_lines(block),
        }
        if *is_apart {
            twin.swap(&mut apart);
        }
    }
    if of_others {
        twin.swap(&mut apart);
        twin.intervals.clear();
    }
    (twin.finish(), took)
}

/// Every third or so of the blocks is not the program's, some are reads, or touched lines.
pub fn check(setup: &Setup, blocks: &[Block], dice: u64) -> Result<(), TestCaseError> {
    let deeds: Vec<(BackgroundStep<'_>, bool)> = blocks
        .iter()
        .enumerate()
        .map(|(i, block)| {
            let die = os::mix(dice, i as u64, 0, 0);
            match die % 7 {
                0 | 1 if !block.addr.is_empty() => (BackgroundStep::Read(block, (die >> 8) as u32 % 6), true),
                2 => (BackgroundStep::Run(block), true),
                3 if !block.addr.is_empty() => (BackgroundStep::Touch(block), true),
                _ => (BackgroundStep::Run(block), false),
            }
        })
        .collect();
    let mut engine = Engine::new(setup.clone()).map_err(|e| TestCaseError::fail(e.to_string()))?;
    let mut apart = engine.background_counts();
    let mut took = Vec::new();
    for (deed, is_apart) in &deeds {
        match deed {
            BackgroundStep::Run(block) if *is_apart => engine.run_background(block, &mut apart),
            BackgroundStep::Run(block) => engine.run(block),
            BackgroundStep::Read(block, level) => {
                let who = (block.process, block.thread);
                took.push(engine.read_entry(who, block.addr[0], *level, &mut apart));
            }
            BackgroundStep::Touch(block) => {
                for (&kind, &addr) in block.kind.iter().zip(&block.addr) {
                    engine.touch_line((block.process, block.thread), kind, addr, &mut apart);
                }
            }
        }
    }
    let (mut own, reads) = twin(setup, &deeds, false);
    let (mut others, _) = twin(setup, &deeds, true);
    prop_assert_eq!(took, reads, "cycles of reads: the engine's are left");
    let outcomes = [engine.outcome(), engine.background_outcome(&mut apart)];
    prop_assert_eq!(outcomes[0].table_bytes + outcomes[1].table_bytes, own.table_bytes);
    (own.table_bytes, others.table_bytes) = (outcomes[0].table_bytes, outcomes[1].table_bytes);
    for (outcome, clock) in outcomes.iter().zip([engine.clock(), engine.background_clock(&mut apart)]) {
        let accesses = outcome.data.accesses + outcome.fetch.accesses;
        prop_assert_eq!(clock.accesses, accesses);
        prop_assert_eq!(clock.translation_cycles, outcome.translation_cycles());
        prop_assert_eq!(accesses as f64 + clock.waiting_cycles(), outcome.modelled_cycles());
    }
    prop_assert_eq!(&outcomes[0], &own, "the program's; the engine's is left");
    prop_assert_eq!(&outcomes[1], &others, "the others'; the engine's is left");
    Ok(())
}
