//! Probing once more where a neighbour on the same core left too little to see.

use std::time::{Duration, Instant};

use crate::{Options, Report, WalkCacheReport};

/// Another attempt is worth while with at least this share of an attempt's time: a probe that finds everything on a quiet development machine takes
/// 17 to 27 s of its 60.
pub(crate) const WORTH_WHILE: f64 = 0.4;

impl Report {
    /// Of the levels that were asked for, geometry and what a miss costs are known, and where they were asked for what a walk takes
    /// beside its references, whether a second stage splits huge pages, and how many directory entries are at hand, unless passes
    /// found none: what a model of translation rests on.
    pub fn is_whole(&self) -> bool {
        let known =
            self.levels.iter().all(|level| level.geometry.value().is_some() && level.miss_cycles.value().is_some());
        known
            && self.walks.as_ref().is_none_or(|walks| walks.base_cycles.value().is_some())
            && self.spread.as_ref().is_none_or(|spread| !spread.huge_pages_are_whole.is_missing())
            && self.walk_caches.as_ref().is_none_or(|caches| !caches.levels.iter().any(is_open))
    }
}

/// Entries that point to leaf tables: found, differently by each pass.
fn is_open(level: &WalkCacheReport) -> bool {
    level.table_level == 2 && level.passes_differ
}

/// How often, and how long.
#[derive(Clone, Copy, Debug)]
pub struct Attempts {
    /// At most so many, at least one.
    pub most: u64,
    /// All of them together; each for itself has [`Options::time`] and no more than what is left of this. `None` = no bound.
    pub time: Option<Duration>,
}

/// Makes attempts at a probe, with the next seed each time, until what they found together is whole: the report that left least open, the
/// earlier of two alike, and in it what others have of what it left open.
///
/// # Errors
/// Those of an attempt.
pub fn probe_again<E>(
    options: &Options,
    attempts: Attempts,
    halt: &dyn Fn() -> bool,
    attempt: &mut dyn FnMut(&Options) -> Result<Report, E>,
) -> Result<Report, E> {
    let begun = Instant::now();
    let mut next = options.clone();
    let mut best: Option<Report> = None;
    for _ in 0..attempts.most.max(1) {
        let mut report = attempt(&next)?;
        if let Some(mut earlier) = best.take() {
            if earlier.missing().len() <= report.missing().len() {
                std::mem::swap(&mut earlier, &mut report);
            }
            report.fill_from(earlier);
        }
        let done = report.is_whole() || halt();
        best = Some(report);
        if done {
            break;
        }
        let left = attempts.time.map(|time| time.saturating_sub(begun.elapsed()));
        next.seed = next.seed.wrapping_add(1);
        next.time = [options.time, left].into_iter().flatten().min();
        let enough = match (next.time, options.time) {
            (Some(next), Some(whole)) => next >= whole.mul_f64(WORTH_WHILE),
            _ => true,
        };
        if !enough {
            break;
        }
    }
    // At least one attempt was made: the loop runs once or more.
    Ok(best.unwrap_or_default())
}
