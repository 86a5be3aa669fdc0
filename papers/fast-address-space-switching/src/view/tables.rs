//! Tables of the rings: short ones for a terminal, complete ones for the page.

use lookaside_report::{num, Cell, Column, Paint, Table};
use lookaside_stats::Figure;

use super::words::{benchmark, has_keys, interval, memory, ns, pages, unit, who};
use crate::metal::{Benchmark, Contrast, Frames, Ring, RingPoint, SwitchReport, Who};

/// Processes beside threads, a row a ring.
pub(super) fn lat_ctx(report: &SwitchReport) -> Table {
    let columns = [
        Column::right("participants"),
        Column::right("KiB"),
        Column::left("pages"),
        Column::right("alone, a turn").optional(2),
        Column::right("threads"),
        Column::right("processes"),
        Column::right("over threads"),
        Column::right("95 % interval"),
        Column::right("÷ threads").optional(1),
    ];
    let mut table = Table::new(columns.into_iter().chain(has_keys(report).then(|| Column::right("keys"))));
    for contrast in report.contrasts.iter().filter(|contrast| contrast.ring.benchmark == Benchmark::LatCtx) {
        let of = |who: Who| report.point(contrast, who);
        let (Some(threads), Some(processes)) = (of(Who::Threads), of(Who::Processes)) else { continue };
        table.row([
            Cell::count(contrast.ring.participants as u64),
            Cell::count(contrast.ring.size),
            pages(contrast.ring.pages).into(),
            nanoseconds(processes.alone_ns.value),
            told(threads),
            told(processes),
            marked(&contrast.over_threads_ns, contrast.significant),
            interval(&contrast.over_threads_ns).into(),
            Cell::optional(contrast.ratio, |ratio| Cell::number(ratio.value, format!("{:.2}", ratio.value))),
            switch(report, contrast, Who::Compartments),
        ]);
    }
    table
}

/// Own and same memory beside each other, a row a ring.
pub(super) fn extreme(report: &SwitchReport) -> Table {
    let columns = [
        Column::right("ring"),
        Column::right("visits"),
        Column::left("pages"),
        Column::right("T own"),
        Column::right("P own"),
        Column::right("P over T").optional(1),
        Column::right("T same"),
        Column::right("P same"),
        Column::right("P over T"),
        Column::right("of pages"),
        Column::right("95 % interval"),
    ];
    let keys = ["K own", "K same"].into_iter().filter(|_| has_keys(report)).map(Column::right);
    let mut table = Table::new(columns.into_iter().chain(keys));
    for same in report.contrasts.iter().filter(|contrast| contrast.ring.frames == Frames::Shared) {
        let own = Ring { frames: Frames::Private, ..same.ring };
        let Some(own) = report.contrasts.iter().find(|other| other.ring == own) else { continue };
        let of_pages = same.of_pages_ns.as_ref();
        table.row([
            Cell::count(same.ring.participants as u64),
            Cell::count(same.ring.size),
            pages(same.ring.pages).into(),
            switch(report, own, Who::Threads),
            switch(report, own, Who::Processes),
            marked(&own.over_threads_ns, own.significant),
            switch(report, same, Who::Threads),
            switch(report, same, Who::Processes),
            marked(&same.over_threads_ns, same.significant),
            of_pages.map_or(Cell::default(), |figure| marked(figure, same.of_pages_significant)),
            of_pages.map_or(Cell::default(), |figure| interval(figure).into()),
            switch(report, own, Who::Compartments),
            switch(report, same, Who::Compartments),
        ]);
    }
    table
}

/// What a switch of processes takes over one of threads, of all rings.
pub(super) fn contrasts(report: &SwitchReport) -> Table {
    let mut table = Table::new([
        Column::left("benchmark"),
        Column::right("participants"),
        Column::right("each reads"),
        Column::left("memory"),
        Column::left("pages"),
        Column::right("over threads"),
        Column::left("95 % interval"),
        Column::left("significant"),
        Column::right("processes ÷ threads"),
        Column::right("less that with the fewest pages"),
        Column::left("95 % interval"),
        Column::left("significant"),
    ])
    .caption("What a switch of processes takes over one of threads in the same ring, in nanoseconds");
    for contrast in &report.contrasts {
        let of_pages = contrast.of_pages_ns.as_ref();
        let [benchmark, participants, size, memory, pages] = ring(&contrast.ring);
        table.row([
            benchmark,
            participants,
            size,
            memory,
            pages,
            marked(&contrast.over_threads_ns, contrast.significant),
            interval(&contrast.over_threads_ns).into(),
            yes(contrast.significant),
            Cell::optional(contrast.ratio, |ratio| Cell::number(ratio.value, format!("{:.3}", ratio.value))),
            Cell::optional(of_pages, |figure| marked(figure, contrast.of_pages_significant)),
            Cell::optional(of_pages, |figure| interval(figure).into()),
            of_pages.map_or(Cell::default(), |_| yes(contrast.of_pages_significant)),
        ]);
    }
    table
}

/// All figures of all rings.
pub(super) fn points(report: &SwitchReport) -> Table {
    let mut table = Table::new([
        Column::left("benchmark"),
        Column::left("participants are"),
        Column::right("participants"),
        Column::right("each reads"),
        Column::left("memory"),
        Column::left("pages"),
        Column::right("a turn"),
        Column::right("a turn alone"),
        Column::right("a switch"),
        Column::left("95 % interval"),
        Column::right("extra switches per 1,000 turns"),
        Column::right("in the worst round"),
        Column::right("involuntary per 1,000 turns"),
        Column::right("keys taken per 1,000 turns"),
        Column::right("calls of pkey_mprotect per 1,000 turns"),
    ])
    .caption("Every ring, in nanoseconds");
    for point in &report.points {
        let [benchmark, participants, size, memory, pages] = ring(&point.ring);
        table.row([
            benchmark,
            who(point.who).into(),
            participants,
            size,
            memory,
            pages,
            nanoseconds(point.step_ns.value),
            nanoseconds(point.alone_ns.value),
            told(point),
            interval(&point.switch_ns).into(),
            Cell::rate(point.extra_switches_per_kilo_step),
            Cell::rate(point.most_extra_switches_per_kilo_step),
            Cell::rate(point.involuntary_per_kilo_step),
            Cell::optional(point.keys, |keys| Cell::rate(keys.recycled_per_kilo_step)),
            Cell::optional(point.keys, |keys| Cell::rate(keys.protect_calls_per_kilo_step)),
        ]);
    }
    table
}

/// Benchmark, participants, what each reads, memory, pages.
fn ring(ring: &Ring) -> [Cell; 5] {
    [
        benchmark(ring.benchmark).into(),
        Cell::count(ring.participants as u64),
        Cell::number(ring.size as f64, format!("{} {}", num::grouped(ring.size), unit(ring.benchmark))),
        memory(ring.frames).into(),
        pages(ring.pages).into(),
    ]
}

/// A switch in that ring.
fn switch(report: &SwitchReport, like: &Contrast, who: Who) -> Cell {
    Cell::optional(report.point(like, who), told)
}

/// What a switch takes, where the rounds tell.
fn told(point: &RingPoint) -> Cell {
    match point.is_told() {
        true => nanoseconds(point.switch_ns.value),
        false => "can't tell".into(),
    }
}

fn nanoseconds(x: f64) -> Cell {
    Cell::number(x, ns(x))
}

/// A figure whose sign matters: what costs is marked.
fn marked(figure: &Figure, significant: bool) -> Cell {
    let paint = match (significant, figure.value > 0.0) {
        (false, _) => Paint::Plain,
        (true, true) => Paint::Bad,
        (true, false) => Paint::Good,
    };
    nanoseconds(figure.value).paint(paint)
}

fn yes(is: bool) -> Cell {
    if is { "yes" } else { "no" }.into()
}
