//! What `workload` prints of a run.

use std::fmt::Write;

use lookaside_report::num::{bytes, grouped, rate, seconds, short};
use lookaside_runtime::bake::{HelperStatus, Stats};
use lookaside_workloads::Workload;
use serde::Serialize;

use crate::args::workload::WorkloadPagesArg;

/// A timed run.
#[derive(Serialize)]
pub struct WorkloadOutcome {
    pub workload: &'static str,
    pub asked_bytes: u64,
    pub seed: u64,
    pub rounds: u64,
    pub pages: WorkloadPagesArg,
    /// `null`: the system does not say.
    pub huge_bytes: Option<u64>,
    pub regions: Vec<WorkloadRegion>,
    pub parameters: Vec<WorkloadParameter>,
    pub build_seconds: f64,
    /// Where the main task ran.
    pub cpu: u32,
    /// Of the main task alone.
    pub seconds: f64,
    pub operation: &'static str,
    pub operations: u64,
    pub ns_per_operation: f64,
    /// Hexadecimal; of what is done so far.
    pub checksum: String,
    /// `false`: a signal ended it before its time.
    pub complete: bool,
    pub bake: Option<WorkloadBake>,
}

/// An array of the workload.
#[derive(Serialize)]
pub struct WorkloadRegion {
    pub name: &'static str,
    pub bytes: u64,
    pub baked: bool,
}

/// How large a part of its input is.
#[derive(Serialize)]
pub struct WorkloadParameter {
    pub name: &'static str,
    pub count: u64,
}

/// What the baker did meanwhile.
#[derive(Serialize)]
pub struct WorkloadBake {
    pub settings: String,
    pub stats: Stats,
    /// How it baked at the end of the main task.
    pub within: HelperStatus,
}

impl WorkloadOutcome {
    /// All of it, in lines.
    pub fn text(&self) -> String {
        let mut out = title(self.workload, &self.parameters);
        let regions = self.regions.iter().map(|r| format!("{} {}", r.name, bytes(r.bytes)));
        let pages = match self.pages {
            WorkloadPagesArg::Base => "base pages".to_string(),
            WorkloadPagesArg::Thp => "huge pages".to_string(),
            WorkloadPagesArg::AsIs => match self.huge_bytes {
                Some(huge) => format!("pages as given, {} of huge ones", bytes(huge)),
                None => "pages as given".to_string(),
            },
        };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "memory: {} ({pages})", regions.collect::<Vec<_>>().join(", "));
        let _ = writeln!(out, "built in {}, seed {}", seconds(self.build_seconds), self.seed);
        let _ = writeln!(
            out,
            "{:.3} s of main task on CPU {}: operations {} ({}), {:.2} ns each; rounds {}",
            self.seconds,
            self.cpu,
            grouped(self.operations),
            self.operation,
            self.ns_per_operation,
            self.rounds
        );
        let _ = writeln!(out, "checksum {}", self.checksum);
        match &self.bake {
            None => out.push_str("not baked\n"),
            Some(WorkloadBake { settings, stats, within }) => {
                let names: Vec<&str> = self.regions.iter().filter(|r| r.baked).map(|r| r.name).collect();
                let cpu = match stats.cpu {
                    -1 => "any CPU".to_string(),
                    cpu => format!("CPU {cpu}"),
                };
                let each = match stats.touches {
                    0 => String::new(),
                    touches => format!(" of {} ns", rate(stats.busy_nanos as f64 / touches as f64)),
                };
                let _ = writeln!(
                    out,
                    "baked {} by {settings} on {cpu}: rounds {}, touches {}{each}, {:.0} % of the time",
                    names.join(", "),
                    grouped(stats.rounds),
                    short(stats.touches as f64),
                    stats.busy_nanos as f64 / stats.elapsed_nanos.max(1) as f64 * 100.0
                );
                if settings.starts_with("auto") {
                    out += &judged(within);
                }
                if stats.failed_calls > 0 {
                    let why = std::io::Error::from_raw_os_error(stats.last_errno);
                    let _ = writeln!(out, "kernel calls that failed: {}, the last: {why}", grouped(stats.failed_calls));
                }
            }
        }
        out
    }
}

/// How large the parts of its input are.
pub fn parameters(workload: &dyn Workload) -> Vec<WorkloadParameter> {
    workload.parameters().into_iter().map(|(name, count)| WorkloadParameter { name, count }).collect()
}

/// The first line: what it is, and how large its parts are.
pub fn title(name: &str, parameters: &[WorkloadParameter]) -> String {
    let parameters = parameters.iter().map(|p| format!("{} {}", grouped(p.count), p.name.replace('_', " ")));
    format!("{name}: {}\n", parameters.collect::<Vec<_>>().join(", "))
}

/// What `auto` chose and sensed.
fn judged(within: &HelperStatus) -> String {
    let sensed = match (within.after_pause_nanos, within.right_after_nanos) {
        (Some(after), Some(right_after)) => {
            format!("a touch took {} ns after a pause, {} ns right after that", rate(after), rate(right_after))
        }
        _ => "too few rounds for a judgement".into(),
    };
    let pause = rate(within.pause_nanos as f64 / 1e3);
    format!("auto: by {}, at the end {}, pausing {pause} µs between rounds; {sensed}\n", within.backend, within.state)
}
