//! How a program is recorded: the arguments that `analyze` and `record` share.

use clap::ValueEnum;
use lookaside_capture::RecorderBackend;
use lookaside_trace::Granularity;

/// How programs are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendArg {
    /// Exact, through our Valgrind tool
    Valgrind,
    /// Exact, foreign ISAs, through QEMU's user-mode emulator
    Qemu,
    /// Clock sampling at native speed
    Sample,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GranularityArg {
    /// Repeats of a page are counted, not recorded: fastest
    Page,
    /// Repeats of a line are counted, not recorded: data caches see every line
    Line,
    /// Every access is recorded
    Byte,
}

impl From<BackendArg> for RecorderBackend {
    fn from(arg: BackendArg) -> Self {
        match arg {
            BackendArg::Valgrind => Self::Valgrind,
            BackendArg::Qemu => Self::Qemu,
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
