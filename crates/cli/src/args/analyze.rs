//! The arguments of `analyze`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use lookaside_stats::LEAST_ROUNDS;

use super::intervals::IntervalArgs;
use super::model::ModelArgs;
use super::recording::{BackendArg, GranularityArg};
use lookaside_cli::output::OutputArgs;

/// What is measured, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasureArg {
    /// Runs of each way that count.
    pub rounds: u32,
    /// With different parts of the memory in huge pages too.
    pub mosaic: bool,
}

/// Rounds of mosaics: as few as can be significant.
const MOSAIC_ROUNDS: u32 = LEAST_ROUNDS as u32;

impl FromStr for MeasureArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mosaic, rounds) = match text.strip_prefix("mosaic") {
            Some("") => return Ok(Self { rounds: MOSAIC_ROUNDS, mosaic: true }),
            Some(rest) => (true, rest.strip_prefix(':')),
            None => (false, Some(text)),
        };
        let rounds = rounds.and_then(|rounds| rounds.parse().ok()).filter(|rounds| (1..=10_000).contains(rounds));
        let rounds = rounds.ok_or("give a number of rounds from 1 to 10000, mosaic, or mosaic:ROUNDS")?;
        Ok(Self { rounds, mosaic })
    }
}

#[derive(Args)]
pub struct AnalyzeArgs {
    #[command(flatten)]
    pub machine: ModelArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Put a row for every page and every instruction into the JSON
    #[arg(long, requires = "json")]
    pub full: bool,
    /// Rows in each table [default: as many as fit on one screen]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// How to record [default: the best one installed]
    #[arg(long, value_enum)]
    pub backend: Option<BackendArg>,
    /// Require an exact recording: fail instead of falling back to sampling
    #[arg(long, conflicts_with = "backend")]
    pub exact: bool,
    /// What an exact recording may leave out
    #[arg(long, value_enum, default_value = "page")]
    pub granularity: GranularityArg,
    #[command(flatten)]
    pub intervals: IntervalArgs,
    /// Samples per second of CPU time
    #[arg(long, default_value_t = 1000, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub hz: u32,
    /// Don't run the program a second time, by itself: for one that must not run twice. The answer then has no seconds
    #[arg(long, alias = "no-native", conflicts_with = "measure")]
    pub once: bool,
    /// Also show what only other hardware could do: a larger TLB, locked entries, walks that always hit the last cache
    #[arg(long)]
    pub what_if: bool,
    /// Model what would help over the whole run; a long one is otherwise looked at in windows, each row with its interval
    #[arg(long)]
    pub exact_what_ifs: bool,
    /// Also run the program natively with and without huge pages, and show the measured gain beside the predicted one;
    /// ROUNDS runs of each after one warm-up [default with no value: 10]. mosaic also runs it with different parts of
    /// its memory in huge pages, and says how many windows of 2 MiB gain how much [default for ROUNDS: 5]
    #[arg(long, value_name = "ROUNDS|mosaic[:ROUNDS]", num_args = 0..=1, require_equals = true,
          default_missing_value = "10", conflicts_with_all = ["trace", "pid"])]
    pub measure: Option<MeasureArg>,
    /// Install what is missing without asking
    #[arg(long, short)]
    pub yes: bool,
    /// Analyze a recorded trace instead of running a program
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pid", "command", "backend"])]
    pub trace: Option<PathBuf>,
    /// Record a running process until it exits or you press Ctrl-C: samples, or intervals where they are asked for
    #[arg(long, value_name = "PID", conflicts_with_all = ["command", "exact"])]
    pub pid: Option<u32>,
    /// Sample the processes of a control group: its path as top --cgroups shows it, or its folder
    #[arg(long, value_name = "NAME", conflicts_with_all = ["command", "exact", "pid", "trace", "backend", "measure"])]
    pub cgroup: Option<PathBuf>,
    /// Stop after so many seconds (with --pid and --cgroup)
    #[arg(long, value_name = "N", conflicts_with_all = ["command", "trace", "stop"],
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: Option<u64>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, value_name = "CMD", required_unless_present_any = ["trace", "pid", "cgroup"])]
    pub command: Vec<OsString>,
}
