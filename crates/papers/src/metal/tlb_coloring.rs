//! The coloring paper's microbenchmarks (Panchamukhi 2014, Algorithm 3 and section 6.0.7) on this machine.

use lookaside_probe::{Bench, Halt};

use super::known;
use super::penalty::{self, mean, scaled};
use super::{Ran, Setting};

/// Every access of the circle misses where at least this share of what surely misses does.
const EVERY: f64 = 0.9;

pub(super) fn run(
    bench: &mut Bench<'_>,
    _: &Setting,
    progress: &mut dyn FnMut(&str),
    ran: &mut Ran,
) -> Result<(), Halt> {
    ran.assumptions.push(
        "loads, each of which waits for the one before it, stand for the paper's stores with fences, and times for its \
         counted misses"
            .into(),
    );
    let known = known::find(bench, progress)?;
    progress("section 6.0.7, first level");
    match &known.first {
        Ok(first) => {
            let penalty = penalty::first_level(bench, first)?;
            let cycles = scaled(&penalty.one_more, bench.cycles_per_tick());
            let (mean, deviation) = mean(&penalty.one_more);
            let by = bench.cycles_per_tick();
            ran.value(
                "l1-penalty",
                round(mean * by),
                format!("median {:.2}, 98.8 % interval {:.2} to {:.2}", cycles.median, cycles.low, cycles.high),
            );
            ran.value("l1-deviation", round(deviation * by), format!("{} runs", penalty.one_more.len()));
            let missing = penalty.missing();
            ran.claim(
                "l1-every",
                missing >= EVERY,
                format!("{} pages of one set: {:.0} % of the accesses miss", first.geometry.ways + 1, 100.0 * missing),
                format!("{}; all miss with {} times as many pages as ways", first.words(), 4),
            );
        }
        Err(reason) => ran.nothing(&["l1-penalty", "l1-deviation", "l1-every"], reason),
    }
    Ok(())
}

fn round(cycles: f64) -> f64 {
    (cycles * 100.0).round() / 100.0
}
