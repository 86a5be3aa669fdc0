//! What an autopilot did, as lines for a log and in the OpenMetrics text format.

use std::sync::atomic::AtomicU64;

use lookaside_report::text::clean;
use lookaside_runtime::bake::Surveyed;
use lookaside_runtime::trial::{AutopilotTotals, Decision, TrialReport, TrialVerdict};
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::trial;

/// A trial of a process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TrialLabels {
    pid: u32,
    comm: String,
    metric: String,
}

/// A decision in a line, with its evidence.
pub fn line(process: &Surveyed, tried: Result<&TrialReport, &str>) -> String {
    let found = match tried {
        Ok(report) => {
            let is_told = report.decision == Decision::Ended;
            let ended = report.ended.as_ref().filter(|_| !is_told).map(|why| format!(" Ended early: {why}."));
            format!("{}{}", trial::answer(report), ended.unwrap_or_default())
        }
        Err(why) => format!("not tried: {why}"),
    };
    clean(&format!("{} ({}): {found}", process.comm, process.pid)).replace('\u{a0}', " ")
}

/// The last trial of each process, and the totals.
pub fn metrics(reports: &[TrialReport], totals: &AutopilotTotals, used_cpu_seconds: f64) -> String {
    let gauges = || Family::<TrialLabels, Gauge<f64, AtomicU64>>::default();
    let (change, low, high, kept) = (gauges(), gauges(), gauges(), gauges());
    for report in reports {
        let (Some(process), Some(effect)) = (report.processes.first(), &report.effect) else { continue };
        let labels = TrialLabels { pid: process.pid, comm: clean(&process.comm), metric: clean(&report.metric) };
        change.get_or_create(&labels).set(effect.change.value);
        low.get_or_create(&labels).set(effect.change.low);
        high.get_or_create(&labels).set(effect.change.high);
        let is_kept = report.decision == Decision::Kept && report.verdict == TrialVerdict::Helps;
        kept.get_or_create(&labels).set(f64::from(u8::from(is_kept)));
    }
    let mut registry = Registry::with_prefix("lookaside_autopilot");
    registry.register("effect_ratio", "Change of the metric with huge pages, -0.05 for 5 % less", change);
    registry.register("effect_low_ratio", "Lower end of its 99 % interval", low);
    registry.register("effect_high_ratio", "Upper end of its 99 % interval", high);
    registry.register("kept", "1: the huge pages stay", kept);
    let counter = |n: u64| {
        let counter = Counter::<u64>::default();
        counter.inc_by(n);
        counter
    };
    registry.register("trials", "Trials that were made", counter(totals.trials));
    registry.register("trials_kept", "Trials whose huge pages stay", counter(totals.kept));
    registry.register("trials_taken_back", "Trials whose huge pages were taken back", counter(totals.taken_back));
    registry.register("trials_failed", "Trials that broke off or could not be made", counter(totals.failed));
    let seconds = |seconds: f64| {
        let counter = Counter::<f64, AtomicU64>::default();
        counter.inc_by(seconds);
        counter
    };
    let gauge = |value: f64| {
        let gauge = Gauge::<f64, AtomicU64>::default();
        gauge.set(value);
        gauge
    };
    registry.register_with_unit(
        "calls",
        "Time of all calls that programs may have waited for",
        Unit::Seconds,
        seconds(totals.calls_nanos as f64 / 1e9),
    );
    registry.register_with_unit("cpu", "CPU time of this command", Unit::Seconds, seconds(used_cpu_seconds));
    registry.register_with_unit(
        "longest_call",
        "The longest of these calls",
        Unit::Seconds,
        gauge(totals.longest_call_nanos as f64 / 1e9),
    );
    registry.register_with_unit(
        "kept_memory",
        "Memory that kept huge pages add",
        Unit::Bytes,
        gauge(totals.kept_bytes as f64),
    );
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = encode(&mut text, &registry);
    text
}
