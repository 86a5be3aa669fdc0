//! The step: rounds of all figures, as long as its share of the time lasts.

use lookaside_machine::Timing;

use crate::bench::Halt;
use crate::budget::Budget;
use crate::finding::Finding;
use crate::hierarchy::latency_bench::LatencyBench;
use crate::metal::Metal;
use crate::options::{ProbeOptions, ProbeStep};
use crate::report::timing::TimingReport;
use crate::report::ProbeReport;
use crate::timing::page_faults::FaultCells;
use crate::timing::random_reads::ReadCells;
use crate::timing::rounds::LEAST_ROUNDS;

/// Rounds at most: their quartiles are those of the third and the ninth.
const ROUNDS: usize = 11;

/// Measures it, if it is wanted. What the rounds done so far say stands, even where its time is up or it is
/// interrupted.
pub(crate) fn measure_timing(
    metal: &mut dyn Metal,
    options: &ProbeOptions,
    budget: &Budget<'_>,
    progress: &mut dyn FnMut(&str),
    report: &mut ProbeReport,
) {
    if !options.wants(ProbeStep::Timing) {
        return;
    }
    if let Some(reason) = &report.halted {
        report.timing = Some(TimingReport::nothing(Finding::not_determined(reason.clone())));
        return;
    }
    let Some(ns_per_tick) = metal.ticks_per_second().map(|rate| 1e9 / rate).filter(|_| metal.sequence_bytes() > 0)
    else {
        let reason = "this machine times no reads in nanoseconds";
        report.timing = Some(TimingReport::nothing(Finding::not_determined(reason).unasked()));
        return;
    };
    let halt = || budget.check();
    let mut bench = LatencyBench::new(metal, options.seed, &halt);
    let mut cells = (ReadCells::new(&mut bench, ns_per_tick), FaultCells::new(&mut bench, ns_per_tick));
    let mut rounds = 0;
    let what = "what reads and page faults take";
    let ended = budget.part(&mut bench, ProbeStep::Timing, what, progress, |bench| {
        while rounds < ROUNDS {
            cells.0.round(bench, rounds)?;
            cells.1.round(bench)?;
            rounds += 1;
        }
        Ok(())
    });
    // The thread that streamed ends; where there was none, nothing is to be ended.
    let _ = bench.metal().neighbour(None);
    let reason = match ended {
        Ok(Ok(())) => None,
        Ok(Err(reason)) => Some(reason),
        // That the time is up is found by the next step too.
        Err(halt @ (Halt::Metal(_) | Halt::TimeUp)) => Some(halt.to_string()),
        Err(halt) => {
            report.halted = Some(halt.to_string());
            Some(halt.to_string())
        }
    };
    report.timing = Some(found(&cells, rounds, reason));
}

fn found((reads, faults): &(ReadCells, FaultCells), rounds: usize, reason: Option<String>) -> TimingReport {
    let mut absent = Vec::new();
    let (random_reads, sequential_reads) = reads.rows(&mut absent);
    let timing = Timing { random_reads, sequential_reads, page_faults: faults.rows(&mut absent) };
    let costs = match timing == Timing::default() {
        true => {
            let few = || format!("{rounds} rounds, fewer than {LEAST_ROUNDS}, gave figures");
            Finding::not_determined(reason.unwrap_or_else(few))
        }
        false => {
            let ended = reason.map(|reason| format!("ended early: {reason}"));
            Finding::confirmed(timing, [Some(format!("{rounds} rounds")), ended].into_iter().flatten().collect())
        }
    };
    TimingReport { costs, stream_cpu: reads.stream_cpu(), absent }
}
