//! What to record, and how.

use std::ffi::OsString;
use std::time::Duration;

use lookaside_trace::{FilterWindow, Granularity};

/// The recorders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecorderBackend {
    /// Exact: our Valgrind tool.
    Valgrind,
    /// Exact, foreign ISAs: our plugin in QEMU's user-mode emulator.
    Qemu,
    /// Exact for the program's own loads and stores: the program records itself, as [`recording_compiler`] built it.
    ///
    /// [`recording_compiler`]: crate::recording_compiler
    Compiled,
    /// Exact within intervals of the run, at native speed between them: copies of the process are followed.
    Intervals,
    /// Clock sampling at native speed.
    Sample,
}

/// The program to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordTarget {
    /// A program to start, with its arguments.
    Command(Vec<OsString>),
    /// A process that runs already (intervals and sampling only).
    Pid(u32),
    /// Several processes that run already (sampling only).
    Pids(Vec<u32>),
}

/// How long an interval is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalLength {
    /// So many instructions.
    Instructions(u64),
    /// As many instructions as the thread executes in so much CPU time at its own speed. That is measured after each
    /// interval, for the next ones.
    CpuTime(Duration),
}

/// A moment of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunMoment {
    /// So long after the start of the recording.
    After(Duration),
    /// The first call of the function that a symbol of the program or of one of its libraries names so.
    Call(String),
}

/// Which parts of a run are recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals {
    /// CPU time of the program from one interval to the next, on average.
    pub every: Duration,
    /// Intervals come less often where they would cost more than this part of the program's CPU time: CPU time of ours
    /// and of what is copied. `None` = whatever they cost.
    pub budget: Option<f64>,
    /// Of one interval, at most.
    pub length: IntervalLength,
    /// The first interval begins after it.
    pub start: RunMoment,
    /// None begins after it, where it comes after `start`; `None` = they begin while the program runs.
    pub stop: Option<RunMoment>,
}

/// A recording to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordRequest {
    /// The program.
    pub target: RecordTarget,
    /// The recorder; `None` = the best that is installed and fits the program.
    pub backend: Option<RecorderBackend>,
    /// `Byte` = everything; `Line`, `Page` = repeats of a line or page left out and counted.
    pub granularity: Granularity,
    /// See [`lookaside_trace::TraceInfo::filter_log2_classes`].
    pub filter_log2_classes: u32,
    /// Windows in place of the above. Valgrind only, page granularity only: elsewhere the above holds.
    pub filter_window: FilterWindow,
    /// See [`lookaside_trace::TraceInfo::filter_stores_apart`].
    pub filter_stores_apart: bool,
    /// Loads, stores and fetches go through one filter (machines with a unified first level).
    pub filter_unified: bool,
    /// Record instruction fetches too.
    pub fetches: bool,
    /// Tell which instructions' visits wait for each other ([`lookaside_trace::Event::Waits`]). Only where there are
    /// windows.
    pub waits: bool,
    /// Samples per second of each thread's CPU time (sampling only).
    pub sample_hz: u32,
    /// The parts that are recorded; wanted by [`RecorderBackend::Intervals`], of no meaning elsewhere.
    pub intervals: Option<Intervals>,
}

impl RecordRequest {
    /// The clock sampler's, which filters nothing.
    pub fn sampling(target: RecordTarget, sample_hz: u32) -> Self {
        Self {
            target,
            backend: Some(RecorderBackend::Sample),
            granularity: Granularity::Byte,
            filter_log2_classes: 0,
            filter_window: FilterWindow::default(),
            filter_stores_apart: false,
            filter_unified: false,
            fetches: false,
            waits: false,
            sample_hz,
            intervals: None,
        }
    }
}
