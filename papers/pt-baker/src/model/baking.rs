//! All runs of the helper beside the programs.

use std::collections::BTreeMap;
use std::fmt;

use lookaside_harness::{in_parallel, Effort, ModelResult};
use lookaside_techniques::bake::{
    model, BakeResult, BakedProgram as ModelProgram, HelperPlacement, ModelledBaker, ProgramFlow, TouchMethod,
};
use lookaside_timing::CoreParameters;
use lookaside_trace::{Block, Source, TraceError, TraceInfo};

use super::programs::{
    divisor, record, setup, stressors, PaperProgram, ProgramSystem, RecordedProgram, MEMORY_GB_S, PROGRAMS,
};

/// NOPs between touches: on LibLinear all (Figure 6.10), else every other.
const NOPS: [u64; 5] = [0, 30, 100, 300, 1000];
/// Microseconds of sleep after a round, on the paper's machine. In the model rounds are shorter by its divisor, and so
/// are these. On LibLinear all (Figure 6.11), else every other.
const SLEEPS: [u64; 5] = [100, 300, 1000, 3000, 10_000];
/// Sleeps beside stressors.
const PRESSED_SLEEPS: [Throttle; 2] = [Throttle::Sleep(100), Throttle::Sleep(1000)];
/// Part of a program's accesses that are not counted.
const WARM: f64 = 0.4;

/// A helper's setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ThrottledHelper {
    pub(super) way: HelperMethod,
    pub(super) throttle: Throttle,
    pub(super) sibling: bool,
}

/// [`TouchMethod`], in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HelperMethod {
    User,
    Prefetch,
    Kernel,
}

/// What slows it down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Throttle {
    Nops(u64),
    Sleep(u64),
}

/// What a run came to.
#[derive(Clone, Debug)]
pub(super) struct BakingRun {
    pub(super) cycles: f64,
    pub(super) accesses: u64,
    /// Walk references served by L2, by L3, by memory.
    pub(super) walks_by: [u64; 3],
    /// The program's own lines from memory.
    pub(super) data_memory: u64,
}

/// All of it, by program, system and setting.
pub(super) struct BakingRuns {
    effort: Effort,
    pub(super) runs: BTreeMap<(&'static str, ProgramSystem, Option<ThrottledHelper>), BakingRun>,
}

/// Runs everything, one program after the other.
pub(super) fn run(effort: Effort, progress: &mut dyn FnMut(&str)) -> ModelResult<BakingRuns> {
    let mut study = BakingRuns { effort, runs: BTreeMap::new() };
    for (number, program) in PROGRAMS.iter().enumerate() {
        let what = format!("{} ({} of {})", program.name, number + 1, PROGRAMS.len());
        progress(&format!("{what}: building its input"));
        let recorded = record(program, effort)?;
        let all = runs(program.name);
        progress(&format!("{what}: {} runs", all.len()));
        for (run, came) in all.iter().zip(in_parallel(&all, |run| one(program, &recorded, run, effort))) {
            study.runs.insert((program.name, run.0, run.1), came?);
        }
    }
    Ok(study)
}

/// What is run of a program.
fn runs(program: &str) -> Vec<(ProgramSystem, Option<ThrottledHelper>)> {
    let how = |way, throttle| ThrottledHelper { way, throttle, sibling: false };
    let step = if program == "liblinear" { 1 } else { 2 };
    let sleeps = || SLEEPS.iter().step_by(step).map(|microseconds| Throttle::Sleep(*microseconds));
    let throttles = || NOPS.iter().step_by(step).map(|nops| Throttle::Nops(*nops)).chain(sleeps());
    let systems = [
        ProgramSystem::Native,
        ProgramSystem::Nested,
        ProgramSystem::NestedRuns,
        ProgramSystem::Huge,
        ProgramSystem::Cache,
        ProgramSystem::Streams,
    ];
    let nested_streams = [ProgramSystem::NestedStreams, ProgramSystem::NestedRunsStreams];
    let mut runs: Vec<_> = systems.into_iter().chain(nested_streams).map(|system| (system, None)).collect();
    // Figure 6.7, by the sleeps of Figure 6.4.
    for system in nested_streams {
        runs.extend(PRESSED_SLEEPS.map(|sleep| (system, Some(how(HelperMethod::Kernel, sleep)))));
    }
    for way in [HelperMethod::User, HelperMethod::Kernel] {
        runs.extend(throttles().map(|throttle| (ProgramSystem::Native, Some(how(way, throttle)))));
        let nested = [Throttle::Nops(0), Throttle::Nops(100), Throttle::Sleep(1000)];
        runs.extend(nested.map(|throttle| (ProgramSystem::Nested, Some(how(way, throttle)))));
        runs.extend(nested[1..].iter().map(|throttle| (ProgramSystem::NestedRuns, Some(how(way, *throttle)))));
        runs.push((ProgramSystem::Huge, Some(how(way, Throttle::Nops(1000)))));
        // Figures 6.3 and 6.4; 6.5.
        let mut pressed = PRESSED_SLEEPS.to_vec();
        if program == "bc" {
            pressed.push(Throttle::Nops(100));
        }
        let pressed = pressed.into_iter().map(|throttle| Some(how(way, throttle)));
        runs.extend(pressed.flat_map(|how| [(ProgramSystem::Cache, how), (ProgramSystem::Streams, how)]));
    }
    // Figures 6.8 and 6.9.
    if ["graph500", "liblinear", "bc"].contains(&program) {
        for sleep in sleeps() {
            let sibling = |way| ThrottledHelper { sibling: true, ..how(way, sleep) };
            let hows = [sibling(HelperMethod::User), sibling(HelperMethod::Kernel), how(HelperMethod::Prefetch, sleep)];
            runs.extend(hows.map(|how| (ProgramSystem::Native, Some(how))));
        }
    }
    runs
}

/// One run.
fn one(
    program: &PaperProgram,
    recorded: &RecordedProgram,
    run: &(ProgramSystem, Option<ThrottledHelper>),
    effort: Effort,
) -> ModelResult<BakingRun> {
    let (system, how) = run;
    let setup = setup(*system, effort, recorded.log2_bytes)?;
    let cycles_a_microsecond = setup.machine.clock_mhz;
    let baker = how.map(|how| {
        let way = match how.way {
            HelperMethod::User => TouchMethod::Load,
            HelperMethod::Prefetch => TouchMethod::Prefetch,
            HelperMethod::Kernel => TouchMethod::Entries,
        };
        let (nops, sleep) = match how.throttle {
            Throttle::Nops(nops) => (nops, 0),
            Throttle::Sleep(microseconds) => (0, microseconds),
        };
        ModelledBaker {
            nops,
            sleep_cycles: sleep as f64 * cycles_a_microsecond / divisor(effort) as f64,
            placement: if how.sibling { HelperPlacement::SmtSibling } else { HelperPlacement::OtherCore },
            // An entry for each huge page, eight to a line (section 4.4.1).
            stride_pages: if *system == ProgramSystem::Huge { 8 * 512 } else { 8 },
            ..ModelledBaker::new(way, 1, vec![recorded.baked.clone()])
        }
    });
    let flow = ProgramFlow::Known {
        core: CoreParameters::ZEN3,
        flows: &recorded.flows,
        instructions_per_access: program.instructions_per_access,
    };
    let model_of = ModelProgram { warm_accesses: (recorded.accesses as f64 * WARM) as u64, flow };
    let mut source = RepeatedBlocks { info: TraceInfo::default(), blocks: &recorded.blocks };
    Ok(BakingRun::of(&model(setup, &mut source, &model_of, baker.as_ref(), &stressors(*system, effort))?))
}

impl BakingRun {
    fn of(baked: &BakeResult) -> Self {
        let by = |name: &str| {
            let of = baked.program.data.walk_references_by_server.iter().find(|(server, _)| server == name);
            of.map_or(0, |(_, count)| *count)
        };
        Self {
            cycles: baked.program_cycles,
            accesses: baked.program.data.accesses,
            walks_by: [by("l2"), by("l3"), by("memory")],
            data_memory: baked.program.caches.last().map_or(0, |last| last.data_lookups - last.data_hits),
        }
    }

    /// Percent of walk references served by L2 (0), L3 (1), memory (2).
    pub(super) fn share(&self, server: usize) -> f64 {
        100.0 * self.walks_by[server] as f64 / self.walks_by.iter().sum::<u64>().max(1) as f64
    }

    /// By how many percent fewer walk references another run has served by memory.
    pub(super) fn fall(&self, other: &Self) -> f64 {
        let of = |came: &Self| came.walks_by[2] as f64 / came.accesses as f64;
        100.0 * (1.0 - of(other) / of(self))
    }

    pub(super) fn per_access(&self) -> f64 {
        self.cycles / self.accesses as f64
    }
}

/// A program's accesses once more.
struct RepeatedBlocks<'a> {
    info: TraceInfo,
    blocks: &'a [Block],
}

impl Source for RepeatedBlocks<'_> {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        let Some((next, rest)) = self.blocks.split_first() else { return Ok(false) };
        block.clone_from(next);
        self.blocks = rest;
        Ok(true)
    }
}

impl BakingRuns {
    /// What the model was told.
    pub(super) fn assumptions(&self) -> Vec<String> {
        let divisor = divisor(self.effort);
        let instructions: Vec<String> =
            PROGRAMS.iter().map(|p| format!("{} {}", p.name, p.instructions_per_access)).collect();
        let CoreParameters { width, window, walkers, miss_buffers, store_queue } = CoreParameters::ZEN3;
        [
            format!(
                "baking, sizes: programs of 1/{divisor} of Table 5.2's memory on a machine with 1/{divisor} of L2, L3, L2 DTLB and PDE cache, so \
                 that tables and caches keep their ratio; sleep is 1/{divisor} too. The programs are Lookaside's own, a window of each"
            ),
            format!("frames are scattered, nothing is coalesced; replacement LRU; the first {:.0} % of a window is not counted", 100.0 * WARM),
            format!(
                "time: a core (crates/timing/RULES.md) of {width} instructions a cycle, a window of {window}, {walkers} walkers, \
                 {miss_buffers} misses under way, {store_queue} stores, as Zen 3 has (AMD's guide for family 19h); a load waits for \
                 the one that its address comes from. Instructions an access, counted: {}. Memory \
                 brings the program's lines at {MEMORY_GB_S} GB/s (Table 5.1: DDR4 at 4000 MHz; two channels of 8 bytes). No wrongly \
                 predicted branches, no bandwidth for helper, stressors and what is written back, no latency of computation, no \
                 prefetchers, no shared pipeline of SMT",
                instructions.join(", ")
            ),
            "helper: a touch takes 5 cycles and one a NOP, or its latency over 6 walks or 24 reads of entries under way, whichever is more \
             (walkers and miss buffers of Zen 3; the loop's cycles assumed; none fitted)"
                .into(),
            "virtual: the host backs a guest of twice the program's memory with base pages; walk caches for the host's tables as for the \
             guest's, and 16 whole translations (assumed). Judged with scattered frames as natively; beside it, with contiguous ones"
                .into(),
            "stress-ng, on cores of their own beside the same L3: `cache` reads lines of as much memory as L3 at random, each of two `stream` \
             walks through four times as much; 24 reads under way (assumed). Beside programs of a virtual machine they run in it, too"
                .into(),
        ]
        .into()
    }

    pub(super) fn base(&self, program: &'static str, system: ProgramSystem) -> &BakingRun {
        &self.runs[&(program, system, None)]
    }

    pub(super) fn get(&self, program: &'static str, system: ProgramSystem, how: ThrottledHelper) -> &BakingRun {
        &self.runs[&(program, system, Some(how))]
    }

    /// All runs of a program with a helper of this kind.
    pub(super) fn of(
        &self,
        program: &'static str,
        system: ProgramSystem,
        by: HelperMethod,
        sibling: bool,
    ) -> impl Iterator<Item = (ThrottledHelper, &BakingRun)> {
        let all = self.baked(system, by).filter(move |(of, how, _)| *of == program && how.sibling == sibling);
        all.map(|(_, how, came)| (how, came))
    }

    /// All runs with a helper of this kind.
    pub(super) fn baked(
        &self,
        system: ProgramSystem,
        by: HelperMethod,
    ) -> impl Iterator<Item = (&'static str, ThrottledHelper, &BakingRun)> {
        let all =
            self.runs.iter().filter_map(|((program, system, how), came)| Some((*program, *system, (*how)?, came)));
        let all = all.filter(move |(_, of, how, _)| *of == system && how.way == by);
        all.map(|(program, _, how, came)| (program, how, came))
    }

    /// By how much less time a program takes: percent of its time with the helper.
    pub(super) fn gain(&self, program: &'static str, system: ProgramSystem, came: &BakingRun) -> f64 {
        100.0 * (self.base(program, system).per_access() / came.per_access() - 1.0)
    }

    /// The best of them.
    pub(super) fn best(
        &self,
        program: &'static str,
        system: ProgramSystem,
        by: HelperMethod,
        sibling: bool,
    ) -> (f64, ThrottledHelper) {
        let none = ThrottledHelper { way: by, throttle: Throttle::Nops(0), sibling };
        let gains = self.of(program, system, by, sibling).map(|(how, came)| (self.gain(program, system, came), how));
        gains.fold((f64::NEG_INFINITY, none), |best, gain| if gain.0 > best.0 { gain } else { best })
    }
}

impl fmt::Display for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Throttle::Nops(0) => f.write_str("without pause"),
            Throttle::Nops(nops) => write!(f, "{nops} NOPs"),
            Throttle::Sleep(microseconds) => write!(f, "sleep of {} ms", *microseconds as f64 / 1000.0),
        }
    }
}
