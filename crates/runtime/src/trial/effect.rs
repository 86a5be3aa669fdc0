//! How much a measure changed, by its values in pairs of phases.

use lookaside_stats::{median, paired_shift, Shift};
use serde::Serialize;

/// Of all intervals of a trial: it decides about a service that somebody depends on, and about many of them in turn, so
/// that one wrong answer of a hundred is the most to ask for.
pub const CONFIDENCE: f64 = 0.99;

/// What is measured of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// CPU seconds in a second.
    CpuTime,
    /// CPU seconds for each call that writes.
    CpuTimePerWrite,
    /// CPU seconds of the busiest process for each pass of a place in its code.
    CpuTimePerPass,
    /// All samples over those outside what is switched.
    Samples,
    /// CPU seconds for each instruction.
    Instructions,
    /// Mean of the numbers that were told.
    NumbersMean,
    /// Their median.
    NumbersP50,
    /// Their 99th percentile.
    NumbersP99,
    /// Their 99.9th percentile.
    NumbersP999,
}

/// What became of a measure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MeasureEffect {
    /// Which.
    pub measure: Measure,
    /// Its name.
    pub name: String,
    /// Its median while nothing was applied.
    pub off: f64,
    /// Its median while it was.
    pub on: f64,
    /// By what part it changed, −0.05 for 5 % less; with its interval.
    pub change: Shift,
    /// Pairs of phases.
    pub pairs: usize,
}

impl MeasureEffect {
    /// Of a measure's values, without and with it, in pairs; `None` where the pairs are too few, or a value is not above
    /// 0.
    pub fn of(measure: Measure, name: &str, pairs: &[(f64, f64)]) -> Option<Self> {
        let logarithms: Vec<f64> = pairs.iter().map(|(off, on)| (on / off).ln()).collect();
        let shift = paired_shift(&logarithms, CONFIDENCE)?;
        let [value, low, high] = [shift.value, shift.low, shift.high].map(f64::exp_m1);
        Some(Self {
            measure,
            name: name.into(),
            off: median(pairs.iter().map(|pair| pair.0))?,
            on: median(pairs.iter().map(|pair| pair.1))?,
            change: Shift { value, low, high },
            pairs: pairs.len(),
        })
    }

    /// How far the interval reaches to either side, at most.
    pub fn half_width(&self) -> f64 {
        (self.change.high - self.change.value).max(self.change.value - self.change.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_a_part_of_what_was() {
        let pairs: Vec<(f64, f64)> = (1..=10).map(|i| (f64::from(i), 0.9 * f64::from(i))).collect();
        let effect = MeasureEffect::of(Measure::CpuTime, "x", &pairs).expect("ten pairs");
        for each in [effect.change.value, effect.change.low, effect.change.high] {
            assert!((each + 0.1).abs() < 1e-12, "{each}");
        }
        assert_eq!((effect.off, effect.on, effect.pairs), (5.5, 4.95, 10));
        assert!(effect.half_width() < 1e-12);
    }

    #[test]
    fn values_of_nothing_have_no_effect() {
        for bad in [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (f64::NAN, 1.0)] {
            let mut pairs = vec![(1.0, 1.0); 10];
            pairs.push(bad);
            assert_eq!(MeasureEffect::of(Measure::Samples, "x", &pairs), None, "{bad:?}");
        }
        assert_eq!(MeasureEffect::of(Measure::Samples, "x", &[(1.0, 1.0); 7]), None);
    }
}
