//! What all runs of a set share.

use lookaside_machine::{ColorLevel, Machine};
use lookaside_probe::counter::{PassMeter, TimedChain, Timer};
use lookaside_techniques::color::tasks::TaskSet;

use super::error::TaskRunError;
use super::foreign_pages::ForeignPages;
use super::real_time::Scheduling;

/// What the runs share.
pub(super) struct TaskBench<'a> {
    pub set: &'a TaskSet,
    pub machine: &'a Machine,
    pub timer: Timer,
    /// The level that is counted, among all.
    pub level: &'a ColorLevel,
    pub levels: &'a [ColorLevel],
    pub cpu: usize,
    pub scheduling: Scheduling,
    pub hyperperiod_ns: u64,
    pub counting: MissCounting,
    /// Elements that a job touches, of each task that runs a program.
    pub elements: Vec<Option<u64>>,
}

impl TaskBench<'_> {
    /// Entries of the levels before the one that is counted.
    pub(super) fn before(&self) -> usize {
        let before = self.levels.iter().take_while(|level| level.name != self.level.name);
        before.map(|level| level.sets as usize * level.ways as usize).sum()
    }
}

/// How a meter for a chain over these words comes about; the last switches to another thread and back.
pub(super) type Calibrate =
    fn(&ForeignPages<'_>, &TimedChain, &[[*mut u64; 2]], &mut dyn FnMut()) -> Result<PassMeter, TaskRunError>;

/// How misses are counted.
#[derive(Clone, Copy, Debug)]
pub(super) enum MissCounting {
    /// By what was walked for.
    Walks,
    /// By time, with meters that come about so.
    Timing(Calibrate),
}
