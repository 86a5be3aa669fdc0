//! What a plan is made for: the arguments that `hugepages plan` and `lock plan` share.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// A program that is recorded now, or a trace of one.
#[derive(Args)]
pub struct PlannedProgram {
    /// Run the program natively first, with fixed addresses, and report where the plan's memory lies there
    #[arg(long, conflicts_with = "trace")]
    pub native: bool,
    /// Use a recorded trace instead of running a program
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub trace: Option<PathBuf>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, value_name = "CMD", required_unless_present = "trace")]
    pub command: Vec<OsString>,
}
