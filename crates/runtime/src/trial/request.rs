//! What to try.

use std::sync::Arc;
use std::time::Duration;

use super::error::TrialError;
use super::metric::TrialMetric;
use crate::bake::Settings;
use crate::hugepages::{AddressSampler, ObservedBy, PlanFinder};

/// What is switched.
#[derive(Clone)]
pub enum TrialLever {
    /// Huge pages for the windows of memory that are seen most.
    HugePages {
        /// At most so many.
        budget: usize,
        /// They may add so many bytes to what the processes have in memory.
        memory_bytes: u64,
        /// How it is found out which; `None` = by samples, and by referenced bits where those are refused.
        by: Option<ObservedBy>,
        /// The windows of a plan instead.
        plan: Option<Arc<dyn PlanFinder>>,
    },
    /// Page-table entries kept in the caches by a helper of this command.
    Bake(Settings),
}

/// Finds a place in a process's code by which its progress can be counted. The one who looks is another room's: whoever
/// starts this brings it.
pub trait MarkFinder: Send + Sync {
    /// Looks for one that is passed now and then, for so long, or until `stop` says so; `None`: there is none.
    ///
    /// # Errors
    /// In a line: why nothing can be counted.
    fn find(&self, pid: u32, time: Duration, stop: &dyn Fn() -> bool) -> Result<Option<CodeMark>, String>;

    /// The first instruction of a function.
    ///
    /// # Errors
    /// In a line: there is none of that name, or it can't be counted.
    fn of_function(&self, pid: u32, function: &str, stop: &dyn Fn() -> bool) -> Result<CodeMark, String>;
}

/// A place in a process's code.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeMark {
    /// The instruction's address.
    pub address: u64,
    /// What is there.
    pub name: String,
    /// How often the busiest thread passed it in a second of its CPU time.
    pub per_cpu_second: f64,
}

/// What to try, and how it is judged.
pub struct TrialRequest<'a> {
    /// Processes, by number.
    pub pids: Vec<u32>,
    /// What is switched.
    pub lever: TrialLever,
    /// By what it is judged.
    pub metric: TrialMetric,
    /// For how long at most, after the choice.
    pub time: Duration,
    /// How long the processes are looked at to choose.
    pub look: Duration,
    /// How long one phase lasts, with what is applied or without; what switching takes comes on top.
    pub phase: Duration,
    /// The beginning of a phase that does not count, after a switch.
    pub settle: Duration,
    /// It ends when the interval of the effect is no wider than this to either side: 0.01 is one percent.
    pub precision: f64,
    /// It ends, and takes back, when a call took longer.
    pub most_stall: Duration,
    /// What is shown to help is taken back, too.
    pub only_measure: bool,
    /// Of the order of the phases.
    pub seed: u64,
    /// The sampler.
    pub sampler: Arc<dyn AddressSampler>,
    /// Who finds places to count by.
    pub marks: Arc<dyn MarkFinder>,
    /// Whether to stop.
    pub stop: &'a dyn Fn() -> bool,
    /// What is going on, in a few words.
    pub progress: &'a dyn Fn(&str),
}

impl TrialRequest<'_> {
    /// Finds out whether the times make sense, and whether what is to be baked with reaches other processes.
    ///
    /// # Errors
    /// In a line.
    pub fn check(&self) -> Result<(), TrialError> {
        /// Two halves of which clock ticks and samples make something.
        const LEAST: Duration = Duration::from_millis(200);
        if self.phase < self.settle + LEAST {
            let line = format!("--phase {:?}: want at least 200 ms more than --settle {:?}", self.phase, self.settle);
            return Err(TrialError::Bad(line));
        }
        if self.time < 2 * self.phase {
            return Err(TrialError::Bad(format!(
                "--for {:?}: want at least two phases of {:?}",
                self.time, self.phase
            )));
        }
        if let TrialLever::Bake(settings) = &self.lever {
            settings.check()?;
            settings.check_reach()?;
        }
        Ok(())
    }
}
