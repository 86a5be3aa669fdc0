//! A periodic task that is moved in every fourth job: how its response times scatter.

use lookaside_harness::{in_parallel, Effort, ModelResult, RowFinding};
use lookaside_machine::Machine;
use lookaside_stats::quantiles;

use super::variants::{capped, grouped, told, young, NOTHING, UNCAPPED};
use crate::machines::{Along, Jobs, Periodic, ProgramSteps, STRIDE_4K, STRIDE_68K, USER_LOOP};

/// How often a job goes round its pages.
const ROUNDS: u32 = 40;
/// Accesses of each background program between two jobs: some 0.03 ms, in which it puts a good part of the task's
/// entries out.
const BETWEEN_ACCESSES: u32 = 3_000;

pub(super) fn run(
    machine: &Machine,
    programs: &[ProgramSteps],
    effort: Effort,
) -> ModelResult<Vec<(&'static str, RowFinding)>> {
    let jobs = match effort {
        Effort::Usual => 2_000,
        Effort::Quick => 40,
    };
    let variants: [(&str, Along); 4] = [
        ("without", NOTHING),
        ("V4", capped(UNCAPPED)),
        ("V4 predicted", young((64, 2))),
        ("V4 capped at 32", capped(32)),
    ];
    let mut rows = Vec::new();
    for (id, pages, stride, flushes) in [
        ("b-jitter-kept", 24, STRIDE_4K, false),
        ("b-jitter-flushed", 24, STRIDE_68K, true),
        ("b-jitter-most", 48, STRIDE_68K, true),
    ] {
        let job = (0..ROUNDS).flat_map(|_| (0..pages).map(|page| page * stride));
        let periodic = Periodic {
            job: ProgramSteps::over(job, USER_LOOP as u32),
            background: programs.iter().chain(&programs[..1]).cloned().collect(),
            between_accesses: BETWEEN_ACCESSES,
            jobs,
            move_every: 4,
            flushes,
            seed: 1,
        };
        let done = in_parallel(&variants, |(_, along)| periodic.run(machine, along));
        let mut found = Vec::new();
        for ((name, _), done) in variants.iter().zip(done) {
            found.push(format!("{name} {}", spread(&done?)));
        }
        let note = format!(
            "cycles: median; maximum less median; 99.9 % less median, of {jobs} jobs. {pages} pages {} KiB apart, {ROUNDS} times round; every fourth job is moved at a random place; \
             caches {}. Save and restore are in the response",
            4 * stride,
            if flushes { "flushed before a move" } else { "kept" }
        );
        rows.push((id, told(found.join("; "), note)));
    }
    Ok(rows)
}

fn spread(jobs: &Jobs) -> String {
    let [median, most, nearly_all] = quantiles(&jobs.response_cycles, [0.5, 1.0, 0.999]).unwrap_or_default();
    let digits = |value: f64| grouped(&format!("{value:.0}"));
    format!("{}; {}; {}", digits(median), digits(most - median), digits(nearly_all - median))
}
