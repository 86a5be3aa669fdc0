//! A figure that passes agree on: from the lowest to the highest that they measured.

use serde::Serialize;

/// Passes agree on a latency within this share and so many cycles.
pub(crate) const SAME_CYCLES: (f64, f64) = (0.12, 0.5);

/// A figure as the passes that agree on it measured it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MeasuredRange {
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// Passes.
    pub passes: usize,
}

impl MeasuredRange {
    /// Its middle.
    pub fn middle(&self) -> f64 {
        (self.low + self.high) / 2.0
    }

    /// Its middle, to a tenth.
    pub(crate) fn middle_to_a_tenth(&self) -> f64 {
        ((self.low + self.high) * 5.0).round() / 10.0
    }
}

/// The range of the first two figures that agree, and of all others that agree with both: within this share and so much
/// more.
pub(crate) fn agreed_range(figures: &[f64], (share, more): (f64, f64)) -> Option<MeasuredRange> {
    let same = |a: f64, b: f64| (a - b).abs() <= share * a.min(b) + more;
    for (i, &a) in figures.iter().enumerate() {
        for &b in &figures[..i] {
            if same(a, b) {
                let all: Vec<f64> = figures.iter().copied().filter(|&c| same(a, c) && same(b, c)).collect();
                let (low, high) = all.iter().fold((f64::MAX, 0.0f64), |(low, high), &c| (low.min(c), high.max(c)));
                return Some(MeasuredRange { low, high, passes: all.len() });
            }
        }
    }
    None
}
