//! What a switch takes as a page: the verdict, a chart for each size or ring, every figure.

use lookaside_fast_address_space_switching::metal::{Benchmark, Frames, Pages, Point, Report, Who};
use lookaside_stats::{Figure, LEAST_ROUNDS, RESAMPLES};

use super::lines::{figure, legend, Chart, Line};
use super::parts::{Cell, Esc, Table};
use crate::switching::{circumstances, disturbances, facts, has_keys, interval, ns, pages, unit, verdict, who};
use lookaside_report::num;

/// Draws the report as an HTML page that is well-formed XML too. Same data, same text; nothing is loaded from anywhere.
pub fn render(report: &Report) -> String {
    let mut page = super::head("What a switch takes");
    page += &header(report);
    page += "<main>\n";
    page += &lat_ctx(report);
    page += &extreme(report);
    page += &contrasts(report);
    page += &points(report);
    page += &method(report);
    page + "</main>\n" + &super::foot(&report.version)
}

fn header(report: &Report) -> String {
    let mut out = String::from("<header><h1>What a switch takes</h1>");
    for line in verdict(report) {
        out += &format!(r#"<p class="answer">{}</p>"#, Esc(&line));
    }
    let lines = [circumstances(report)].into_iter().chain(facts(report)).chain(disturbances(report));
    out += &lines.map(|line| format!(r#"<p class="sub">{}</p>"#, Esc(&line))).collect::<String>();
    if let Some(early) = &report.early {
        let cut = Esc(&early.to_string()).to_string();
        out += &format!(
            r#"<p class="banner"><strong>Cut short: {cut}.</strong> Figures are of the rounds that were complete.</p>"#
        );
    }
    out + "</header>\n"
}

/// Different values of the points, in order.
fn distinct<T: Ord>(report: &Report, benchmark: Benchmark, of: impl Fn(&Point) -> T) -> Vec<T> {
    let mut all: Vec<T> = report.points.iter().filter(|point| point.ring.benchmark == benchmark).map(of).collect();
    all.sort();
    all.dedup();
    all
}

fn switch(report: &Report, wanted: impl Fn(&Point) -> bool) -> Option<Figure> {
    report.points.iter().find(|point| wanted(point)).map(|point| point.switch_ns)
}

fn section(id: &str, title: &str, lead: &str, names: &[&str], charts: &str) -> String {
    if charts.is_empty() {
        return String::new();
    }
    format!(
        "<section aria-labelledby=\"{id}\"><h2 id=\"{id}\">{title}</h2><p class=\"lead\">{lead}</p>{}<div class=\"charts\">{charts}</div></section>\n",
        legend(names)
    )
}

const LEAD: &str = "Medians of the rounds, bars: their 95 % intervals. Sizes stand at even distances; charts whose figures differ by more than ten times are logarithmic.";

fn lat_ctx(report: &Report) -> String {
    let benchmark = Benchmark::LatCtx;
    let rings = distinct(report, benchmark, |point| point.ring.participants);
    let mut charts = String::new();
    for kind in [Pages::Base, Pages::Huge] {
        for size in distinct(report, benchmark, |point| point.ring.size) {
            let line = |who: Who| {
                let at = |&participants: &usize| {
                    switch(report, |point| {
                        let ring = point.ring;
                        point.who == who
                            && (ring.benchmark, ring.pages, ring.size, ring.participants)
                                == (benchmark, kind, size, participants)
                    })
                };
                Line { name: crate::switching::who(who).into(), figures: rings.iter().map(at).collect() }
            };
            charts += &figure(&Chart {
                name: format!("{size} KiB each, {} pages", pages(kind)),
                x: "participants",
                y: "ns a switch",
                sizes: rings.iter().map(usize::to_string).collect(),
                lines: who_took_part(report).into_iter().map(line).collect(),
            });
        }
    }
    let names: Vec<&str> = who_took_part(report).into_iter().map(who).collect();
    section("lat-ctx", "lat_ctx: a switch over participants", LEAD, &names, &charts)
}

fn who_took_part(report: &Report) -> Vec<Who> {
    let all = [Who::Threads, Who::Processes, Who::Compartments];
    all.into_iter().filter(|who| *who != Who::Compartments || has_keys(report)).collect()
}

fn extreme(report: &Report) -> String {
    let benchmark = Benchmark::Extreme;
    let sizes = distinct(report, benchmark, |point| point.ring.size);
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
    let mut charts = String::new();
    for kind in [Pages::Base, Pages::Huge] {
        for participants in distinct(report, benchmark, |point| point.ring.participants) {
            let line = |(who, frames, name): (Who, Frames, &str)| {
                let at = |&size: &u64| {
                    switch(report, |point| {
                        let ring = point.ring;
                        (point.who, ring.benchmark, ring.pages) == (who, benchmark, kind)
                            && (ring.frames, ring.size, ring.participants) == (frames, size, participants)
                    })
                };
                Line { name: name.into(), figures: sizes.iter().map(at).collect() }
            };
            charts += &figure(&Chart {
                name: format!("{participants} participants, {} pages", pages(kind)),
                x: "pages of 4 KiB",
                y: "ns a switch",
                sizes: sizes.iter().map(u64::to_string).collect(),
                lines: kinds.iter().copied().map(line).collect(),
            });
        }
    }
    let names: Vec<&str> = kinds.iter().map(|(_, _, name)| *name).collect();
    section("extreme", "extreme: a switch over pages visited", LEAD, &names, &charts)
}

fn number(x: f64) -> Cell {
    Cell::Number(x, ns(x))
}

fn frames(frames: Frames) -> Cell {
    Cell::Text(match frames {
        Frames::Private => "own".into(),
        Frames::Shared => "the same".into(),
    })
}

fn benchmark(benchmark: Benchmark) -> Cell {
    Cell::Text(match benchmark {
        Benchmark::LatCtx => "lat_ctx".into(),
        Benchmark::Extreme => "extreme".into(),
    })
}

fn yes(is: bool) -> Cell {
    Cell::Text(if is { "yes".into() } else { "no".into() })
}

fn contrasts(report: &Report) -> String {
    let rows = report.contrasts.iter().map(|contrast| {
        let ring = contrast.ring;
        let pages_ns = contrast.of_pages_ns;
        vec![
            benchmark(ring.benchmark),
            Cell::count(ring.participants as u64),
            Cell::Number(ring.size as f64, format!("{} {}", num::grouped(ring.size), unit(ring.benchmark))),
            frames(ring.frames),
            Cell::Text(pages(ring.pages).into()),
            number(contrast.over_threads_ns.value),
            Cell::Text(interval(&contrast.over_threads_ns)),
            yes(contrast.significant),
            contrast
                .ratio
                .map_or(Cell::rate(f64::NAN), |ratio| Cell::Number(ratio.value, format!("{:.3}", ratio.value))),
            pages_ns.map_or(Cell::rate(f64::NAN), |figure| number(figure.value)),
            Cell::Text(pages_ns.as_ref().map_or(num::NONE.into(), interval)),
            Cell::Text(if pages_ns.is_none() {
                String::new()
            } else if contrast.of_pages_significant {
                "yes".into()
            } else {
                "no".into()
            }),
        ]
    });
    let table = Table {
        caption: "What a switch of processes takes over one of threads in the same ring, in nanoseconds",
        heads: vec![
            ("benchmark", false),
            ("participants", true),
            ("each reads", true),
            ("memory", false),
            ("pages", false),
            ("over threads", true),
            ("95 % interval", false),
            ("significant", false),
            ("processes ÷ threads", true),
            ("less that with the fewest pages", true),
            ("95 % interval", false),
            ("significant", false),
        ],
        rows: rows.collect(),
    };
    format!(
        "<section class=\"long\" aria-labelledby=\"contrasts\"><h2 id=\"contrasts\">Processes against threads</h2>{}</section>\n",
        table.scrolled()
    )
}

fn points(report: &Report) -> String {
    let rows = report.points.iter().map(|point| {
        let ring = point.ring;
        vec![
            benchmark(ring.benchmark),
            Cell::Text(who(point.who).into()),
            Cell::count(ring.participants as u64),
            Cell::Number(ring.size as f64, format!("{} {}", num::grouped(ring.size), unit(ring.benchmark))),
            frames(ring.frames),
            Cell::Text(pages(ring.pages).into()),
            number(point.step_ns.value),
            number(point.alone_ns.value),
            number(point.switch_ns.value),
            Cell::Text(interval(&point.switch_ns)),
            Cell::rate(point.extra_switches_per_kilo_step),
            Cell::rate(point.most_extra_switches_per_kilo_step),
            Cell::rate(point.involuntary_per_kilo_step),
            Cell::rate(point.keys.map_or(f64::NAN, |keys| keys.recycled_per_kilo_step)),
            Cell::rate(point.keys.map_or(f64::NAN, |keys| keys.protect_calls_per_kilo_step)),
        ]
    });
    let table = Table {
        caption: "Every ring, in nanoseconds",
        heads: vec![
            ("benchmark", false),
            ("participants are", false),
            ("participants", true),
            ("each reads", true),
            ("memory", false),
            ("pages", false),
            ("a turn", true),
            ("a turn alone", true),
            ("a switch", true),
            ("95 % interval", false),
            ("extra switches per 1,000 turns", true),
            ("in the worst round", true),
            ("involuntary per 1,000 turns", true),
            ("keys taken per 1,000 turns", true),
            ("calls of pkey_mprotect per 1,000 turns", true),
        ],
        rows: rows.collect(),
    };
    format!(
        "<section class=\"long\" aria-labelledby=\"points\"><h2 id=\"points\">Every ring</h2>{}</section>\n",
        table.scrolled()
    )
}

fn method(report: &Report) -> String {
    format!(
        "<section aria-labelledby=\"method\"><h2 id=\"method\">How this was made</h2><p>Participants stand in a ring of pipes, all on one CPU; who has the token does its work and hands it on. A turn is the time of a lap over the participants. Alone is the same turn of one participant that hands the token to itself: work, one write and one read, and no switch. A switch is the difference, round by round: what the kernel does, and what work takes longer because others ran in between. Processes and threads read the same memory at the same addresses; \"the same\" memory is one area that all read, inherited by processes, so that they have the same frames by tables of their own. Compartments by protection keys, where there are any, are entered and left by one thread: a turn is an enter, the work and a leave, and alone is the work by itself.</p><p>Each round measured every ring once, in an order drawn anew (seed {}). Intervals are percentile bootstraps of medians: {RESAMPLES} draws of whole rounds. Each holds by itself with 95 %; of twenty without effect one may look significant. Significant: the interval does not hold 0, and at least {LEAST_ROUNDS} rounds are complete. What grows with the pages of the same memory is what processes pay for translations of their own: the most that sharing them could save.</p></section>\n",
        report.seed
    )
}
