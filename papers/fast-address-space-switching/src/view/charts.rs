//! Charts of a switch over the size of rings.

use lookaside_report::chart::{Axis, Lines, Point as Dot, Scale, Series};
use lookaside_report::{num, Chart};

use super::words::{has_keys, pages, who};
use crate::metal::{Benchmark, Frames, PageKind, Ring, RingPoint, SwitchReport, Who};

/// A chart for each size and kind of pages: a switch over participants, a line for each kind of these.
pub(super) fn lat_ctx(report: &SwitchReport) -> Vec<Chart> {
    let participants = distinct(report, Benchmark::LatCtx, |ring| ring.participants);
    let mut charts = Vec::new();
    for kind in [PageKind::Base, PageKind::Huge] {
        for size in distinct(report, Benchmark::LatCtx, |ring| ring.size) {
            let line = |of: Who| {
                let dot = |&participants: &usize| {
                    let ring =
                        Ring { benchmark: Benchmark::LatCtx, frames: Frames::Private, pages: kind, participants, size };
                    switch(report, of, ring, participants as u64)
                };
                Series::new(who(of), participants.iter().map(dot).collect())
            };
            let title = format!("{} KiB each, {} pages", num::grouped(size), pages(kind));
            let all = [Who::Threads, Who::Processes, Who::Compartments];
            let took_part = all.into_iter().filter(|who| *who != Who::Compartments || has_keys(report));
            charts.push(chart(title, "participants", took_part.map(line).collect()));
        }
    }
    charts
}

/// A chart for each number of participants and kind of pages: a switch over the pages that each reads, of their own and
/// in common.
pub(super) fn extreme(report: &SwitchReport) -> Vec<Chart> {
    let sizes = distinct(report, Benchmark::Extreme, |ring| ring.size);
    let mut kinds = vec![
        (Who::Threads, Frames::Private, "threads, own memory"),
        (Who::Processes, Frames::Private, "processes, own memory"),
        (Who::Threads, Frames::Shared, "threads, the same memory"),
        (Who::Processes, Frames::Shared, "processes, the same memory"),
    ];
    // Of five lines at most; those of own memory stand in the table.
    if has_keys(report) {
        kinds.push((Who::Compartments, Frames::Shared, "compartments, the same memory"));
    }
    let mut charts = Vec::new();
    for kind in [PageKind::Base, PageKind::Huge] {
        for participants in distinct(report, Benchmark::Extreme, |ring| ring.participants) {
            let line = |&(of, frames, name): &(Who, Frames, &str)| {
                let dot = |&size: &u64| {
                    let ring = Ring { benchmark: Benchmark::Extreme, frames, pages: kind, participants, size };
                    switch(report, of, ring, size)
                };
                Series::new(name, sizes.iter().map(dot).collect())
            };
            let title = format!("{participants} participants, {} pages", pages(kind));
            charts.push(chart(title, "pages of 4 KiB", kinds.iter().map(line).collect()));
        }
    }
    charts
}

fn chart(title: String, x: &str, series: Vec<Series>) -> Chart {
    let lines = Lines::new(Axis::new(x, Scale::Even), Axis::new("ns a switch", Scale::Auto));
    Chart::lines(title, Lines { series, ..lines })
}

/// Different values of a benchmark's rings, in order.
fn distinct<T: Ord>(report: &SwitchReport, benchmark: Benchmark, of: impl Fn(&Ring) -> T) -> Vec<T> {
    let rings = report.points.iter().map(|point| &point.ring).filter(|ring| ring.benchmark == benchmark);
    let mut all: Vec<T> = rings.map(of).collect();
    all.sort();
    all.dedup();
    all
}

/// A switch in a ring, at this place; no number where the ring does not tell it.
fn switch(report: &SwitchReport, who: Who, ring: Ring, x: u64) -> Dot {
    let is_it = |point: &&RingPoint| point.who == who && point.ring == ring;
    match report.points.iter().filter(|point| point.is_told()).find(is_it).map(|point| point.switch_ns) {
        Some(ns) => Dot::new(x as f64, ns.value).between(ns.low, ns.high),
        None => Dot::new(x as f64, f64::NAN),
    }
}
