//! A paper's rows side by side.

use schemars::JsonSchema;
use serde::Serialize;

use crate::row::{PaperRow, RowVerdict};

/// A paper's rows side by side, with what is needed to judge them.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct Reproduction {
    /// Short name of the paper.
    pub paper: String,
    /// Its reference.
    pub cite: String,
    /// Machine that the model ran, or that was measured.
    pub machine: String,
    /// It was measured; else modelled.
    pub measured: bool,
    /// What the model was told beside the machine, and why; or how it was measured.
    pub assumptions: Vec<String>,
    /// Every published value, in the paper's order.
    pub rows: Vec<PaperRow>,
    /// Curves behind the rows, for plots.
    pub series: Vec<PaperCurve>,
    /// Why measuring ended before its end; `None` = it did not.
    pub halted: Option<String>,
}

impl Reproduction {
    /// Rows that count: neither fitted, nor another machine's figure, nor beyond the paper, nor not reproduced.
    pub fn counted(&self) -> impl Iterator<Item = &PaperRow> {
        self.rows.iter().filter(|row| matches!(row.verdict, RowVerdict::Holds | RowVerdict::Differs))
    }

    /// Of those, the ones that hold.
    pub fn holding(&self) -> usize {
        self.counted().filter(|row| row.verdict == RowVerdict::Holds).count()
    }
}

/// A curve.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct PaperCurve {
    /// What it shows.
    pub name: String,
    /// What x is, with its unit.
    pub x: String,
    /// What y is, with its denominator.
    pub y: String,
    /// Points in ascending x.
    pub points: Vec<(f64, f64)>,
    /// Interval of each point's y, where it is a median of measurements; none for a model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<(f64, f64)>,
    /// What each point is, where x only numbers them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}
