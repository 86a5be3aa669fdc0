//! Words and numbers of the report.

use lookaside_report::num;
use lookaside_stats::Figure;

use crate::metal::{Benchmark, Frames, PageKind, SwitchReport, Who};

pub(super) fn who(who: Who) -> &'static str {
    match who {
        Who::Threads => "threads",
        Who::Processes => "processes",
        Who::Compartments => "compartments",
    }
}

pub(super) fn benchmark(benchmark: Benchmark) -> &'static str {
    match benchmark {
        Benchmark::LatCtx => "lat_ctx",
        Benchmark::Extreme => "extreme",
    }
}

/// What a ring's size counts.
pub(super) fn unit(benchmark: Benchmark) -> &'static str {
    match benchmark {
        Benchmark::LatCtx => "KiB",
        Benchmark::Extreme => "pages",
    }
}

/// Whose the memory is.
pub(super) fn memory(frames: Frames) -> &'static str {
    match frames {
        Frames::Private => "own",
        Frames::Shared => "the same",
    }
}

pub(super) fn pages(pages: PageKind) -> &'static str {
    match pages {
        PageKind::Base => "base",
        PageKind::Huge => "huge",
    }
}

pub(super) fn rings(count: usize) -> String {
    format!("{count} ring{}", if count == 1 { "" } else { "s" })
}

/// Nanoseconds, all digits.
pub(super) fn ns(x: f64) -> String {
    let digits = num::grouped(x.abs().round() as u64);
    match x < 0.0 && digits != "0" {
        true => format!("-{digits}"),
        false => digits,
    }
}

/// Both ends of an interval, in nanoseconds.
pub(super) fn interval(figure: &Figure) -> String {
    format!("{} – {}", ns(figure.low), ns(figure.high))
}

/// Compartments took part.
pub(super) fn has_keys(report: &SwitchReport) -> bool {
    report.points.iter().any(|point| point.who == Who::Compartments)
}
