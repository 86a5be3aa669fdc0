//! How a program is recorded: the arguments that `analyze` and `record` share.

use clap::ValueEnum;
use lookaside_capture::RecorderBackend;
use lookaside_trace::Granularity;

/// How programs are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendArg {
    /// Exact, with Lookaside's Valgrind tool
    Valgrind,
    /// Exact, also for other ISAs, with QEMU's user-mode emulator
    Qemu,
    /// A program built by lookaside cc records its own loads and stores
    Compiled,
    /// Exact within intervals of the run, at native speed between them
    Intervals,
    /// Clock-based sampling at native speed
    Sample,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GranularityArg {
    /// Count repeated accesses to a page: fastest
    Page,
    /// Count repeated accesses to a cache line: exact for data caches
    Line,
    /// Record every access
    Byte,
}

impl From<BackendArg> for RecorderBackend {
    fn from(arg: BackendArg) -> Self {
        match arg {
            BackendArg::Valgrind => Self::Valgrind,
            BackendArg::Qemu => Self::Qemu,
            BackendArg::Compiled => Self::Compiled,
            BackendArg::Intervals => Self::Intervals,
            BackendArg::Sample => Self::Sample,
        }
    }
}

impl From<GranularityArg> for Granularity {
    fn from(arg: GranularityArg) -> Self {
        match arg {
            GranularityArg::Page => Self::Page,
            GranularityArg::Line => Self::Line,
            GranularityArg::Byte => Self::Byte,
        }
    }
}
