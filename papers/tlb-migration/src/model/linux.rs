//! Tables A.16 and A.17: sections 8.1 and 8.2.

use lookaside_harness::ModelResult;
use lookaside_machine::Machine;

use super::gem5::Clock;
use super::medians::Medians;
use crate::interface::Version;
use crate::machines::{Linux, PROCESS_CYCLES, STRIDE_68K};

/// Of section 8.1's benchmark: each core twice.
const RUNS: usize = 8;
/// Pages of Table A.17.
const PAGES: [u32; 9] = [1, 8, 16, 24, 32, 40, 48, 56, 64];

/// What the claims are about.
pub(super) struct MigrationRuns {
    /// Cycles of each run of section 8.1's benchmark, without and with migration.
    pub(super) runs: [Vec<u64>; 2],
}

/// Adds the tables' rows.
pub(super) fn run(machine: &Machine, repetitions: u64, medians: &mut Medians) -> ModelResult<MigrationRuns> {
    let mut clock = Clock::new(1, repetitions);
    let ns = |cycles: u64| cycles as f64 * 1000.0 / machine.clock_mhz;
    let mut told = MigrationRuns { runs: Default::default() };
    for (migrates, column) in [(false, "without"), (true, "with")] {
        let (_, runs) = round_robin(machine, migrates, 1, RUNS)?;
        for (run, cycles) in runs.iter().enumerate() {
            medians.insert(format!("a16-{column}-{:03}", run + 1), clock.median_ns(ns(*cycles)));
        }
        told.runs[usize::from(migrates)] = runs;
    }
    for pages in PAGES {
        let mut of = |migrates| -> ModelResult<f64> {
            let (cycles, _) = round_robin(machine, migrates, pages, 4)?;
            Ok(clock.median_ns(ns(PROCESS_CYCLES + cycles)))
        };
        let (without, with) = (of(false)?, of(true)?);
        medians.insert(format!("a17-without-{pages:03}"), without);
        medians.insert(format!("a17-with-{pages:03}"), with);
        medians.insert(format!("a17-delta-{pages:03}"), ((without - with) * 10.0).round() / 10.0);
    }
    Ok(told)
}

/// The benchmarks' steps: all is flushed; the pages are accessed, data caches flushed, and the thread allowed on the
/// next core alone, and so on. Cycles of all, and of each run's accesses.
fn round_robin(machine: &Machine, migrates: bool, pages: u32, runs: usize) -> ModelResult<(u64, Vec<u64>)> {
    // As many entries as the TLB has: "effectively removing the limit" (chapter 7).
    let cap = machine.tlbs.iter().map(|tlb| tlb.entries).max().filter(|_| migrates);
    let mut linux = Linux::new(machine, Version::V4, cap, pages, STRIDE_68K)?;
    let task = linux.spawn(0)?;
    linux.gem5().flush_caches();
    linux.gem5().flush_tlbs();
    linux.system_call(task)?;
    let numbers: Vec<u32> = (0..pages).map(|page| page * STRIDE_68K).collect();
    let start = linux.gem5().cycles();
    let mut times = Vec::with_capacity(runs);
    for run in 0..runs {
        times.push(linux.access(task, &numbers)?);
        if run + 1 < runs {
            linux.gem5().flush_caches();
            let core = (run + 1) % linux.gem5().cores();
            linux.move_to(task, core)?;
            linux.system_call(task)?;
        }
    }
    Ok((linux.gem5().cycles() - start, times))
}
