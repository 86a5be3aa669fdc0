//! Exit codes, and errors on their way to one.

use crate::say::say;
use std::fmt;
use std::process::ExitCode;

/// An error for the user: one line, and the exit code that goes with it.
#[derive(Debug)]
pub struct Failure {
    /// What, where, what to do.
    pub line: String,
    /// Exit code.
    pub code: u8,
}

/// Bad input.
pub const BAD_INPUT: u8 = 2;
/// Done, but not clean.
pub const NOT_CLEAN: u8 = 1;
/// The recording broke off.
pub const BROKE_OFF: u8 = 125;

impl Failure {
    /// Bad input: exit code 2.
    pub fn bad(line: impl fmt::Display) -> Self {
        Self { line: line.to_string(), code: BAD_INPUT }
    }

    /// Prints the line and gives the code.
    pub fn report(&self) -> ExitCode {
        say(&self.line);
        ExitCode::from(self.code)
    }
}

impl From<lookaside_capture::CaptureError> for Failure {
    fn from(e: lookaside_capture::CaptureError) -> Self {
        let code = match &e {
            lookaside_capture::CaptureError::Program { code, .. } => u8::try_from(*code).unwrap_or(BAD_INPUT),
            _ => BAD_INPUT,
        };
        Self { line: e.to_string(), code }
    }
}

impl From<lookaside_runtime::compare::CompareError> for Failure {
    fn from(e: lookaside_runtime::compare::CompareError) -> Self {
        match &e {
            lookaside_runtime::compare::CompareError::Bad(_) => Self::bad(e),
            lookaside_runtime::compare::CompareError::Start { code, .. } => Self { line: e.to_string(), code: *code },
        }
    }
}

impl From<lookaside_runtime::bake::BakeError> for Failure {
    fn from(e: lookaside_runtime::bake::BakeError) -> Self {
        Self::bad(format_args!("baking: {e}"))
    }
}

macro_rules! bad_input_from {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(e: $error) -> Self {
                Self::bad(e)
            }
        })*
    };
}

bad_input_from!(
    lookaside_machine::MachineError,
    lookaside_engine::SetupError,
    lookaside_trace::TraceError,
    lookaside_techniques::ProfileError,
    lookaside_techniques::color::tasks::TasksError,
    lookaside_techniques::color::plan::ColorError,
    lookaside_techniques::plan::PlanError,
    lookaside_runtime::hugepages::HugePageError,
    lookaside_runtime::trial::TrialError,
    lookaside_workloads::WorkloadError,
    std::io::Error,
);
