//! What to record, and how.

use std::ffi::OsString;

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
    /// Clock sampling at native speed.
    Sample,
}

/// The program to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordTarget {
    /// A program to start, with its arguments.
    Command(Vec<OsString>),
    /// A process that runs already (sampling only).
    Pid(u32),
}

/// A recording to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        }
    }
}
