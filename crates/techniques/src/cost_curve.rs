//! How a run's modelled translation cycles grow with its page visits, and where to cut windows by it.

/// Points that are kept at the most; beyond, every other one is dropped.
const MOST_POINTS: usize = 1 << 16;

/// Of what a window is chosen by, this part is its share of the translation cycles, and the rest its share of the
/// visits: where nothing walks some windows lie, too, and no window stands for more than twice its part of the visits.
const BY_COST: f64 = 0.5;

/// Modelled translation cycles after so many page visits.
#[derive(Clone, Debug, Default)]
pub struct CostCurve {
    /// Visits and cycles so far, both growing.
    points: Vec<(u64, f64)>,
    /// Visits from one point to the next, at least.
    every: u64,
    last: (u64, f64),
}

/// A stretch of a run's visits, and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowPlace {
    /// Its first visit, and how many there are.
    pub start: u64,
    /// Visits.
    pub length: u64,
    /// Windows of its kind in its part of the run: what is measured in it counts so many times.
    pub weight: f64,
    /// Its share of the run's modelled translation cycles, 0 to 1; of its visits, where there are no such cycles.
    pub cost_share: f64,
}

impl CostCurve {
    /// Of so many visits that cost the same.
    #[cfg(test)]
    pub(crate) fn even(visits: u64) -> Self {
        Self { points: Vec::new(), every: 0, last: (visits, 0.0) }
    }

    /// After `visits` visits in all, `cycles` translation cycles. Both never shrink.
    pub fn push(&mut self, visits: u64, cycles: f64) {
        self.last = (visits, cycles);
        if visits < self.points.last().map_or(0, |point| point.0) + self.every.max(1) {
            return;
        }
        self.points.push(self.last);
        if self.points.len() > MOST_POINTS {
            let mut odd = false;
            self.points.retain(|_| {
                odd = !odd;
                !odd
            });
            self.every = 2 * (visits / MOST_POINTS as u64).max(1);
        }
    }

    /// Of the first so many visits.
    pub fn until(&self, visits: u64) -> Self {
        if visits >= self.visits() {
            return self.clone();
        }
        let points: Vec<(u64, f64)> = self.points.iter().copied().take_while(|point| point.0 < visits).collect();
        let cycles = self.cost_share(visits) * self.last.1;
        Self { points, every: self.every, last: (visits, cycles) }
    }

    /// All visits.
    pub fn visits(&self) -> u64 {
        self.last.0
    }

    /// Places of at most `windows` windows of `length` visits. The run is parted where equal shares of cost and visits
    /// end, and the window lies in the midst of its part; a part that is no longer than it is taken whole.
    pub fn places(&self, windows: u64, length: u64) -> Vec<WindowPlace> {
        let total = self.visits();
        let windows = windows.min(total.div_ceil(length.max(1)));
        if windows == 0 {
            return Vec::new();
        }
        let end_of = |part: u64| if part == windows { total } else { self.visit_at(part as f64 / windows as f64) };
        let mut places = Vec::new();
        let mut from = 0;
        for part in 1..=windows {
            let to = end_of(part).max(from);
            let taken = length.min(to - from);
            if taken > 0 {
                let start = from + (to - from - taken) / 2;
                let (whole, own) = (self.share(to) - self.share(from), self.share(start + taken) - self.share(start));
                // Its visits alone are a share above 0.
                let weight = (whole / own).max(1.0);
                let cost_share = self.cost_share(start + taken) - self.cost_share(start);
                places.push(WindowPlace { start, length: taken, weight, cost_share });
            }
            from = to;
        }
        places
    }

    /// The visit before which this share of cost and visits lies.
    pub(crate) fn visit_at(&self, share: f64) -> u64 {
        let (mut low, mut high) = (0, self.visits());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.share(middle) < share {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Share of cost and visits of the first `visits` visits: 0 to 1.
    pub(crate) fn share(&self, visits: u64) -> f64 {
        BY_COST * self.cost_share(visits) + (1.0 - BY_COST) * visits as f64 / self.visits().max(1) as f64
    }

    /// Share of the cost of the first `visits` visits; between two points it grows evenly.
    fn cost_share(&self, visits: u64) -> f64 {
        let (total, cycles) = self.last;
        if cycles <= 0.0 {
            return visits as f64 / total.max(1) as f64;
        }
        let next = self.points.partition_point(|point| point.0 < visits);
        let before = if next == 0 { (0, 0.0) } else { self.points[next - 1] };
        let after = self.points.get(next).copied().unwrap_or(self.last);
        let part = if after.0 > before.0 { (visits - before.0) as f64 / (after.0 - before.0) as f64 } else { 1.0 };
        (before.1 + part.min(1.0) * (after.1 - before.1)) / cycles
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn curve(blocks: &[(u64, f64)]) -> CostCurve {
        let mut curve = CostCurve::default();
        let mut at = (0, 0.0);
        for (visits, cycles) in blocks {
            at = (at.0 + visits, at.1 + cycles);
            curve.push(at.0, at.1);
        }
        curve
    }

    #[test]
    fn windows_lie_where_the_cost_is() {
        // A tenth of the visits has all the cost: more than half of the windows lie there.
        let blocks: Vec<(u64, f64)> =
            (0..1000).map(|at| (1000, if (500..600).contains(&at) { 500.0 } else { 0.0 })).collect();
        let places = curve(&blocks).places(10, 5000);
        assert_eq!(places.len(), 10);
        let there: Vec<&WindowPlace> = places.iter().filter(|p| (500_000..600_000).contains(&p.start)).collect();
        assert!((5..=7).contains(&there.len()), "{places:?}");
        let cost: f64 = places.iter().map(|place| place.weight * place.cost_share).sum();
        let visits: f64 = places.iter().map(|place| place.weight * place.length as f64).sum();
        assert!((cost - 1.0).abs() < 0.2 && (visits / 1e6 - 1.0).abs() < 0.2, "{cost} {visits}");
    }

    #[test]
    fn a_short_run_is_taken_whole() {
        let places = curve(&[(100, 1.0), (50, 0.0)]).places(16, 100);
        assert_eq!(places.iter().map(|place| place.length).sum::<u64>(), 150);
        assert!(places.iter().all(|place| place.weight == 1.0));
        assert_eq!(CostCurve::default().places(16, 100), []);
        // Nothing costs anything: by visits alone.
        let places = curve(&[(1000, 0.0)]).places(4, 10);
        assert_eq!(places.iter().map(|place| place.start).collect::<Vec<_>>(), [120, 370, 620, 870]);
    }

    #[test]
    fn between_two_points_the_cost_grows_evenly() {
        let curve = curve(&[(100, 10.0), (100, 40.0)]);
        assert_eq!([0, 50, 100, 150, 200].map(|visits| curve.cost_share(visits)), [0.0, 0.1, 0.2, 0.6, 1.0]);
        // Of that a half, and of the visits a half.
        assert_eq!([0, 100, 200].map(|visits| curve.share(visits)), [0.0, 0.35, 1.0]);
    }

    #[test]
    fn a_part_without_visits_has_no_window() {
        // The first visit has all the cost: half of all parts end with it.
        let places = curve(&[(1, 100.0), (99, 0.0)]).places(4, 10);
        let found: Vec<(u64, u64, f64)> = places.iter().map(|p| (p.start, p.length, p.cost_share)).collect();
        assert_eq!(found, [(0, 1, 1.0), (20, 10, 0.0), (70, 10, 0.0)]);
        // Of cost and visits the second one has 5 of 24.5 hundredths, the last one 5 of 25.
        assert!(places.iter().zip([1.0, 4.9, 5.0]).all(|(p, weight)| (p.weight - weight).abs() < 1e-9), "{places:?}");
    }

    #[test]
    fn a_point_needs_a_visit_more_than_the_last() {
        let mut curve = CostCurve::default();
        for (visits, cycles) in [(0, 1.0), (1, 1.0), (1, 2.0), (2, 3.0), (4, 4.0), (4, 5.0)] {
            curve.push(visits, cycles);
        }
        assert_eq!(curve.points, [(1, 1.0), (2, 3.0), (4, 4.0)]);
        assert_eq!((curve.visits(), curve.last), (4, (4, 5.0)));
    }

    #[test]
    fn every_other_point_goes_when_there_are_too_many() {
        let mut curve = CostCurve::default();
        let most = MOST_POINTS as u64;
        let point = |number: u64| (1000 + 3 * number, number as f64);
        let mut push = |numbers: std::ops::Range<u64>| {
            numbers.map(point).for_each(|(visits, cycles)| curve.push(visits, cycles));
            (curve.points.clone(), curve.every)
        };
        assert!(push(0..most) == ((0..most).map(point).collect(), 0));
        let halved: Vec<(u64, f64)> = (1..most).step_by(2).map(point).collect();
        // Three visits a point until now; twice as many from here on.
        assert!(push(most..most + 1) == (halved.clone(), 6));
        assert!(push(most + 1..most + 4) == ([halved, vec![point(most + 1), point(most + 3)]].concat(), 6));
    }

    #[test]
    fn it_stays_small_and_true_over_a_long_run() {
        let mut curve = CostCurve::default();
        for at in 1..=1_000_000u64 {
            curve.push(7 * at, at as f64 * at as f64);
        }
        assert!(curve.points.len() <= MOST_POINTS);
        for share in [0.1, 0.25, 0.7] {
            let visits = (7e6 * share) as u64;
            assert!((curve.cost_share(visits) - share * share).abs() < 1e-3);
        }
    }

    proptest! {
        /// In order, apart, within the run; and what any window stands for adds up to about the run.
        #[test]
        fn places_are_in_order_and_stand_for_the_run(
            blocks in prop::collection::vec((1u64..5000, prop_oneof![Just(0.0), 0.0f64..1e6]), 1..200),
            windows in 1u64..20, length in 1u64..2000,
        ) {
            let curve = curve(&blocks);
            let places = curve.places(windows, length);
            prop_assert!(!places.is_empty() && places.len() as u64 <= windows);
            let mut end = 0;
            for place in &places {
                prop_assert!(place.start >= end && place.length >= 1 && place.length <= length && place.weight >= 1.0);
                prop_assert!((0.0..=1.0 + 1e-9).contains(&place.cost_share) && place.weight.is_finite());
                end = place.start + place.length;
            }
            prop_assert!(end <= curve.visits());
            // Each part's window stands for its part of cost and visits together.
            let stands: f64 = places.iter()
                .map(|p| p.weight * (BY_COST * p.cost_share + (1.0 - BY_COST) * p.length as f64 / curve.visits() as f64))
                .sum();
            prop_assert!(stands > 0.99 && stands < 1.01 || places.iter().any(|p| p.weight == 1.0), "{stands} {places:?}");
        }
    }
}
