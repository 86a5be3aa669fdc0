//! The arguments of `autopilot`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::trial::{percent, time};

#[derive(Args)]
pub struct AutopilotArgs {
    /// Only processes with this name (repeatable) [default: all]
    #[arg(long, value_name = "NAME")]
    pub comm: Vec<String>,
    /// Number of huge pages of 2 MiB for each process at most
    #[arg(long, value_name = "K", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub budget: u32,
    /// MiB that all huge pages that are kept may add to the memory in use
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    pub memory: u64,
    /// Percent of one CPU that this command may use, on average
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = percent)]
    pub cpu: f64,
    /// Percent of the time that calls may take for which page faults of the programs may wait, on average
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percent)]
    pub stall: f64,
    /// End a trial, and take back, when one such call took longer
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = time)]
    pub max_stall: Duration,
    /// Longest duration of a trial
    #[arg(long = "for", value_name = "TIME", default_value = "10m", value_parser = time)]
    pub time: Duration,
    /// Length of a phase of a trial
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = time)]
    pub phase: Duration,
    /// Least CPU use, in percent of one CPU, of a process that is tried
    #[arg(long, value_name = "PERCENT", default_value = "20", value_parser = percent)]
    pub least_cpu: f64,
    /// Least MiB in small pages of a process that is tried
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    pub least_memory: u64,
    /// Least age of a process that is tried: most that are younger end before a trial would
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = time)]
    pub least_age: Duration,
    /// Try a process again after this long, where nothing was kept
    #[arg(long, value_name = "TIME", default_value = "6h", value_parser = time)]
    pub again: Duration,
    /// Write OpenMetrics to FILE after each trial (for a textfile collector)
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// Serve OpenMetrics over HTTP, for example on 127.0.0.1:9178
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Stop when nothing is left to try
    #[arg(long)]
    pub once: bool,
}
