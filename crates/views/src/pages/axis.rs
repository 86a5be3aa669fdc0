//! A linear axis.

/// An axis between the least and the greatest number, with a little room at each end.
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) width: f64,
}

impl Axis {
    pub(super) fn over(numbers: impl Iterator<Item = f64>) -> Option<Self> {
        let ends = numbers.filter(|x| x.is_finite()).fold(None, |ends: Option<(f64, f64)>, x| {
            Some(ends.map_or((x, x), |(low, high)| (low.min(x), high.max(x))))
        });
        let (low, high) = ends?;
        let room = ((high - low) * 0.06).max(high.abs() * 1e-3).max(1e-12);
        Some(Self { low: low - room, width: high - low + 2.0 * room })
    }

    /// Percent of the axis.
    pub(super) fn at(&self, x: f64) -> f64 {
        ((x - self.low) / self.width * 100.0).clamp(0.0, 100.0)
    }

    /// Round numbers on the axis, two to eleven of them: multiples of 1, 2 or 5 times a power of ten. None where numbers are too large for a
    /// step between them.
    pub(super) fn round_numbers(&self) -> Vec<f64> {
        let about = self.width / 5.0;
        let power = 10f64.powf(about.log10().floor());
        let step = [1.0, 2.0, 5.0].map(|times| times * power).into_iter().find(|step| *step >= about);
        let step = step.unwrap_or(10.0 * power);
        let (first, last) = ((self.low / step).ceil(), ((self.low + self.width) / step).floor());
        if !(last - first).is_finite() {
            return Vec::new();
        }
        (0..=(last - first).min(10.0) as u32).map(|n| (first + f64::from(n)) * step).collect()
    }

    /// Decimals that tell round numbers from each other.
    pub(super) fn decimals(&self) -> usize {
        (-(self.width / 5.0).log10().floor()).clamp(0.0, 9.0) as usize
    }

    /// Round numbers with their names; a name that is that of the one before is left out with its line.
    pub(super) fn ticks(&self, name: impl Fn(f64) -> String) -> Vec<(f64, String)> {
        let mut ticks: Vec<_> = self.round_numbers().into_iter().map(|x| (x, name(x))).collect();
        ticks.dedup_by(|later, before| later.1 == before.1);
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::Axis;

    #[test]
    fn an_axis_holds_its_numbers_whatever_they_are() {
        assert!(Axis::over([f64::NAN].into_iter()).is_none());
        for numbers in [vec![0.0], vec![1.0, 1.0], vec![-5.0, 1e300], vec![1e-9, 2e-9]] {
            let axis = Axis::over(numbers.iter().copied()).expect("an axis");
            for x in numbers {
                assert!((0.0..=100.0).contains(&axis.at(x)) && axis.width > 0.0);
            }
            assert!(axis.round_numbers().len() <= 11);
        }
    }

    #[test]
    fn lines_are_at_round_numbers() {
        let ticks = |numbers: [f64; 2]| {
            let axis = Axis::over(numbers.into_iter()).expect("an axis");
            axis.ticks(|x| format!("{x:.2}")).into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ticks([0.44, 4.3]), "1.00 2.00 3.00 4.00");
        assert_eq!(ticks([50.6, 338.0]), "100.00 200.00 300.00");
        assert_eq!(ticks([0.97, 1.02]), "0.98 1.00 1.02");
        assert_eq!(ticks([-0.03, 0.03]), "-0.02 0.00 0.02");
        // Names that would be alike: 1.001, 1.002 and so on.
        assert_eq!(ticks([1.0, 1.004]), "1.00");
    }
}
