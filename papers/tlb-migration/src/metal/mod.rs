//! TLB migration on the metal (Landsberg 2018, section 4.3): a thread touches its pages on one CPU and moves to
//! another, where its first accesses are timed, with nothing done before them, with its pages or its page-table lines
//! prefetched, and with huge pages.
//!
//! A program can't touch its page tables. The nearest to the paper's indirect migration, which preloads descriptors, is
//! one prefetch for each 64-byte line of page-table entries ([`plan::one_a_line`]).

mod access;
mod cpus;
mod error;
mod judge;
mod memory;
mod move_bench;
pub mod plan;
mod treatment;

use std::time::Duration;

use lookaside_probe::counter::Timer;
use lookaside_runtime::compare::in_turns;
use schemars::JsonSchema;
use serde::Serialize;

use cpus::MoveCpus;
pub use cpus::{Relation, SystemCpus};
pub use error::MigrateError;
use judge::cells;
pub use judge::{CaseTimes, Overall, Pays, TreatmentTimes, RESAMPLES};
use move_bench::{MoveBench, MoveStopped};
use plan::{bytes_needed, MoveCase};
pub use treatment::{Caches, MovePattern, Treatment};

/// What to do.
#[derive(Clone, Debug)]
pub struct MoveOptions {
    /// The CPU that the thread leaves; `None`: the first allowed.
    pub from: Option<usize>,
    /// The CPU that it moves to; `None`: the next allowed that is no thread of the same core, as far as the system
    /// says.
    pub to: Option<usize>,
    /// Numbers of pages, each at least 1.
    pub pages: Vec<u64>,
    /// Rounds; each measures every case in every way once.
    pub rounds: u32,
    /// No round is begun, and none finished, after so long.
    pub time: Option<Duration>,
    /// Orders the rounds, the pages of a chase and the frames; resamples.
    pub seed: u64,
    /// Memory that may be had.
    pub available_bytes: u64,
}

/// What was seen.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct MoveReport {
    /// The CPU that the thread left.
    pub from_cpu: usize,
    /// The CPU that it moved to.
    pub to_cpu: usize,
    /// What the two share.
    pub relation: Relation,
    /// Rounds that were asked for.
    pub rounds_wanted: u32,
    /// Complete rounds; no other counts.
    pub rounds: u32,
    /// Seed of the orders and of the intervals.
    pub seed: u64,
    /// Bytes of the buffer that thrashes caches.
    pub thrash_bytes: u64,
    /// A move by itself, median over all of them: from the call on the old CPU to its return on the new one.
    pub move_ns: f64,
    /// What was measured, in the order of patterns, strides, caches, pages.
    pub cells: Vec<CaseTimes>,
    /// What the reader should know, a line each.
    pub remarks: Vec<String>,
    /// Why there are fewer rounds, where there are.
    pub halted: Option<String>,
}

/// Runs the experiment on the calling thread, which gets its CPUs back at the end. `stop` is asked before each
/// measurement.
///
/// # Errors
/// It cannot be run as asked, or the system refuses; one line.
pub fn run(
    options: &MoveOptions,
    system: &SystemCpus,
    stop: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(&str),
) -> Result<MoveReport, MigrateError> {
    let here = MoveCpus::choose(options.from, options.to, system)?;
    let most = check(options, &here)?;
    let (timer, timer_remark) = Timer::here().map_err(|error| MigrateError(error.to_string()))?;
    let mut remarks: Vec<String> = timer_remark.into_iter().collect();
    let mut lab = MoveBench::new(timer, &here, most, options.seed)?;
    remarks.extend(lab.remarks());
    let cases = MoveCase::all(&options.pages);
    let ways: Vec<(MoveCase, Treatment)> =
        cases.iter().flat_map(|case| lab.ways(case).map(|way| (*case, way))).collect();
    let mut told = 0;
    let (samples, ended) = in_turns(ways.len(), options.rounds, options.seed, &mut |round, which| {
        if told <= round {
            told = round + 1;
            progress(&format!("round {told} of {}", options.rounds));
        }
        let (case, way) = &ways[which];
        lab.next(case, *way, options.time, stop)
    });
    let halted = match ended {
        Some(MoveStopped::Failed(error)) => return Err(error),
        Some(stopped) => Some(stopped.to_string()),
        None => None,
    };
    drop(lab);
    let rounds = samples.first().map_or(0, Vec::len) as u32;
    progress("intervals");
    let moves: Vec<f64> = samples.iter().flatten().map(|sample| sample.move_ns).collect();
    let cells = cells(&cases, &ways, &samples, options.seed);
    remarks.extend(judge::remarks(&cells, rounds));
    remarks.extend(here.relation.remark());
    Ok(MoveReport {
        from_cpu: here.from,
        to_cpu: here.to,
        relation: here.relation,
        rounds_wanted: options.rounds,
        rounds,
        seed: options.seed,
        thrash_bytes: here.thrash_bytes,
        move_ns: lookaside_stats::median(&moves).unwrap_or(f64::NAN),
        cells,
        remarks,
        halted,
    })
}

/// The most pages, where there is memory for them.
fn check(options: &MoveOptions, here: &MoveCpus) -> Result<u64, MigrateError> {
    let bad = |why: String| Err(MigrateError(why));
    let (Some(&most), Some(&least)) = (options.pages.iter().max(), options.pages.iter().min()) else {
        return bad("pages: no number is given".into());
    };
    if least == 0 {
        return bad("pages: 0 pages have no first accesses; ask for 1 or more".into());
    }
    if here.page_bytes != plan::PAGE_BYTES {
        let kib = here.page_bytes >> 10;
        return bad(format!("pages of this system are of {kib} KiB; the experiment is written for 4 KiB"));
    }
    let needed = bytes_needed(most).saturating_add(here.thrash_bytes.into());
    if needed > options.available_bytes.into() {
        let [needed, left] = [needed, options.available_bytes.into()].map(|bytes| bytes >> 20);
        return bad(format!(
            "{most} pages need {needed} MiB of memory (the same addresses in huge pages, and a buffer of twice the caches); {left} MiB can be had: ask for fewer --pages"
        ));
    }
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> MoveCpus {
        MoveCpus { from: 0, to: 1, relation: Relation::Unknown, thrash_bytes: 4 << 20, page_bytes: 4096 }
    }

    #[test]
    fn what_cannot_run_is_refused_in_a_line() {
        let options = |pages: &[u64], available_bytes| MoveOptions {
            from: None,
            to: None,
            pages: pages.to_vec(),
            rounds: 5,
            time: None,
            seed: 1,
            available_bytes,
        };
        assert_eq!(check(&options(&[1, 64, 8], 1 << 30), &here()), Ok(64));
        let refused = |options: &MoveOptions, here: &MoveCpus| check(options, here).expect_err("refused").to_string();
        assert_eq!(refused(&options(&[], 1 << 30), &here()), "pages: no number is given");
        assert!(refused(&options(&[4, 0], 1 << 30), &here()).starts_with("pages: 0 pages"));
        assert!(refused(&options(&[1536], 64 << 20), &here()).contains("64 MiB can be had: ask for fewer --pages"));
        assert!(refused(&options(&[u64::MAX], u64::MAX), &here()).contains("ask for fewer --pages"));
        let large = MoveCpus { page_bytes: 65536, ..here() };
        assert!(refused(&options(&[1], 1 << 30), &large).contains("of 64 KiB"));
    }
}
