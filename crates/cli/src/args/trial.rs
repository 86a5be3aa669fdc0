//! The arguments of `trial` and `undo`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use lookaside_cli::output::OutputArgs;
use lookaside_runtime::trial::Statistic;

use super::hugepages::ByArg;

#[derive(Args)]
#[command(group(ArgGroup::new("whom").required(true).args(["pid", "comm", "cgroup", "command"])))]
pub struct TrialArgs {
    /// Process ID (repeatable)
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// All processes with this name (repeatable)
    #[arg(long, value_name = "NAME")]
    pub comm: Vec<String>,
    /// All processes of this control group and its descendants (repeatable): its folder, or its path below
    /// /sys/fs/cgroup
    #[arg(long, value_name = "GROUP")]
    pub cgroup: Vec<PathBuf>,
    #[command(flatten)]
    pub options: TrialOptions,
    #[command(flatten)]
    pub output: OutputArgs,
    /// A program to start, and to try it on
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// How a trial is made.
#[derive(Args)]
pub struct TrialOptions {
    /// What to try
    #[arg(long, value_enum, default_value_t = WhatArg::Hugepages)]
    pub what: WhatArg,
    /// Number of huge pages of 2 MiB at most
    #[arg(long, value_name = "K", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub budget: u32,
    /// Try the windows of this plan (written by `hugepages plan`) in place of those that are hottest now
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// How to find hot memory [default: sample, or referenced if sampling is not permitted]
    #[arg(long, value_enum)]
    pub by: Option<ByArg>,
    /// How to bake, with the backends scan or module
    #[arg(long, value_name = "SETTINGS", default_value = "scan,share=0.5")]
    pub settings: String,
    /// What to judge by: auto; cpu (CPU time a second, for a steady load), cpu-per-write, call:FUNCTION (CPU time a
    /// call), passes (of a place in the code that is looked for), samples, instructions (needs a PMU); log:FILE (numbers
    /// in lines added to it), or a shell command that prints numbers
    #[arg(long, value_name = "METRIC", default_value = "auto")]
    pub metric: String,
    /// Which number of a line counts, as a regular expression: its first group or whole match [default: the first
    /// number]
    #[arg(long, value_name = "REGEX")]
    pub number: Option<String>,
    /// What of a phase's numbers counts
    #[arg(long, value_enum, default_value_t = StatisticArg::Mean)]
    pub statistic: StatisticArg,
    /// More is better
    #[arg(long)]
    pub more_is_better: bool,
    /// Longest duration, as 90s, 10m or 1h
    #[arg(long = "for", value_name = "TIME", default_value = "10m", value_parser = time)]
    pub time: Duration,
    /// Length of a phase
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    pub phase: Duration,
    /// Beginning of a phase that does not count
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = time)]
    pub settle: Duration,
    /// How long to observe the processes before choosing
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    pub look: Duration,
    /// End when the effect is known to this many percent to either side
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percent)]
    pub precision: f64,
    /// End, and take back, when a call took longer: page faults of the program may wait for one
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = time)]
    pub max_stall: Duration,
    /// MiB that huge pages may add to the memory in use
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    pub memory: u64,
    /// Take it back also if it helps
    #[arg(long)]
    pub measure_only: bool,
    /// Seed for the order of the phases
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WhatArg {
    /// Huge pages for the memory that the processes are seen waiting for
    Hugepages,
    /// Page tables kept in the CPU caches
    Bake,
    /// One after the other
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StatisticArg {
    Mean,
    P50,
    P99,
    /// The 99.9th percentile
    P999,
}

impl From<StatisticArg> for Statistic {
    fn from(arg: StatisticArg) -> Self {
        match arg {
            StatisticArg::Mean => Self::Mean,
            StatisticArg::P50 => Self::P50,
            StatisticArg::P99 => Self::P99,
            StatisticArg::P999 => Self::P999,
        }
    }
}

#[derive(Args)]
pub struct UndoArgs {
    /// Take back what this trial kept [default: what killed trials left over]
    #[arg(value_name = "N", conflicts_with = "list")]
    pub number: Option<u64>,
    /// List all trials; change nothing
    #[arg(long)]
    pub list: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A time with its unit, not 0.
pub fn time(text: &str) -> Result<Duration, String> {
    /// The longest.
    const MOST: Duration = Duration::from_secs(365 * 86400);
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    match !time.is_zero() && time <= MOST {
        true => Ok(time),
        false => Err("want more than 0, and at most a year".into()),
    }
}

/// A part of a hundred.
pub fn percent(text: &str) -> Result<f64, String> {
    let percent: Option<f64> = text.parse().ok();
    percent.filter(|percent| (0.01..=100.0).contains(percent)).ok_or_else(|| "want a number from 0.01 to 100".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_an_end() {
        let of = |text| time(text).map(|time| time.as_secs_f64());
        assert_eq!([of("250ms"), of("10m"), of("1h")], [Ok(0.25), Ok(600.0), Ok(3600.0)]);
        for bad in ["", "5", "s", "-1s", "0s", "2years"] {
            assert!(time(bad).is_err(), "{bad}");
        }
        assert_eq!(percent("0.5"), Ok(0.5));
        assert!(["0", "nan", "101", "x", ""].map(percent).iter().all(Result::is_err));
    }
}
