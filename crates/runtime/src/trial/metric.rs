//! By what a trial judges.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use lookaside_stats::quantile;
use serde::Serialize;

/// Finds the number in a line; `None` where it has none.
pub type ReadNumber = Arc<dyn Fn(&str) -> Option<f64> + Send + Sync>;

/// By what a trial judges.
#[derive(Clone)]
pub enum TrialMetric {
    /// CPU time a write call where the threads that use the CPU write often enough; else CPU time a pass of a place in
    /// the code, if one is found that is passed now and then; else where samples fall.
    Auto,
    /// CPU time of the processes, user and system, in a second: for a load that stays the same.
    CpuTime,
    /// CPU time of the processes for each call that writes.
    CpuTimePerWrite,
    /// CPU time of the busiest process for each time that it passes a place in its code, which is looked for.
    CpuTimePerPass,
    /// The same, the place being the beginning of this function.
    CpuTimePerCall(String),
    /// Time for the same work, by where clock samples fall: the time outside the memory that is switched stands for
    /// the work.
    Samples,
    /// CPU time for each instruction that the PMU counts.
    Instructions,
    /// Numbers that something outside tells.
    Numbers {
        /// Where they come from.
        source: NumberSource,
        /// Finds the number in a line.
        read: ReadNumber,
        /// What of a phase's numbers counts.
        statistic: Statistic,
        /// More is better.
        more_is_better: bool,
    },
}

impl fmt::Debug for TrialMetric {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.name())
    }
}

/// What prints numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NumberSource {
    /// A command of the shell, run again and again while the trial lasts; each line of its output may have a number.
    Command(String),
    /// Lines that are added to a file.
    Log(PathBuf),
}

/// What of a phase's numbers counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// Their mean.
    #[default]
    Mean,
    /// Their median.
    P50,
    /// The number that one of a hundred exceeds.
    P99,
    /// The number that one of a thousand exceeds.
    P999,
}

impl Statistic {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Mean, Self::P50, Self::P99, Self::P999];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        }
    }

    /// Of these numbers; `None` where they are too few to tell: of a tail, ten have to lie beyond it.
    pub fn of(self, numbers: &[f64]) -> Option<f64> {
        let part = match self {
            Self::Mean => return mean(numbers),
            Self::P50 => 0.5,
            Self::P99 => 0.99,
            Self::P999 => 0.999,
        };
        /// Numbers beyond a quantile from which it is told.
        const BEYOND: f64 = 10.0;
        let enough = self == Self::P50 || numbers.len() as f64 * (1.0 - part) >= BEYOND - 1e-9;
        quantile(numbers.iter().copied(), part).filter(|_| enough)
    }
}

fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

impl TrialMetric {
    /// What it is, in a few words.
    pub fn name(&self) -> String {
        match self {
            Self::Auto => "auto".into(),
            Self::CpuTime => "CPU time a second".into(),
            Self::CpuTimePerWrite => "CPU time a write call".into(),
            Self::CpuTimePerPass => "CPU time a pass".into(),
            Self::CpuTimePerCall(function) => format!("CPU time a call of {function}"),
            Self::Samples => "time for the same work, by samples".into(),
            Self::Instructions => "CPU time an instruction".into(),
            Self::Numbers { source, statistic, .. } => match source {
                NumberSource::Command(command) => format!("{} of `{command}`", statistic.name()),
                NumberSource::Log(path) => format!("{} of {}", statistic.name(), path.display()),
            },
        }
    }

    /// More is better.
    pub fn more_is_better(&self) -> bool {
        matches!(self, Self::Numbers { more_is_better: true, .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_told_where_ten_numbers_lie_beyond_it() {
        let numbers: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!(Statistic::Mean.of(&numbers), Some(500.5));
        assert_eq!(Statistic::P50.of(&numbers[..3]), Some(2.0));
        assert_eq!(Statistic::P99.of(&numbers), Some(990.01));
        assert_eq!(Statistic::P99.of(&numbers[..999]), None);
        assert_eq!(Statistic::P999.of(&numbers), None);
        assert!(Statistic::ALL.iter().all(|statistic| statistic.of(&[]).is_none()));
    }
}
