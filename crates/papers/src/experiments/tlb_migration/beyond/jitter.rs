//! A periodic task that is moved in every fourth job: how its response times scatter.

use lookaside_machine::Machine;
use lookaside_techniques::migrate::model::{Along, Jobs, Periodic, Program, USER_LOOP};

use super::super::super::in_parallel;
use super::{capped, grouped, told, young, NOTHING, UNCAPPED};
use crate::experiments::tlb_migration::Result;
use crate::{Effort, Finding};

/// Pages of a job, and how often it goes round them.
const PAGES: u32 = 24;
const ROUNDS: u32 = 40;
/// Accesses of each background program between two jobs: some 0.03 ms, in which it puts a good part of the task's entries out.
const BETWEEN_ACCESSES: u32 = 3_000;

pub(super) fn run(machine: &Machine, programs: &[Program], effort: Effort) -> Result<Vec<(&'static str, Finding)>> {
    let job = Program::over((0..ROUNDS).flat_map(|_| 0..PAGES), USER_LOOP as u32);
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
    for (id, flushes) in [("b-jitter-kept", false), ("b-jitter-flushed", true)] {
        let periodic = Periodic {
            job: job.clone(),
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
            "cycles: median; maximum less median; 99.9 % less median, of {jobs} jobs. {PAGES} pages, {ROUNDS} times round; every fourth job is moved at a random place; \
             caches {}. Save and restore are in the response",
            if flushes { "flushed before a move" } else { "kept" }
        );
        rows.push((id, told(found.join("; "), note)));
    }
    Ok(rows)
}

fn spread(jobs: &Jobs) -> String {
    let mut cycles = jobs.response_cycles.clone();
    cycles.sort_unstable();
    let at = |part: f64| {
        let rank = (part * cycles.len() as f64).ceil() as usize;
        cycles.get(rank.clamp(1, cycles.len().max(1)) - 1).copied().unwrap_or(0)
    };
    let digits = |value: u64| grouped(&value.to_string());
    format!("{}; {}; {}", digits(at(0.5)), digits(at(1.0) - at(0.5)), digits(at(0.999) - at(0.5)))
}
