//! What is to be compared, and how.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use super::preloaded_baker::PreloadedBaker;
use super::pressure::Pressure;
use super::variant::Variant;
use crate::hugepages::{AddressSampler, PlanFinder};

/// Reads a number out of a line of output: `None` if it is not the line, an error if it is and holds no number.
pub type ReadLine = Box<dyn Fn(&str) -> Result<Option<f64>, String>>;

/// What is compared.
pub enum Metric {
    /// Seconds from start to end.
    Wall,
    /// Seconds of CPU in user mode, all threads, as the kernel counts them.
    User,
    /// Seconds of CPU in the kernel.
    Sys,
    /// A number in the program's output; the last one counts.
    Output {
        /// How it was asked for.
        name: String,
        /// Finds it.
        read: ReadLine,
    },
}

impl Metric {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Wall => "wall time",
            Self::User => "user time",
            Self::Sys => "system time",
            Self::Output { name, .. } => name,
        }
    }

    /// It is a time, in seconds: less is better, and ratios are base ÷ variant.
    pub fn is_time(&self) -> bool {
        !matches!(self, Self::Output { .. })
    }
}

/// What to compare.
pub struct ComparisonPlan {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Ways to run it, the first being what the others are compared with.
    pub variants: Vec<Variant>,
    /// Rounds that count.
    pub runs: u32,
    /// Rounds before them that don't.
    pub warmups: u32,
    /// What is compared.
    pub metric: Metric,
    /// What runs beside.
    pub pressure: Pressure,
    /// Of the orders and resamples.
    pub seed: u64,
    /// The library for variants that [need it](Variant::needs_preload).
    pub inside: Option<PreloadedBaker>,
    /// How programs are sampled; needed if huge pages are to be chosen.
    pub look: Option<Arc<dyn AddressSampler>>,
    /// The plans of huge pages that variants name, by file.
    pub plans: BTreeMap<PathBuf, Arc<dyn PlanFinder>>,
}

/// What happens while programs run.
pub struct ComparisonHooks<'a> {
    /// Whether to stop.
    pub halt: &'a dyn Fn() -> bool,
    /// A program of this number has started.
    pub started: &'a dyn Fn(u32),
    /// It has ended; its number is not yet given to another.
    pub ended: &'a dyn Fn(),
    /// What is going on.
    pub progress: &'a dyn Fn(&str),
}
