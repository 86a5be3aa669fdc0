//! What a run's intervals say of the whole run.

use lookaside_engine::{IntervalCounts, Outcome};
use lookaside_machine::Machine;
use lookaside_stats::{ratio_of_sums, Figure};
use serde::{Deserialize, Serialize};

/// An interval of which at most this part of the modelled cycles could be otherwise, had the caches been at work for
/// longer, counts as warm: less than the figures of its share are printed with.
const WARM: f64 = 0.01;
/// So many warm intervals are enough to leave the others out.
const ENOUGH: usize = 5;

/// Figures of the whole run, by intervals of it. Each figure's interval holds the figure of a run that was recorded
/// whole in 95 of 100 cases, as far as the intervals are like the rest of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct IntervalEstimate {
    /// Intervals that counted anything.
    pub intervals: u64,
    /// Intervals that ended before they began to count.
    pub too_short: u64,
    /// Of those that counted, the ones in which the model's caches were still filling, and which
    /// [`Self::translation_share`] leaves out; 0 = none, or too few would be left.
    pub cold: u64,
    /// CPU time of the program at the begin of the last one, in seconds.
    pub cpu_seconds: f64,
    /// Translation cycles in modelled cycles; `None` = can't be told from so few intervals. Where intervals are not warm
    /// the upper end is that of caches that had all that was not known to be there.
    pub translation_share: Option<Figure>,
    /// Walks in a thousand accesses.
    pub walks_per_1000_accesses: Option<Figure>,
}

impl IntervalEstimate {
    /// Of a run on this machine; `None` if it was recorded whole.
    pub fn of(outcome: &Outcome, machine: &Machine) -> Option<Self> {
        let last = outcome.intervals.last()?;
        let counted: Vec<&IntervalCounts> = outcome.intervals.iter().filter(|its| its.accesses > 0).collect();
        let could_save = filled_line_cycles(machine);
        let unsure = |its: &IntervalCounts| its.filled_lines as f64 * could_save;
        let is_warm = |its: &&IntervalCounts| unsure(its) <= WARM * its.modelled_cycles;
        let warm: Vec<&IntervalCounts> = counted.iter().copied().filter(is_warm).collect();
        let used = if warm.len() >= ENOUGH { &warm } else { &counted };
        let share = |sure: &dyn Fn(&IntervalCounts) -> f64| {
            ratio_of_sums(&used.iter().map(|its| (its.translation_cycles, sure(its))).collect::<Vec<_>>())
        };
        let as_modelled = share(&|its| its.modelled_cycles);
        let at_most = share(&|its| (its.modelled_cycles - unsure(its)).max(its.translation_cycles));
        let walks = counted.iter().map(|its| (its.walks as f64 * 1e3, its.accesses as f64)).collect::<Vec<_>>();
        Some(Self {
            intervals: counted.len() as u64,
            too_short: (outcome.intervals.len() - counted.len()) as u64,
            cold: (counted.len() - used.len()) as u64,
            cpu_seconds: last.cpu_ns as f64 / 1e9,
            translation_share: as_modelled
                .zip(at_most)
                .map(|(its, most)| Figure { high: its.high.max(most.high), ..its }),
            walks_per_1000_accesses: ratio_of_sums(&walks),
        })
    }
}

/// Cycles that a line from memory takes longer than one from the last data cache.
fn filled_line_cycles(machine: &Machine) -> f64 {
    let last = machine.caches.iter().max_by_key(|cache| cache.level);
    last.map_or(0.0, |cache| (machine.memory.cycles - cache.hit_cycles).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(cpu_ns: u64, accesses: u64, walks: u64, filled_lines: u64) -> IntervalCounts {
        let translation_cycles = walks as f64 * 10.0;
        let modelled_cycles = accesses as f64 + translation_cycles + filled_lines as f64 * 100.0;
        IntervalCounts { cpu_ns, accesses, walks, walk_cycles: 0.0, translation_cycles, modelled_cycles, filled_lines }
    }

    fn of(intervals: Vec<IntervalCounts>) -> IntervalEstimate {
        let mut machine = lookaside_machine::preset("skylake").expect("a preset");
        let level = machine.caches.iter().map(|cache| cache.level).max();
        machine.caches.iter_mut().filter(|cache| Some(cache.level) == level).for_each(|cache| cache.hit_cycles = 40.0);
        machine.memory.cycles = 140.0;
        IntervalEstimate::of(&Outcome { intervals, ..Outcome::default() }, &machine).expect("intervals")
    }

    #[test]
    fn a_run_that_was_recorded_whole_needs_no_estimate() {
        let machine = lookaside_machine::preset("skylake").expect("a preset");
        assert_eq!(IntervalEstimate::of(&Outcome::default(), &machine), None);
    }

    #[test]
    fn intervals_that_count_nothing_are_told_apart() {
        let estimate = of(vec![
            interval(1, 1000, 10, 0),
            interval(2, 0, 0, 0),
            interval(3, 3000, 30, 0),
            interval(2_500_000_000, 2000, 26, 0),
        ]);
        assert_eq!((estimate.intervals, estimate.too_short, estimate.cold, estimate.cpu_seconds), (3, 1, 0, 2.5));
        let walks = estimate.walks_per_1000_accesses.expect("three intervals");
        assert_eq!(walks.value, 11.0);
        assert!(walks.low < 11.0 && 11.0 < walks.high, "{walks:?}");
        let share = estimate.translation_share.expect("three intervals");
        assert_eq!(share.value, 660.0 / 6660.0);
        // One alone says nothing of the others.
        let alone = of(vec![interval(1, 1000, 10, 0)]);
        assert_eq!((alone.intervals, alone.translation_share), (1, None));
    }

    #[test]
    fn caches_that_still_fill_widen_the_share_or_are_left_out() {
        let cold = interval(1, 1000, 10, 50);
        // Too few warm ones: all are used, and the lines might have been there.
        let few = of(vec![cold, cold, interval(2, 1000, 10, 0)]);
        let share = few.translation_share.expect("three intervals");
        assert_eq!((few.cold, share.value), (0, 300.0 / 13_300.0));
        assert!(share.high >= 100.0 / 1100.0, "{share:?}");
        let many = of([vec![cold, cold], vec![interval(2, 1000, 10, 0); 5]].concat());
        let share = many.translation_share.expect("five intervals");
        assert_eq!((many.cold, many.intervals, share.value), (2, 7, 500.0 / 5500.0));
        // Walks don't depend on it.
        assert_eq!(many.walks_per_1000_accesses.map(|walks| walks.value), Some(10.0));
    }
}
