//! What a switch takes, for a terminal: processes beside threads in each ring, what has to be known, the verdict.

use lookaside_fast_address_space_switching::metal::{Benchmark, Contrast, Frames, KeyUse, Pages, Point, Report, Who};
use lookaside_stats::{Figure, LEAST_ROUNDS};

use lookaside_report::{num, text};
use lookaside_report::{Cell, Column, Table};
use lookaside_report::{Line, Paint, Style};

/// The report as text.
pub fn render(report: &Report, style: &Style) -> String {
    let say = |paint: Paint, words: &str| {
        let wrapped = text::wrap(&text::clean(words), style.columns());
        let lines: Vec<Line> = wrapped.into_iter().map(|part| Line::of(paint, part)).collect();
        lookaside_report::render_lines(&lines, style)
    };
    let mut out = say(Paint::Dim, &circumstances(report));
    for (about, table) in [(LAT_CTX, lat_ctx(report)), (EXTREME, extreme(report))] {
        if !table.is_empty() {
            out += "\n";
            out += &say(Paint::Plain, about);
            out += &table.render(style);
        }
    }
    out += "\n";
    for note in facts(report).iter().chain(&disturbances(report)) {
        out += &say(Paint::Plain, note);
    }
    if let Some(early) = &report.early {
        out += &say(Paint::Bad, &format!("CUT SHORT: {early}"));
    }
    for line in verdict(report) {
        out += &say(Paint::Strong, &line);
    }
    out
}

const LAT_CTX: &str = "lat_ctx: a token goes round; who has it reads its own KiB. Nanoseconds a switch: a participant's turn less the same \
                       turn of one that hands the token to itself";
const EXTREME: &str =
    "extreme: likewise, a word of each of so many pages of 4 KiB in random order, of memory of each one's own, or the same for all. T: threads, \
     P: processes, K: compartments by protection keys; of pages: P over T of the same memory, less that with the fewest pages";

/// What was measured and how, in a sentence.
pub(crate) fn circumstances(report: &Report) -> String {
    let facts = &report.facts;
    let rounds = match report.rounds == report.rounds_wanted {
        true => format!("{} rounds", report.rounds),
        false => format!("{} of {} rounds", report.rounds, report.rounds_wanted),
    };
    let guest = match facts.is_guest {
        Some(true) => ", a virtual machine",
        _ => "",
    };
    format!(
        "measured: {}, Linux {}{guest}; all participants on CPU {}; {rounds}, each in a new order with new memory, processes and threads (seed {}); {} ms each, {} in all",
        facts.processor,
        facts.kernel,
        report.cpu,
        report.seed,
        report.window_ms,
        num::seconds(report.wall_ms / 1e3),
    )
}

/// What the machine does at a switch, and what it lacks.
pub(crate) fn facts(report: &Report) -> Vec<String> {
    let facts = &report.facts;
    let spaces = match facts.pcid {
        Some(true) => "TLB entries name their address space (PCID): those of other processes outlive a switch, as long as the kernel has numbers for them (Linux: the last 6 address spaces of a CPU)",
        Some(false) => "TLB entries name no address space (no PCID): a switch of processes flushes them",
        None => "whether TLB entries name their address space is not known here",
    };
    let tables = match facts.isolates_tables {
        Some(true) => "page-table isolation is on: each system call switches page tables, too",
        Some(false) => "page-table isolation is off",
        None => "whether page tables are isolated the kernel does not say",
    };
    let keys = match &report.no_compartments {
        None => "protection keys are here: compartments of one process take part, in base pages; a switch is a leave and an enter by one thread".to_string(),
        Some(why) => format!("compartments by protection keys are left out: {why}"),
    };
    let list: Vec<String> = facts.vulnerabilities.iter().map(|(name, state)| format!("{name}: {state}")).collect();
    let mitigations = match list.is_empty() {
        true => "mitigations: the kernel names no vulnerability".to_string(),
        false => format!("mitigations: {}", list.join("; ")),
    };
    vec![format!("{spaces}; {tables}"), keys, mitigations]
}

/// What else ran, and what was not to be had.
pub(crate) fn disturbances(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    let extra = |point: &&Point| point.extra_switches_per_kilo_step;
    if let Some(worst) = report.points.iter().max_by(|a, b| extra(a).total_cmp(&extra(b))) {
        let quiet = report.points.iter().filter(|point| extra(point) < 1.0).count();
        lines.push(format!(
            "switches beside those that hand over the token: under 1 in 1,000 turns in {quiet} of {}, at most {} in 1,000 ({}); medians of the rounds",
            rings(report.points.len()),
            num::rate(extra(&worst)),
            ring_of(worst)
        ));
    }
    if let Some(stolen) = report.stolen_ms {
        lines.push(format!(
            "the host gave CPU {} to others for {} of {} (steal)",
            report.cpu,
            num::seconds(stolen / 1e3),
            num::seconds(report.wall_ms / 1e3)
        ));
    }
    match report.huge_share {
        None => lines.push(
            "no huge pages to be had (/sys/kernel/mm/transparent_hugepage/enabled): rings in them are left out".into(),
        ),
        Some(share) if share < 1.0 => {
            lines.push(format!(
                "of the memory meant for huge pages {} lay in them, in the worst round",
                num::percent(share)
            ));
        }
        Some(_) => {}
    }
    lines
}

fn ring_of(point: &Point) -> String {
    let ring = point.ring;
    let (who, unit) = (who(point.who), unit(ring.benchmark));
    format!("{} {who}, {} {unit}", ring.participants, ring.size)
}

pub(crate) fn who(who: Who) -> &'static str {
    match who {
        Who::Threads => "threads",
        Who::Processes => "processes",
        Who::Compartments => "compartments",
    }
}

pub(crate) fn unit(benchmark: Benchmark) -> &'static str {
    match benchmark {
        Benchmark::LatCtx => "KiB",
        Benchmark::Extreme => "pages",
    }
}

/// What an address space costs, and what sharing translations could save: a sentence each.
pub fn verdict(report: &Report) -> Vec<String> {
    if report.rounds == 0 {
        return vec!["Verdict: no round is complete: there is nothing to say.".into()];
    }
    let mut lines: Vec<String> =
        [of_address_spaces(report), of_keys(report), of_sharing(report, Pages::Base), of_sharing(report, Pages::Huge)]
            .into_iter()
            .flatten()
            .collect();
    if let Some(first) = lines.first_mut() {
        *first = format!("Verdict: {first}");
    }
    if (report.rounds as usize) < LEAST_ROUNDS {
        lines.push(format!("Nothing is significant with fewer than {LEAST_ROUNDS} rounds."));
    }
    lines
}

fn of_address_spaces(report: &Report) -> Option<String> {
    let of_lat_ctx = || report.contrasts.iter().filter(|contrast| contrast.ring.benchmark == Benchmark::LatCtx);
    let plain = of_lat_ctx().min_by_key(|contrast| (contrast.ring.participants, contrast.ring.size))?;
    let switch = |who: Who| report.point(plain, who).map(|point| ns(point.switch_ns.value));
    let over = |contrast: &Contrast| contrast.over_threads_ns.value;
    let least = of_lat_ctx().min_by(|a, b| over(a).total_cmp(&over(b)))?;
    let most = of_lat_ctx().max_by(|a, b| over(a).total_cmp(&over(b)))?;
    let place = |contrast: &Contrast| {
        let ring = contrast.ring;
        format!("{} participants, {} KiB, {} pages", ring.participants, ring.size, pages(ring.pages))
    };
    let (sure, all) = (of_lat_ctx().filter(|contrast| contrast.significant).count(), of_lat_ctx().count());
    Some(format!(
        "a switch of processes takes {} ns, one of threads {} ns ({} participants, {} KiB): the address space costs {} ns (95 % interval {}){}. Over all rings of lat_ctx that is from {} ns ({}) to {} ns ({}), significant in {sure} of {all}.",
        switch(Who::Processes)?,
        switch(Who::Threads)?,
        plain.ring.participants,
        plain.ring.size,
        ns(over(plain)),
        interval(&plain.over_threads_ns),
        if plain.significant { "" } else { ", not significant" },
        ns(over(least)),
        place(least),
        ns(over(most)),
        place(most),
    ))
}

/// The rings of lat_ctx that read least, with the fewest and with the most compartments.
fn of_keys(report: &Report) -> Option<String> {
    let all: Vec<(&Point, KeyUse)> = report
        .points
        .iter()
        .filter(|point| point.ring.benchmark == Benchmark::LatCtx)
        .filter_map(|point| Some((point, point.keys?)))
        .collect();
    let least = all.iter().map(|(point, _)| point.ring.size).min()?;
    let of_least = || all.iter().filter(|(point, _)| point.ring.size == least);
    let told = |(point, keys): &(&Point, KeyUse)| {
        format!(
            "{} ns with {} (95 % interval {}; in 1,000 turns {} keys taken from others, {} calls of pkey_mprotect)",
            ns(point.switch_ns.value),
            point.ring.participants,
            interval(&point.switch_ns),
            num::grouped(keys.recycled_per_kilo_step.round() as u64),
            num::grouped(keys.protect_calls_per_kilo_step.round() as u64)
        )
    };
    let fewest = of_least().min_by_key(|(point, _)| point.ring.participants)?;
    let most = of_least().max_by_key(|(point, _)| point.ring.participants)?;
    let and = if fewest.0.ring == most.0.ring { String::new() } else { format!(", {}", told(most)) };
    Some(format!("A switch of compartments by protection keys, {least} KiB each: {}{and}.", told(fewest)))
}

fn of_sharing(report: &Report, kind: Pages) -> Option<String> {
    let of_kind = report.contrasts.iter().filter(|contrast| contrast.ring.pages == kind);
    let all: Vec<(&Contrast, &Figure)> =
        of_kind.filter_map(|contrast| Some((contrast, contrast.sharing_ns()?))).collect();
    let sure = all.iter().filter(|(contrast, figure)| contrast.of_pages_significant && figure.value > 0.0);
    let count = sure.clone().count();
    let most = sure.max_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let what = format!("sharing translations of {} pages", pages(kind));
    if all.is_empty() {
        return None;
    }
    Some(match most {
        None => format!("Nothing shows what {what} could save, in {} of extreme.", rings(all.len())),
        Some((contrast, figure)) => format!(
            "At most what {what} could save a switch: {} ns (95 % interval {}) with {} processes of the same {} pages of 4 KiB, the largest of {}; significant in {count}.",
            ns(figure.value),
            interval(figure),
            contrast.ring.participants,
            contrast.ring.size,
            all.len()
        ),
    })
}

fn rings(count: usize) -> String {
    format!("{count} ring{}", if count == 1 { "" } else { "s" })
}

pub(crate) fn pages(pages: Pages) -> &'static str {
    match pages {
        Pages::Base => "base",
        Pages::Huge => "huge",
    }
}

/// Nanoseconds, all digits.
pub(crate) fn ns(x: f64) -> String {
    let digits = num::grouped(x.abs().round() as u64);
    match x < 0.0 && digits != "0" {
        true => format!("-{digits}"),
        false => digits,
    }
}

/// Both ends of an interval, in nanoseconds.
pub(crate) fn interval(figure: &Figure) -> String {
    format!("{} – {}", ns(figure.low), ns(figure.high))
}

/// A figure whose sign matters: what costs is marked.
fn marked(figure: &Figure, significant: bool) -> Cell {
    let paint = match (significant, figure.value > 0.0) {
        (false, _) => Paint::Plain,
        (true, true) => Paint::Bad,
        (true, false) => Paint::Good,
    };
    Cell::painted(paint, ns(figure.value))
}

/// Compartments took part.
pub(crate) fn has_keys(report: &Report) -> bool {
    report.points.iter().any(|point| point.who == Who::Compartments)
}

/// A switch of compartments in the same ring; beyond the last column where there are none, and so dropped.
fn by_keys(report: &Report, contrast: &Contrast) -> Cell {
    report.point(contrast, Who::Compartments).map_or(num::NONE.into(), |point| ns(point.switch_ns.value)).into()
}

fn lat_ctx(report: &Report) -> Table {
    let mut table = Table::new(
        [
            Column::right("participants"),
            Column::right("KiB"),
            Column::left("pages"),
            Column::right("alone, a turn").optional(2),
            Column::right("threads"),
            Column::right("processes"),
            Column::right("over threads"),
            Column::right("95 % interval"),
            Column::right("÷ threads").optional(1),
        ]
        .into_iter()
        .chain(has_keys(report).then(|| Column::right("keys"))),
    );
    for contrast in report.contrasts.iter().filter(|contrast| contrast.ring.benchmark == Benchmark::LatCtx) {
        let of = |who: Who| report.point(contrast, who);
        let (Some(threads), Some(processes)) = (of(Who::Threads), of(Who::Processes)) else { continue };
        table.row([
            num::grouped(contrast.ring.participants as u64).into(),
            num::grouped(contrast.ring.size).into(),
            pages(contrast.ring.pages).into(),
            ns(processes.alone_ns.value).into(),
            ns(threads.switch_ns.value).into(),
            ns(processes.switch_ns.value).into(),
            marked(&contrast.over_threads_ns, contrast.significant),
            interval(&contrast.over_threads_ns).into(),
            contrast.ratio.map_or(num::NONE.into(), |ratio| format!("{:.2}", ratio.value)).into(),
            by_keys(report, contrast),
        ]);
    }
    table
}

/// Own and same memory beside each other.
fn extreme(report: &Report) -> Table {
    let mut table = Table::new(
        [
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
        ]
        .into_iter()
        .chain(["K own", "K same"].into_iter().filter(|_| has_keys(report)).map(Column::right)),
    );
    for same in report.contrasts.iter().filter(|contrast| contrast.ring.frames == Frames::Shared) {
        let is_own = |other: &&Contrast| {
            other.ring == lookaside_fast_address_space_switching::metal::Ring { frames: Frames::Private, ..same.ring }
        };
        let Some(own) = report.contrasts.iter().find(is_own) else { continue };
        let switch = |contrast: &Contrast, who: Who| {
            Cell::from(report.point(contrast, who).map_or(num::NONE.into(), |point| ns(point.switch_ns.value)))
        };
        table.row([
            num::grouped(same.ring.participants as u64).into(),
            num::grouped(same.ring.size).into(),
            pages(same.ring.pages).into(),
            switch(own, Who::Threads),
            switch(own, Who::Processes),
            marked(&own.over_threads_ns, own.significant),
            switch(same, Who::Threads),
            switch(same, Who::Processes),
            marked(&same.over_threads_ns, same.significant),
            same.of_pages_ns.as_ref().map_or(Cell::default(), |figure| marked(figure, same.of_pages_significant)),
            same.of_pages_ns.as_ref().map_or(Cell::default(), |figure| interval(figure).into()),
            by_keys(report, own),
            by_keys(report, same),
        ]);
    }
    table
}
