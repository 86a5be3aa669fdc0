//! Tables A.11 to A.15.

use lookaside_harness::{in_parallel, ModelResult};
use lookaside_machine::Machine;
use lookaside_stats::SplitMix64;

use super::medians::{median, Medians};
use crate::interface::Version;
use crate::machines::{Gem5Benchmark, COUNTER_HZ, STRIDE_68K};

/// The clock that Linux reads in the simulated machine. Nothing else is random there: what differs from one repetition
/// to the next is how long before a step the clock ticked last.
pub(super) struct Clock {
    random: SplitMix64,
    repetitions: u64,
}

impl Clock {
    pub(super) fn new(seed: u64, repetitions: u64) -> Self {
        Self { random: SplitMix64::new(seed), repetitions }
    }

    /// Median of the readings of what takes so many ns: whole ticks, to a tenth of a ns.
    pub(super) fn median_ns(&mut self, ns: f64) -> f64 {
        let tick_ns = 1e9 / COUNTER_HZ as f64;
        let readings = (0..self.repetitions).map(|_| {
            let since_tick = self.random.next_u64() as f64 / u64::MAX as f64;
            (since_tick + ns / tick_ns).floor() * tick_ns
        });
        (median(readings) * 10.0).round() / 10.0
    }
}

/// Adds the tables' rows; the overall speedup of V4 by number of pages.
pub(super) fn run(machine: &Machine, repetitions: u64, medians: &mut Medians) -> ModelResult<Vec<(f64, f64)>> {
    const TABLES: [(Version, &str); 4] =
        [(Version::V1, "a11"), (Version::V2, "a12"), (Version::V3, "a13"), (Version::V4, "a14")];
    let jobs: Vec<_> = TABLES.into_iter().flat_map(|table| (1..=64).map(move |pages| (table, pages))).collect();
    let done = in_parallel(&jobs, |(table, pages)| one(machine, *table, *pages, repetitions));
    let mut curve = Vec::new();
    for ((((version, _), pages), done), in_table) in jobs.iter().zip(done).zip(jobs.iter().map(published)) {
        let (rows, speedup) = done?;
        if *version == Version::V4 {
            curve.push((f64::from(*pages), speedup));
        }
        if in_table {
            medians.extend(rows);
            if *version == Version::V4 {
                medians.insert(format!("a15-speedup-{pages:03}"), speedup);
            }
        }
    }
    Ok(curve)
}

/// Whether the tables have a row for so many pages.
fn published(job: &((Version, &str), u32)) -> bool {
    let ((version, _), pages) = job;
    matches!(pages, 1..=8 | 16 | 32 | 64) || *pages == 21 && *version == Version::V4
}

/// A row's medians, and their overall speedup.
fn one(
    machine: &Machine,
    (version, table): (Version, &str),
    pages: u32,
    repetitions: u64,
) -> ModelResult<(Vec<(String, f64)>, f64)> {
    let steps = Gem5Benchmark::new(machine, pages, STRIDE_68K)?.six_steps(version)?;
    let mut clock = Clock::new(pages.into(), repetitions);
    let mut of = |cycles: u64| clock.median_ns(cycles as f64 * 1000.0 / machine.clock_mhz);
    let (clean, save) = (of(steps.clean_cycles), of(steps.save_cycles));
    let (restore, migrated) = (of(steps.restore_cycles), of(steps.migrated_cycles));
    let row = |column: &str, value| (format!("{table}-{column}-{pages:03}"), value);
    let rows = vec![row("clean", clean), row("save", save), row("restore", restore), row("migrated", migrated)];
    Ok((rows, ((clean - migrated - restore - save) * 10.0).round() / 10.0))
}
