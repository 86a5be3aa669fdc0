//! Repeats a probe, where a neighbour on the same core disturbed it, until what the attempts found together is
//! complete.

use std::time::{Duration, Instant};

use crate::options::ProbeOptions;
use crate::report::ProbeReport;

/// Another attempt is worth while with at least this share of an attempt's time: a probe that finds everything on a
/// quiet development machine takes 17 to 27 s of its 60.
pub(crate) const WORTH_WHILE: f64 = 0.4;

/// How often, and how long.
#[derive(Clone, Copy, Debug)]
pub struct RetryLimits {
    /// At most so many, at least one.
    pub most: u64,
    /// All of them together; each for itself has [`ProbeOptions::time`] and no more than what is left of this. `None` =
    /// no bound.
    pub time: Option<Duration>,
}

/// Makes attempts at a probe, with the next seed each time, until what they found together is whole: the report that
/// left least open, the earlier of two alike, and in it what others have of what it left open.
///
/// # Errors
/// Those of an attempt.
pub fn probe_with_retries<E>(
    options: &ProbeOptions,
    attempts: RetryLimits,
    halt: &dyn Fn() -> bool,
    attempt: &mut dyn FnMut(&ProbeOptions) -> Result<ProbeReport, E>,
) -> Result<ProbeReport, E> {
    let begun = Instant::now();
    let mut next = options.clone();
    let mut best: Option<ProbeReport> = None;
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
