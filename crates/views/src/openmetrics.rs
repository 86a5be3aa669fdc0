//! What a baker of other processes does, in the OpenMetrics text format, for Prometheus and its kin.

use std::sync::atomic::AtomicU64;

use lookaside_report::text::clean;
use lookaside_runtime::bake::{ProcessReport, Ranking};
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

/// Which process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    pid: u32,
    comm: String,
}

type Gauges = Family<Labels, Gauge<i64>>;
type CounterFamily = Family<Labels, Counter>;
type Seconds = Family<Labels, Counter<f64, AtomicU64>>;

/// All processes that are baked now, and by what they were chosen of the whole system, if they were; a counter of one
/// begins anew when it is baked anew.
pub fn render(report: &[ProcessReport], ranking: Option<&Ranking>) -> String {
    let (small, mappings, rounds, touches, failed) = (
        Gauges::default(),
        Gauges::default(),
        CounterFamily::default(),
        CounterFamily::default(),
        CounterFamily::default(),
    );
    let (busy, cpu) = (Seconds::default(), Seconds::default());
    let processes = Gauge::<i64>::default();
    for baked in report.iter().filter(|baked| baked.running && !baked.let_go && baked.refused.is_none()) {
        let labels = Labels { pid: baked.pid, comm: clean(&baked.comm) };
        let stats = &baked.stats;
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        processes.inc();
        small.get_or_create(&labels).set(signed(baked.small_bytes));
        mappings.get_or_create(&labels).set(signed(baked.mappings as u64));
        rounds.get_or_create(&labels).inc_by(stats.rounds);
        touches.get_or_create(&labels).inc_by(stats.touches);
        failed.get_or_create(&labels).inc_by(stats.failed_calls);
        busy.get_or_create(&labels).inc_by(stats.busy_nanos as f64 / 1e9);
        cpu.get_or_create(&labels).inc_by(stats.cpu_nanos as f64 / 1e9);
    }
    let mut registry = Registry::with_prefix("lookaside_bake");
    registry.register("processes", "Processes that are baked", processes);
    registry.register_with_unit("small_pages", "Memory in small pages that is baked", Unit::Bytes, small);
    registry.register("mappings", "Mappings that are baked", mappings);
    registry.register("rounds", "Rounds through all of a process's mappings", rounds);
    registry.register("touches", "Page-table entries read", touches);
    registry.register("failed_calls", "Kernel calls that failed", failed);
    registry.register_with_unit("busy", "Time spent reading entries", Unit::Seconds, busy);
    registry.register_with_unit("helper_cpu", "CPU time of the helper", Unit::Seconds, cpu);
    if let Some(ranking) = ranking {
        let labels =
            [("by", Some(&ranking.by)), ("event", ranking.event.as_ref()), ("no_pmu", ranking.no_pmu.as_ref())];
        let labels = labels.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?.clone())));
        registry.register("ranking", "By what processes are chosen", Info::new(labels.collect::<Vec<_>>()));
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

#[cfg(test)]
mod tests {
    use lookaside_runtime::bake::BakeStats;

    use super::*;

    #[test]
    fn processes_are_told_apart_and_odd_names_are_escaped() {
        let stats = BakeStats { rounds: 7, touches: 70, busy_nanos: 1_500_000_000, ..BakeStats::default() };
        let baked = |pid, comm: &str| ProcessReport {
            pid,
            comm: comm.into(),
            running: true,
            let_go: false,
            mappings: 2,
            small_bytes: 4096,
            stats,
            refused: None,
            within: None,
            rank: None,
        };
        let gone = ProcessReport { running: false, ..baked(3, "gone") };
        let ranking = Ranking { by: "table-bytes".into(), event: None, no_pmu: Some("no PMU here".into()) };
        let text = render(&[baked(1, "a \"b\"\\\n\u{1b}[1m"), baked(2, "c"), gone], Some(&ranking));
        assert!(!render(&[baked(2, "c")], None).contains("ranking"));
        let has = |line: &str| assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
        has("lookaside_bake_processes 2");
        has("lookaside_bake_rounds_total{pid=\"1\",comm=\"a \\\"b\\\"\\\\\u{fffd}\u{fffd}[1m\"} 7");
        has("lookaside_bake_small_pages_bytes{pid=\"2\",comm=\"c\"} 4096");
        has("lookaside_bake_busy_seconds_total{pid=\"2\",comm=\"c\"} 1.5");
        has("lookaside_bake_ranking_info{by=\"table-bytes\",no_pmu=\"no PMU here\"} 1");
        assert!(text.ends_with("# EOF\n") && !text.contains("gone"), "{text}");
    }
}
