//! Reads, streams and page faults in nanoseconds.

use lookaside_probe::ProbeReport;
use lookaside_report::{Fact, Table};

use super::words::{fact, said};
use crate::machine::timing;

/// The figures.
pub(super) fn tables(report: &ProbeReport) -> Vec<Table> {
    let costs = report.timing.iter().filter_map(|found| found.costs.value());
    costs.flat_map(timing::tables).collect()
}

/// Where the stream was, and what is not there.
pub(super) fn facts(report: &ProbeReport) -> Vec<Fact> {
    let Some(found) = &report.timing else { return Vec::new() };
    let mut facts = Vec::new();
    if found.costs.value().is_none() {
        facts.push(fact("reads, page faults", said(&found.costs, |_| String::new())));
    }
    facts.extend(
        found.stream_cpu.map(|cpu| fact("a stream", format!("CPU {cpu} reads memory sequentially meanwhile").into())),
    );
    facts.extend(found.absent.iter().map(|absent| fact(absent.what.clone(), format!("none: {}", absent.why).into())));
    facts
}
