//! A snapshot of `top` in the OpenMetrics text format, for Prometheus and its kin.

use std::sync::atomic::AtomicU64;

use lookaside_report::text::clean;
use lookaside_techniques::translation_share::TranslationShare;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::top::{SmallBytes, TopProcesses};

/// Which process or group: names and values.
type MetricLabels = Vec<(&'static str, String)>;
type Bytes = Family<MetricLabels, Gauge<i64>>;
type Numbers = Family<MetricLabels, Gauge<f64, AtomicU64>>;

/// What is told alike of processes and of groups.
#[derive(Default)]
struct Metrics {
    cpus: Numbers,
    share: Numbers,
    low: Numbers,
    high: Numbers,
    samples: Bytes,
    resident: Bytes,
    huge: Bytes,
    tables: Bytes,
    small: Bytes,
}

impl Metrics {
    fn set(
        &self,
        labels: &MetricLabels,
        (cpus, [resident, huge, tables]): (f64, [u64; 3]),
        translation: Option<&TranslationShare>,
        small: &[SmallBytes],
    ) {
        self.cpus.get_or_create(labels).set(cpus);
        self.resident.get_or_create(labels).set(signed(resident));
        self.huge.get_or_create(labels).set(signed(huge));
        self.tables.get_or_create(labels).set(signed(tables));
        if let Some(translation) = translation {
            self.share.get_or_create(labels).set(translation.share);
            self.low.get_or_create(labels).set(translation.low);
            self.high.get_or_create(labels).set(translation.high);
            self.samples.get_or_create(labels).set(signed(translation.samples));
        }
        for one in small {
            let labels = [labels.as_slice(), &[("reason", one.reason.name().into())]].concat();
            self.small.get_or_create(&labels).set(signed(one.bytes));
        }
    }

    fn register(self, of: &str, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix(of);
        registry.register("cpus", "CPUs used on average over the interval", self.cpus);
        let share = "Share of CPU time in address translation, estimated from clock samples";
        registry.register_with_unit("translation", share, ratio(), self.share);
        registry.register_with_unit("translation_low", "Lower end of its 95 % interval", ratio(), self.low);
        registry.register_with_unit("translation_high", "Upper end of its 95 % interval", ratio(), self.high);
        registry.register("samples", "Clock samples behind the estimate", self.samples);
        registry.register_with_unit("resident", "Memory", Unit::Bytes, self.resident);
        registry.register_with_unit("huge_pages", "Memory that huge pages map", Unit::Bytes, self.huge);
        registry.register_with_unit("page_tables", "Page tables", Unit::Bytes, self.tables);
        registry.register_with_unit("small_pages", "Memory in small pages, by why it is", Unit::Bytes, self.small);
    }
}

fn ratio() -> Unit {
    Unit::Other("ratio".into())
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// All processes of a snapshot, and all control groups if it has any.
pub fn render(all: &TopProcesses) -> String {
    let mut registry = Registry::with_prefix("lookaside");
    let (processes, groups) = (Metrics::default(), Metrics::default());
    for row in &all.processes {
        let process = &row.process;
        let labels = vec![
            ("pid", process.pid.to_string()),
            ("comm", clean(&process.comm)),
            ("control_group", clean(row.control_group.as_deref().unwrap_or_default())),
        ];
        let bytes = [process.resident_bytes, process.huge_bytes, process.table_bytes];
        processes.set(&labels, (process.cpus, bytes), row.translation.as_ref(), &row.small_pages);
    }
    processes.register("process", &mut registry);
    if !all.control_groups.is_empty() {
        for group in &all.control_groups {
            let labels = vec![("control_group", clean(&group.control_group))];
            let bytes = [group.resident_bytes, group.huge_bytes, group.table_bytes];
            groups.set(&labels, (group.cpus, bytes), group.translation.as_ref(), &group.small_pages);
        }
        groups.register("control_group", &mut registry);
    }
    if let Some(machine) = &all.machine {
        let labels = vec![("description".to_string(), clean(machine))];
        registry.register("machine", "What shares of translation are estimated with", Info::new(labels));
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lookaside_runtime::bake::Surveyed;
    use lookaside_runtime::hugepages::SmallReason;

    use super::*;
    use crate::top::{control_groups, TopRow};

    const DASHBOARD: &str = include_str!("../../../packaging/grafana/lookaside.json");

    fn snapshot() -> TopProcesses {
        let process = Surveyed {
            pid: 7,
            comm: "a \"b\"\\\n\u{1b}[1m".into(),
            cpus: 0.5,
            resident_bytes: 1 << 20,
            huge_bytes: 0,
            table_bytes: 8192,
            helpers: Vec::new(),
            started_ticks: 0,
        };
        let translation = TranslationShare {
            share: 0.25,
            low: 0.125,
            high: 0.5,
            samples: 800,
            resolved: 700,
            jumping_share: 0.9,
            pages: 1000,
            translation_share_of_jump: 0.3,
        };
        let row = TopRow {
            process,
            control_group: Some("/x\"y".into()),
            translation: Some(translation),
            small_pages: vec![SmallBytes { reason: SmallReason::NotAsked, bytes: 4096 }],
            baked: None,
        };
        let control_groups = control_groups(std::slice::from_ref(&row));
        TopProcesses { processes: vec![row], control_groups, machine: Some("this: measured".into()), notes: Vec::new() }
    }

    #[test]
    fn processes_and_groups_are_told_apart_and_odd_names_are_escaped() {
        let text = render(&snapshot());
        let has = |line: &str| assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
        let labels = "pid=\"7\",comm=\"a \\\"b\\\"\\\\\u{fffd}\u{fffd}[1m\",control_group=\"/x\\\"y\"";
        has(&format!("lookaside_process_translation_ratio{{{labels}}} 0.25"));
        has(&format!("lookaside_process_translation_low_ratio{{{labels}}} 0.125"));
        has(&format!("lookaside_process_small_pages_bytes{{{labels},reason=\"not-asked\"}} 4096"));
        has(&format!("lookaside_process_resident_bytes{{{labels}}} 1048576"));
        has("lookaside_control_group_translation_high_ratio{control_group=\"/x\\\"y\"} 0.5");
        has("lookaside_machine_info{description=\"this: measured\"} 1");
        assert!(text.ends_with("# EOF\n"), "{text}");
        let none = TopProcesses { processes: Vec::new(), control_groups: Vec::new(), machine: None, notes: Vec::new() };
        assert!(!render(&none).contains("control_group"));
    }

    /// All that a query of the dashboard names as a metric is one, here or of `bake`.
    #[test]
    fn the_dashboard_asks_for_metrics_that_there_are() {
        let stats = lookaside_runtime::bake::BakeStats { rounds: 1, ..Default::default() };
        let baked = lookaside_runtime::bake::ProcessReport {
            pid: 1,
            comm: "db".into(),
            running: true,
            let_go: false,
            mappings: 1,
            small_bytes: 1,
            stats,
            refused: None,
            within: None,
            rank: None,
        };
        let all = render(&snapshot()) + &crate::openmetrics::render(&[baked], None);
        let metrics: BTreeSet<&str> = all
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split(['{', ' ']).next())
            .collect();
        let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).expect("JSON");
        let panels = dashboard["panels"].as_array().expect("panels");
        let queries = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
        let queries: Vec<&str> = queries.map(|target| target["expr"].as_str().expect("a query")).collect();
        assert!(queries.len() >= 6, "{queries:?}");
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        for query in queries {
            let names: Vec<&str> =
                query.split(|c| !is_of_name(c)).filter(|word| word.starts_with("lookaside_")).collect();
            assert!(!names.is_empty(), "{query}");
            for name in names {
                assert!(metrics.contains(name), "{query}: there is no {name} among {metrics:?}");
            }
        }
    }
}
