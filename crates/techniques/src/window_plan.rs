//! Where the windows of a run lie that stand for all of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use lookaside_stats::finalise;

use crate::cost_curve::CostCurve;

/// Windows of a run, by chance, and before each a stretch that warms up whatever looks at it.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowPlan {
    windows: Arc<[CountedWindow]>,
    /// Pages used last that are used before a window's warming.
    primed: u64,
}

/// One of them, in recorded accesses from the run's beginning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CountedWindow {
    /// Where its warming begins.
    pub(crate) warms: u64,
    /// Where it begins itself.
    pub(crate) begin: u64,
    /// Its end.
    pub(crate) end: u64,
    /// What is counted in it counts so many times.
    pub(crate) weight: f64,
    /// How many windows come before it, and how many accesses are let through before its warming, without those of pages
    /// that windows are primed with.
    number: u64,
    passed: u64,
}

/// What an access is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stretch {
    Skipped,
    Warming,
    Counted,
}

impl WindowPlan {
    /// Windows that a budget is spent on.
    pub const WINDOWS: u64 = 64;

    /// Of `total` recorded accesses about `budget` are in windows, and `warming` pass before each; the run's parts are
    /// equal. `None` where the windows and their warming would be all of the run, or more: it is then run whole.
    pub fn even(total: u64, budget: u64, warming: u64, seed: u64) -> Option<Self> {
        let (part, counted) = (total / Self::WINDOWS, (budget / Self::WINDOWS).max(1));
        let place = |number: u64| {
            // Of 2^64 numbers as many fall on each place, but for one.
            let chance = finalise(finalise(seed).wrapping_add(number));
            let begin = number * part + warming + chance % (part - warming - counted + 1);
            (begin, begin + counted, part as f64 / counted as f64)
        };
        let fits = warming.saturating_add(counted) < part;
        fits.then(|| Self::of_windows((0..Self::WINDOWS).map(place), warming))
    }

    /// Likewise, where a run costs more it has more windows. The run is parted into places of a window's length, and each
    /// is chosen with the probability of its share of cost and accesses; what is counted there stands for that much the
    /// less (Cochran, Sampling Techniques, 3rd edition, 1977, section 9A.3).
    pub fn by_cost(costs: &CostCurve, budget: u64, warming: u64, seed: u64) -> Option<Self> {
        let (total, counted) = (costs.visits(), (budget / Self::WINDOWS).max(1));
        if warming.saturating_add(counted) >= total / Self::WINDOWS {
            return None;
        }
        let chance = |number: u64| finalise(finalise(seed).wrapping_add(number));
        // Where the first whole place begins; before it is a shorter one.
        let first = chance(Self::WINDOWS) % counted;
        let mut chosen: BTreeMap<u64, u64> = BTreeMap::new();
        for number in 0..Self::WINDOWS {
            let within = chance(number) as f64 / u64::MAX as f64;
            let share = (number as f64 + within) / Self::WINDOWS as f64;
            let access = costs.visit_at(share).saturating_sub(1).min(total - 1);
            let begin = if access < first { 0 } else { access - (access - first) % counted };
            *chosen.entry(begin).or_default() += 1;
        }
        let window = |(begin, times): (u64, u64)| {
            let end = if begin < first { first } else { (begin + counted).min(total) };
            let probability = Self::WINDOWS as f64 * (costs.share(end) - costs.share(begin));
            (begin, end, times as f64 / probability)
        };
        Some(Self::of_windows(chosen.into_iter().map(window), warming))
    }

    /// As [`WindowPlan::by_cost`], of windows of `counted` accesses or half of an equal part, and as much of `warming`
    /// before each as there is room for: for a run of at least two accesses a window. `None`: it is shorter.
    pub fn short(costs: &CostCurve, counted: u64, warming: u64, seed: u64) -> Option<Self> {
        let part = costs.visits() / Self::WINDOWS;
        let counted = counted.clamp(1, (part / 2).max(1));
        Self::by_cost(costs, counted * Self::WINDOWS, warming.min(part.saturating_sub(counted + 1)), seed)
    }

    fn of_windows(places: impl Iterator<Item = (u64, u64, f64)>, warming: u64) -> Self {
        let (mut windows, mut free, mut passed): (Vec<CountedWindow>, u64, u64) = (Vec::new(), 0, 0);
        for (begin, end, weight) in places {
            let warms = begin.saturating_sub(warming).max(free);
            let number = windows.len() as u64;
            windows.push(CountedWindow { warms, begin, end, weight, number, passed });
            free = end;
            passed += end - warms;
        }
        Self { windows: windows.into(), primed: 0 }
    }

    /// Before each window's warming comes a use of so many pages, those used last before it.
    #[must_use]
    pub fn primed_with(self, pages: u64) -> Self {
        Self { primed: pages, ..self }
    }

    /// So many pages.
    pub(crate) fn primed(&self) -> u64 {
        self.primed
    }

    /// The windows, in order.
    pub(crate) fn windows(&self) -> &[CountedWindow] {
        &self.windows
    }

    /// The window, by its number, that the access of this number lies in or before.
    pub(crate) fn window_at(&self, number: u64) -> usize {
        self.windows.partition_point(|window| window.end <= number)
    }

    /// What the access of this number is for, and how many from it on are for the same.
    pub(crate) fn stretch(&self, number: u64) -> (Stretch, u64) {
        match self.windows.get(self.window_at(number)) {
            None => (Stretch::Skipped, u64::MAX),
            Some(window) if number < window.warms => (Stretch::Skipped, window.warms - number),
            Some(window) if number < window.begin => (Stretch::Warming, window.begin - number),
            Some(window) => (Stretch::Counted, window.end - number),
        }
    }

    /// From the access after so many that were let through to the next window, or 0 in one.
    pub(crate) fn until_window(&self, passed: u64) -> u64 {
        let next = self.windows.partition_point(|window| self.end(window) <= passed);
        self.windows.get(next).map_or(u64::MAX, |window| self.begin(window).saturating_sub(passed))
    }

    /// Of an access that is let through: it is the first of a window, by the number of those before it that were.
    pub(crate) fn begins_window(&self, passed: u64) -> bool {
        self.windows.binary_search_by_key(&passed, |window| self.begin(window)).is_ok()
    }

    /// So many that were let through end with a window.
    pub(crate) fn ends_window(&self, passed: u64) -> bool {
        self.windows.binary_search_by_key(&passed, |window| self.end(window)).is_ok()
    }

    /// Accesses that are let through before a window.
    fn begin(&self, window: &CountedWindow) -> u64 {
        window.passed + (window.number + 1) * self.primed + window.begin - window.warms
    }

    /// Accesses that are let through until its end.
    fn end(&self, window: &CountedWindow) -> u64 {
        self.begin(window) + window.end - window.begin
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_stretch_ends_where_the_next_one_begins() {
        use Stretch::{Counted, Skipped, Warming};
        let plan = WindowPlan::even(6400, 640, 20, 7).expect("windows");
        let stretches = |numbers: &[u64]| numbers.iter().map(|&number| plan.stretch(number)).collect::<Vec<_>>();
        for (window, free) in plan.windows().iter().zip([0].into_iter().chain(plan.windows().iter().map(|of| of.end))) {
            let &CountedWindow { warms, begin, end, weight, .. } = window;
            assert_eq!((begin - warms, end - begin, weight), (20, 10, 10.0));
            if warms > free {
                assert_eq!(stretches(&[free, warms - 1]), [(Skipped, warms - free), (Skipped, 1)]);
            }
            let expected = [(Warming, 20), (Warming, 1), (Counted, 10), (Counted, 1)];
            assert_eq!(stretches(&[warms, begin - 1, begin, end - 1]), expected);
        }
        assert_eq!(stretches(&[6400, 6424, 9999]), [(Skipped, u64::MAX); 3]);
    }

    #[test]
    fn even_windows_begin_anywhere_in_their_parts() {
        let mut seen = [0u32; 9];
        for seed in 0..1000 {
            let plan = WindowPlan::even(13 * 64, 2 * 64, 3, seed).expect("windows");
            plan.windows().iter().for_each(|window| seen[(window.begin % 13 - 3) as usize] += 1);
        }
        // 7111 each on average, with a standard deviation of 80.
        assert!(seen.iter().all(|&times| (6750..7470).contains(&times)), "{seen:?}");
    }

    #[test]
    fn short_windows_take_the_warming_that_there_is() {
        let lengths = |accesses, counted, warming| {
            let plan = WindowPlan::short(&CostCurve::even(accesses), counted, warming, 3)?;
            let longest = |of: fn(&CountedWindow) -> u64| plan.windows().iter().map(of).max();
            Some((longest(|window| window.begin - window.warms)?, longest(|window| window.end - window.begin)?))
        };
        assert_eq!(lengths(6400, 10, 1 << 40), Some((89, 10)));
        assert_eq!(lengths(6400, 1 << 40, 1 << 40), Some((49, 50)));
        assert_eq!(lengths(6400, 10, 20), Some((20, 10)));
        assert_eq!(lengths(127, 10, 20), None);
        assert!(lengths(128, 10, 20).is_some());
    }

    #[test]
    fn what_is_no_longer_than_its_windows_is_run_whole() {
        let both = |total, warming| {
            let by_cost = WindowPlan::by_cost(&CostCurve::even(total), 6400, warming, 3);
            [WindowPlan::even(total, 6400, warming, 3).is_some(), by_cost.is_some()]
        };
        assert_eq!([both(0, 0), both(6400, 0), both(12_800, 100)], [[false; 2]; 3]);
        assert_eq!(both(12_864, 100), [true; 2]);
    }

    proptest! {
        /// In order, apart, within the run; and over many seeds what windows count stands for all, wherever it lies.
        #[test]
        fn windows_by_cost_stand_for_the_run(
            blocks in prop::collection::vec((1000u64..5000, prop_oneof![Just(0.0), 0.0f64..1e6]), 30..60), warming in 0u64..50,
            counted in 1u64..100, counts in prop::collection::vec(0.0f64..1.0, 60),
        ) {
            let mut costs = CostCurve::default();
            let (mut at, mut cycles) = (0, 0.0);
            let mut ends = Vec::new();
            for (length, cost) in &blocks {
                (at, cycles) = (at + length, cycles + cost);
                costs.push(at, cycles);
                ends.push(at);
            }
            // What is counted is spread evenly over each block.
            let until = |access: u64| {
                let block = ends.partition_point(|&end| end <= access);
                let before: f64 = counts[..block].iter().sum();
                let begin = if block == 0 { 0 } else { ends[block - 1] };
                before + blocks.get(block).map_or(0.0, |of| counts[block] * (access - begin) as f64 / of.0 as f64)
            };
            let (seeds, mut sum) = (300, 0.0);
            for seed in 0..seeds {
                let plan = WindowPlan::by_cost(&costs, counted * WindowPlan::WINDOWS, warming, seed).expect("windows");
                let mut free = 0;
                for window in plan.windows() {
                    prop_assert!(free <= window.warms && window.warms <= window.begin && window.begin < window.end);
                    prop_assert!(window.end - window.begin <= counted && window.begin - window.warms <= warming);
                    free = window.end;
                    sum += window.weight * (until(window.end) - until(window.begin));
                }
                prop_assert!(free <= at);
            }
            let (mean, all) = (sum / seeds as f64, until(at));
            prop_assert!((mean / all - 1.0).abs() < 0.05, "{mean} {all}");
        }
    }
}
