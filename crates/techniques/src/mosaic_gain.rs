//! What runs with different parts of a program's memory huge say, as plain data.

use serde::{Deserialize, Serialize};

/// What runs with different parts of the memory huge say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MosaicGain {
    /// Runs of each mosaic that count.
    pub rounds: u32,
    /// Windows of 2 MiB that can be huge and cost something in the model.
    pub windows: u32,
    /// Of the model's translation cycles, the share of these windows.
    pub windows_share: f64,
    /// The model: user seconds by the share of the windows' cycles that is covered, its constant first; two terms are a
    /// line, three a parabola.
    pub terms: Vec<f64>,
    /// User seconds with small pages ÷ with all windows huge from the first moment on, by the model.
    pub ratio: f64,
    /// Lower end of its interval: 95 % by resampled rounds, less the mean error of mosaics left out.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// Windows, dearest first, that gain half of that; `None` = it gains nothing.
    pub half_windows: Option<u32>,
    /// Mean error of mosaics left out, as a share of their measured seconds.
    pub mean_left_out_error: f64,
    /// The largest of them.
    pub most_left_out_error: f64,
    /// The mosaics, small pages alone first.
    pub mosaics: Vec<MosaicRow>,
}

/// A mosaic, measured and foretold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MosaicRow {
    /// What it is.
    pub name: String,
    /// Windows of it.
    pub windows: u32,
    /// Median share of the windows' cycles that was covered.
    pub covered: f64,
    /// Median user seconds.
    pub user_seconds: f64,
    /// User seconds by a model of the other mosaics.
    pub left_out_seconds: f64,
}

impl MosaicRow {
    /// How far the foretold seconds are off, as a share of the measured ones; above 0 = too high.
    pub fn left_out_error(&self) -> f64 {
        self.left_out_seconds / self.user_seconds - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_share_of_the_measured_seconds() {
        let error = |left_out_seconds| {
            let row = MosaicRow { name: String::new(), windows: 1, covered: 0.5, user_seconds: 4.0, left_out_seconds };
            row.left_out_error()
        };
        assert_eq!([5.0, 4.0, 3.0, 10.0].map(error), [0.25, 0.0, -0.25, 1.5]);
    }
}
