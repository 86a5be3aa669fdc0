//! The arguments of `record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::intervals::IntervalArgs;
use super::recording::{BackendArg, GranularityArg};

#[derive(Args)]
pub struct RecordArgs {
    /// Trace file to write
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// How to record [default: the best one installed]
    #[arg(long, value_enum)]
    pub backend: Option<BackendArg>,
    /// What an exact recording may leave out
    #[arg(long, value_enum, default_value = "page")]
    pub granularity: GranularityArg,
    /// Omit what the first TLB level of this machine is sure to hold: mostly faster and a smaller trace, exact for
    /// this machine (repeatable: for all of these) [default: omit repeats of the last page only]
    #[arg(long, short, value_name = "NAME|FILE", conflicts_with = "pid")]
    pub machine: Vec<String>,
    /// Do not record instruction fetches
    #[arg(long)]
    pub no_fetches: bool,
    #[command(flatten)]
    pub intervals: IntervalArgs,
    /// Samples per second of CPU time
    #[arg(long, default_value_t = 1000, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub hz: u32,
    /// Install what is missing without asking
    #[arg(long, short)]
    pub yes: bool,
    /// Record a running process until it exits or you press Ctrl-C: samples, or intervals where they are asked for
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pub pid: Option<u32>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, value_name = "CMD", required_unless_present = "pid")]
    pub command: Vec<OsString>,
}
