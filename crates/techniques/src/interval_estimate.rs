//! What a run's intervals say of the whole run.

use lookaside_engine::{IntervalCounts, Outcome};
use lookaside_stats::{ratio_of_sums, Figure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures of the whole run, by intervals of it. Each figure's interval holds the figure of a run that was recorded
/// whole in 95 of 100 cases, as far as the intervals are like the rest of the run.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct IntervalEstimate {
    /// Intervals that counted anything.
    pub intervals: u64,
    /// Intervals that ended before the model had warmed up: they count nothing.
    pub too_short: u64,
    /// CPU time of the program at the begin of the last one, in seconds.
    pub cpu_seconds: f64,
    /// Translation cycles in modelled cycles; `None` = can't be told from so few intervals.
    pub translation_share: Option<Figure>,
    /// Walks in a thousand accesses.
    pub walks_per_1000_accesses: Option<Figure>,
}

impl IntervalEstimate {
    /// Of a run; `None` if it was recorded whole.
    pub fn of(outcome: &Outcome) -> Option<Self> {
        let last = outcome.intervals.last()?;
        let counted: Vec<&IntervalCounts> = outcome.intervals.iter().filter(|its| its.accesses > 0).collect();
        let ratio = |above: fn(&IntervalCounts) -> f64, below: fn(&IntervalCounts) -> f64| {
            ratio_of_sums(&counted.iter().map(|its| (above(its), below(its))).collect::<Vec<_>>())
        };
        Some(Self {
            intervals: counted.len() as u64,
            too_short: (outcome.intervals.len() - counted.len()) as u64,
            cpu_seconds: last.cpu_ns as f64 / 1e9,
            translation_share: ratio(|its| its.translation_cycles, |its| its.modelled_cycles),
            walks_per_1000_accesses: ratio(|its| its.walks as f64 * 1e3, |its| its.accesses as f64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_recorded_whole_needs_no_estimate() {
        assert_eq!(IntervalEstimate::of(&Outcome::default()), None);
    }

    #[test]
    fn intervals_that_count_nothing_are_told_apart() {
        let interval = |cpu_ns, accesses, walks| IntervalCounts {
            cpu_ns,
            accesses,
            walks,
            walk_cycles: 0.0,
            translation_cycles: walks as f64 * 10.0,
            modelled_cycles: accesses as f64 + walks as f64 * 10.0,
        };
        let intervals =
            vec![interval(1, 1000, 10), interval(2, 0, 0), interval(3, 3000, 30), interval(2_500_000_000, 2000, 26)];
        let estimate = IntervalEstimate::of(&Outcome { intervals, ..Outcome::default() }).expect("intervals");
        assert_eq!((estimate.intervals, estimate.too_short, estimate.cpu_seconds), (3, 1, 2.5));
        let walks = estimate.walks_per_1000_accesses.expect("three intervals");
        assert_eq!(walks.value, 11.0);
        assert!(walks.low < 11.0 && 11.0 < walks.high, "{walks:?}");
        let share = estimate.translation_share.expect("three intervals");
        assert_eq!(share.value, 660.0 / 6660.0);
        // One alone says nothing of the others.
        let alone = Outcome { intervals: vec![interval(1, 1000, 10)], ..Outcome::default() };
        let alone = IntervalEstimate::of(&alone).expect("an interval");
        assert_eq!((alone.intervals, alone.translation_share), (1, None));
    }
}
