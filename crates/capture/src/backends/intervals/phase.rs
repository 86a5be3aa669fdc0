//! The part of a run in which intervals begin.

use std::time::Instant;

use super::call_marker::CallMarker;
use crate::request::{Intervals, RunMoment};

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunPhase {
    /// No interval may begin yet.
    Before,
    Within,
    /// No more begins.
    Over,
}

/// Follows a run through its phases.
#[derive(Debug)]
pub(super) struct PhaseWatch {
    phase: RunPhase,
    began: Instant,
    start: PhaseBorder,
    stop: Option<PhaseBorder>,
}

#[derive(Debug)]
enum PhaseBorder {
    At(Instant),
    Call(CallMarker),
}

impl PhaseWatch {
    /// The recording of a process starts now.
    ///
    /// # Errors
    /// A call can't be noticed: in one line.
    pub(super) fn new(process: u32, intervals: &Intervals) -> Result<Self, String> {
        let began = Instant::now();
        let border = |option: &str, moment: &RunMoment| match moment {
            RunMoment::After(time) => Ok(PhaseBorder::At(began + *time)),
            RunMoment::Call(function) => {
                let marker = CallMarker::new(process, function);
                marker.map(PhaseBorder::Call).map_err(|why| format!("{option} call:{function}: {why}"))
            }
        };
        let start = border("--start", &intervals.start)?;
        let stop = intervals.stop.as_ref().map(|moment| border("--stop", moment)).transpose()?;
        start.begin();
        Ok(Self { phase: RunPhase::Before, began, start, stop })
    }

    pub(super) fn look(&mut self) -> RunPhase {
        if self.phase == RunPhase::Before && self.start.is_reached() {
            self.phase = RunPhase::Within;
            if let Some(stop) = &self.stop {
                stop.begin();
            }
            self.start = PhaseBorder::At(self.began);
        }
        if self.phase == RunPhase::Within && self.stop.as_mut().is_some_and(PhaseBorder::is_reached) {
            self.phase = RunPhase::Over;
            self.stop = None;
        }
        self.phase
    }

    /// A call is waited for, each of which takes time until it is noticed.
    pub(super) fn waits_for_call(&self) -> bool {
        match self.phase {
            RunPhase::Before => matches!(self.start, PhaseBorder::Call(_)),
            RunPhase::Within => matches!(self.stop, Some(PhaseBorder::Call(_))),
            RunPhase::Over => false,
        }
    }

    /// For the reader of the result, where what was waited for has not come.
    pub(super) fn remark(&self) -> Option<String> {
        match (self.phase, &self.start, &self.stop) {
            (RunPhase::Before, PhaseBorder::Call(marker), _) => {
                Some(format!("no interval: the program was not seen to call {} (--start call:{0})", marker.function))
            }
            (RunPhase::Within, _, Some(PhaseBorder::Call(marker))) => Some(format!(
                "intervals up to the end of the run: the program was not seen to call {} (--stop call:{0})",
                marker.function
            )),
            _ => None,
        }
    }
}

impl PhaseBorder {
    fn begin(&self) {
        if let Self::Call(marker) = self {
            marker.begin();
        }
    }

    fn is_reached(&mut self) -> bool {
        match self {
            Self::At(moment) => Instant::now() >= *moment,
            Self::Call(marker) => marker.is_called(),
        }
    }
}
