//! Trials: what might help a running process is applied to it and taken back, in turns and in random order, while its
//! progress is measured from outside; what is shown to help stays.
//!
//! A [`TrialRequest`] says for which processes, what is [switched](TrialLever), by which [`TrialMetric`] it is judged,
//! and for how long. [`run()`] does it. A [`Journal`] on disk has what was done to whom before it is done, so that
//! [`undo()`] can clear it up whatever happens to the command. What `run` found is a [`TrialReport`].

mod auto_metric;
mod autopilot;
mod bake_lever;
mod decide;
mod effect;
mod error;
mod journal;
mod lever;
mod meter;
mod metric;
mod number_stream;
mod pass_counter;
mod report;
mod request;
mod run;
mod target;
mod undo;
mod window_lever;

pub use autopilot::{Autopilot, AutopilotLimits, AutopilotTotals};
pub use decide::{Decision, TrialVerdict};
pub use effect::{Measure, MeasureEffect, CONFIDENCE};
pub use error::TrialError;
pub use journal::{Journal, JournalEntry, JournalProcess, JournalState};
pub use lever::{LeverCalls, LeverState};
pub use metric::{NumberSource, ReadNumber, Statistic, TrialMetric};
pub use report::{PhaseRow, TrialProcess, TrialReport};
pub use request::{CodeMark, MarkFinder, TrialLever, TrialRequest};
pub use run::run;
pub use undo::{undo, UndoneEntry};
