//! A paper's experiments on this machine, without a PMU: what the papers share of them.
//!
//! What a figure of the paper's own machine is worth here is nothing; what its text concludes from the figure can hold
//! or not. So figures are shown beside ours and not judged, and the conclusions are rows of their own.

mod estimate;
mod findings;
mod known;
mod setting;

pub use estimate::{estimate, interleaved, Estimate, REPETITIONS};
pub use findings::MetalFindings;
pub use known::{KnownLevel, ProbedLevels};
pub use setting::Setting;

use std::cell::Cell;
use std::time::Instant;

use lookaside_machine::{Machine, PageSize};
use lookaside_probe::{ChainBench, Halt, LevelReport, Metal};

use crate::reproduction::Reproduction;

/// A paper's experiments on the metal.
#[derive(Clone, Copy, Debug)]
pub struct MetalExperiments {
    /// The published values of its microbenchmarks, as TOML.
    pub values: &'static str,
    /// Runs its microbenchmarks.
    pub run: RunMetal,
    /// Runs what takes longer, with threads and memory of its own, and adds its rows.
    pub run_longer: RunLonger,
}

/// Measures, where the levels are known or why not; tells what comes next; puts what it finds into the last.
pub type RunMetal =
    fn(&mut ChainBench<'_>, &Setting, &ProbedLevels, &mut dyn FnMut(&str), &mut MetalFindings) -> Result<(), Halt>;

/// Adds what it finds; tells what comes next.
pub type RunLonger = fn(&mut Reproduction, LongerRun<'_>, &mut dyn FnMut(&str));

/// What the longer experiments are given, once the microbenchmarks are done.
pub struct LongerRun<'a> {
    /// This machine's TLBs, where they are given.
    pub given: Option<Machine>,
    /// Its levels as the probe found them for the microbenchmarks; none where they are given.
    pub levels: Vec<LevelReport>,
    /// Most bytes to measure with, if the user said.
    pub memory_bytes: Option<u64>,
    /// Chooses pages and orders.
    pub seed: u64,
    /// Why to stop, once there is a reason.
    pub halt: &'a (dyn Fn() -> Option<Halt> + Sync),
}

/// Why an experiment cannot be done in the memory that is allowed.
pub fn too_few(needed: usize, bench: &ChainBench<'_>) -> String {
    format!("needs {needed} pages in memory, {} are allowed (--memory)", bench.max_pages())
}

/// Runs microbenchmarks on a machine. `halt` is asked before all samples: what is known by then is given, and with it
/// why measuring ended before its end. `progress` is told what comes next.
pub(crate) fn measure(
    run: RunMetal,
    metal: &mut dyn Metal,
    setting: &Setting,
    halt: &dyn Fn() -> Option<Halt>,
    progress: &mut dyn FnMut(&str),
) -> (MetalFindings, Option<String>) {
    let emulator = metal.emulator();
    let began = Instant::now();
    let searching = Cell::new(setting.given.is_none());
    let too_long = || searching.get() && began.elapsed() > setting.search;
    let halt = || {
        let halt = emulator.clone().map(Halt::Emulated).or_else(halt);
        halt.or_else(|| too_long().then_some(Halt::ShareUp(setting.search)))
    };
    let mut findings = MetalFindings { assumptions: metal.remarks(), ..MetalFindings::default() };
    let mut bench = ChainBench::new(metal, PageSize::K4, setting.seed, &halt);
    findings.assumptions.push(format!(
        "{:.3} core cycles a tick of the timer, by a chain of dependent additions; seed {}",
        bench.cycles_per_tick(),
        setting.seed
    ));
    let known = match &setting.given {
        Some(machine) => {
            findings.assumptions.push(format!(
                "its TLBs are as the description \"{}\" has them; they were not looked for",
                machine.name
            ));
            ProbedLevels::given(&mut bench, machine, progress)
        }
        None => ProbedLevels::find(&mut bench, progress, &mut findings.levels),
    };
    searching.set(false);
    let ended = known.and_then(|known| (run)(&mut bench, setting, &known, progress, &mut findings));
    let halted = ended.err().map(|halt| halt.to_string());
    (findings, halted)
}
