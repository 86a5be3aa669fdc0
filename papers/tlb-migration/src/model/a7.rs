//! Tables A.1 to A.7.

use lookaside_harness::{in_parallel, ModelResult};
use lookaside_machine::Machine;

use super::medians::{median, Medians};
use crate::machines::{A7Benchmark, Restore, Steps, STRIDE_4K, STRIDE_68K};

/// Pages of Tables A.3 to A.7.
const PAGES: [u32; 13] = [1, 2, 3, 4, 5, 6, 7, 8, 16, 17, 18, 32, 64];

/// What is run.
#[derive(Clone, Copy)]
enum A7Run {
    Read(usize),
    Preload(u32),
    /// Table, column of Table A.7, stride, pages.
    Steps(&'static str, &'static str, u32, Restore, u32),
}

/// Medians of so many repetitions. Each has its own seed: what random replacement draws, and when memory is refreshed.
pub(super) fn run(machine: &Machine, repetitions: u64) -> ModelResult<Medians> {
    let mut jobs: Vec<A7Run> = [1, 2, 4, 8, 16, 32, 64].into_iter().map(A7Run::Read).collect();
    jobs.extend((1..=18).chain([32, 64]).map(A7Run::Preload));
    for (table, column, stride, restore) in [
        ("a3", "a7-direct-4k", STRIDE_4K, Restore::Direct),
        ("a4", "a7-direct-68k", STRIDE_68K, Restore::Direct),
        ("a5", "a7-indirect-4k", STRIDE_4K, Restore::Indirect),
        ("a6", "a7-indirect-68k", STRIDE_68K, Restore::Indirect),
    ] {
        jobs.extend(PAGES.map(|pages| A7Run::Steps(table, column, stride, restore, pages)));
    }
    let done: ModelResult<Vec<_>> = in_parallel(&jobs, |job| one(machine, *job, repetitions)).into_iter().collect();
    Ok(done?.into_iter().flatten().collect())
}

fn one(machine: &Machine, job: A7Run, repetitions: u64) -> ModelResult<Vec<(String, f64)>> {
    match job {
        A7Run::Read(entries) => {
            let cycles = A7Benchmark::new(machine, 1, STRIDE_4K, 0)?.read_entries(entries)?;
            Ok(vec![(format!("a1-read-{entries:03}"), cycles as f64)])
        }
        A7Run::Preload(pages) => {
            let runs = (0..repetitions).map(|seed| A7Benchmark::new(machine, pages, STRIDE_4K, seed)?.preload());
            let runs = runs.collect::<Result<Vec<_>, _>>()?;
            let of = |column: &str, value: &dyn Fn(usize) -> u64| {
                (format!("a2-{column}-{pages:03}"), median((0..runs.len()).map(|run| value(run) as f64)))
            };
            Ok(vec![
                of("pld", &|run| runs[run].cycles),
                of("accesses", &|run| runs[run].accesses),
                of("misses", &|run| runs[run].misses),
            ])
        }
        A7Run::Steps(table, column, stride, restore, pages) => {
            let runs = (0..repetitions).map(|seed| A7Benchmark::new(machine, pages, stride, seed)?.six_steps(restore));
            let runs = runs.collect::<Result<Vec<_>, _>>()?;
            let of = |value: fn(&Steps) -> u64| median(runs.iter().map(|steps| value(steps) as f64));
            let [clean, save, restore, migrated] = [
                of(|steps| steps.clean_cycles),
                of(|steps| steps.save_cycles),
                of(|steps| steps.restore_cycles),
                of(|steps| steps.migrated_cycles),
            ];
            Ok(vec![
                (format!("{table}-clean-{pages:03}"), clean),
                (format!("{table}-save-{pages:03}"), save),
                (format!("{table}-restore-{pages:03}"), restore),
                (format!("{table}-migrated-{pages:03}"), migrated),
                (format!("{column}-{pages:03}"), clean - migrated - restore - save),
            ])
        }
    }
}
