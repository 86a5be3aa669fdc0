//! A timed run of a workload.

use lookaside_report::num::{bytes, counted, grouped, rate, seconds, short};
use lookaside_report::Document;
use lookaside_runtime::bake::{BakeStats, HelperStatus};
use lookaside_workloads::Pages;
use serde::Serialize;

use super::{document, WorkloadParameter};

/// A timed run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WorkloadOutcome {
    /// The workload's name.
    pub workload: &'static str,
    /// Bytes of its arrays, as asked for.
    pub asked_bytes: u64,
    /// Seed of its input.
    pub seed: u64,
    /// How often its main task was done.
    pub rounds: u64,
    /// Pages asked of the system.
    pub pages: Pages,
    /// Bytes in huge pages; `null`: the system does not say.
    pub huge_bytes: Option<u64>,
    /// Its arrays.
    pub regions: Vec<WorkloadRegion>,
    /// How large the parts of its input are.
    pub parameters: Vec<WorkloadParameter>,
    /// Seconds that building the input took.
    pub build_seconds: f64,
    /// CPU on which the main task ran.
    pub cpu: u32,
    /// Seconds of the main task alone.
    pub seconds: f64,
    /// What an operation is.
    pub operation: &'static str,
    /// Operations done.
    pub operations: u64,
    /// Nanoseconds of the main task an operation.
    pub ns_per_operation: f64,
    /// Of the results, hexadecimal; of what is done so far.
    pub checksum: String,
    /// `false`: a signal ended it before its time.
    pub complete: bool,
    /// What the baker did meanwhile; `null` without one.
    pub bake: Option<WorkloadBake>,
}

/// An array of the workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WorkloadRegion {
    /// Its name.
    pub name: &'static str,
    /// Bytes.
    pub bytes: u64,
    /// Its page tables were kept warm.
    pub baked: bool,
}

/// What the baker did meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct WorkloadBake {
    /// Its settings, as on the command line.
    pub settings: String,
    /// What it did.
    pub stats: BakeStats,
    /// How it baked at the end of the main task.
    pub within: HelperStatus,
}

/// What the main task took, on what memory, and what the baker did.
pub fn view(outcome: &WorkloadOutcome) -> Document {
    let mut document = document(outcome.workload, &outcome.parameters);
    if !outcome.complete {
        document.cut_short("interrupted");
    }
    document.answer(format!(
        "The main task took {} on CPU {}: {} in {}, {:.2} ns each (an operation: {})",
        seconds(outcome.seconds),
        outcome.cpu,
        counted(outcome.operations as usize, "operation"),
        counted(outcome.rounds as usize, "round"),
        outcome.ns_per_operation,
        outcome.operation
    ));
    document.fact("memory", memory(outcome));
    document.fact("input", format!("built in {}, seed {}", seconds(outcome.build_seconds), outcome.seed));
    document.fact("checksum", outcome.checksum.clone());
    match &outcome.bake {
        None => document.fact("baked", "no"),
        Some(bake) => baked(outcome, bake, &mut document),
    }
    document
}

fn memory(outcome: &WorkloadOutcome) -> String {
    let regions: Vec<String> = outcome.regions.iter().map(|r| format!("{} {}", r.name, bytes(r.bytes))).collect();
    let pages = match (outcome.pages, outcome.huge_bytes) {
        (Pages::Base, _) => "base pages".to_string(),
        (Pages::Thp, _) => "huge pages".to_string(),
        (Pages::AsIs, Some(huge)) => format!("pages as given, {} of huge ones", bytes(huge)),
        (Pages::AsIs, None) => "pages as given".to_string(),
    };
    format!("{} ({pages})", regions.join(", "))
}

fn baked(outcome: &WorkloadOutcome, bake: &WorkloadBake, document: &mut Document) {
    let WorkloadBake { settings, stats, within } = bake;
    let names: Vec<&str> = outcome.regions.iter().filter(|r| r.baked).map(|r| r.name).collect();
    let cpu = match stats.cpu {
        -1 => "any CPU".to_string(),
        cpu => format!("CPU {cpu}"),
    };
    let each = match stats.touches {
        0 => String::new(),
        touches => format!(" of {} ns", rate(stats.busy_nanos as f64 / touches as f64)),
    };
    let words = format!(
        "{} by {settings} on {cpu}: {}, {} touches{each}, {:.0} % of a CPU",
        names.join(", "),
        counted(stats.rounds as usize, "round"),
        short(stats.touches as f64),
        stats.cpu_nanos as f64 / stats.elapsed_nanos.max(1) as f64 * 100.0
    );
    document.fact("baked", words);
    if settings.starts_with("auto") {
        document.fact("auto", judged(within));
    }
    if stats.failed_calls > 0 {
        let why = std::io::Error::from_raw_os_error(stats.last_errno);
        document.fact("failed kernel calls", format!("{}, the last: {why}", grouped(stats.failed_calls)));
    }
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
    format!("by {}, at the end {}, pausing {pause} µs between rounds; {sensed}", within.backend, within.state)
}
