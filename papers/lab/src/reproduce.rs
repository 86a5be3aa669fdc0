//! `reproduce`: published, ours, verdict.

use std::time::{Duration, Instant};

use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::machines;
use lookaside_cli::output::{check_writable, print, spinner, style, write_file};
use lookaside_harness::metal::{LongerRun, Setting};
use lookaside_harness::{Effort, Paper, Reproduction, Row, Series, Verdict};
use lookaside_probe::{Halt, HostMachine};
use lookaside_report::Paint;
use lookaside_views::{pages as html, reproduction};

use crate::args::reproduce::ReproduceArgs;
use crate::papers;

/// Most memory of the microbenchmarks, if nothing else is asked for.
const USUAL_MIB: u64 = 256;
/// TLBs are looked for in this part of the time at most: what needs the first level alone is measured in any case.
const SEARCH_PART: u32 = 2;
/// Headers of the rows.
const HEADERS: [&str; 5] = ["place", "what", "published", "ours", "verdict"];

/// Runs a paper's experiments. Exit code 1 when a row that counts does not hold.
pub fn run(args: &ReproduceArgs) -> Result<u8, Failure> {
    if let Some(path) = &args.html {
        check_writable(path)?;
    }
    let paper = papers::find(&args.paper).map_err(Failure::bad)?;
    if args.metal {
        return metal(args, paper);
    }
    let bar = spinner("modelling");
    let found = paper.reproduce(Effort::Usual, &mut |step| bar.set_message(step.to_string()));
    bar.finish_and_clear();
    let found = found.map_err(Failure::bad)?;
    show(args, &found)?;
    Ok(code(&found))
}

/// The same on this machine. What is known when it is interrupted, or its time is up, is shown.
fn metal(args: &ReproduceArgs, paper: &Paper) -> Result<u8, Failure> {
    let experiments = papers::metal(paper).map_err(Failure::bad)?;
    let given = args.machine.as_deref().map(machines::find).transpose()?;
    let interrupt = Interrupt::install()?;
    let time = Duration::from_secs(args.time);
    let end = Instant::now() + time;
    let mut host = HostMachine::on_idlest_cpu(args.memory.unwrap_or(USUAL_MIB) << 20).map_err(Failure::bad)?;
    let setting = Setting { given, search: time / SEARCH_PART, ..Setting::of_cpu(host.cpu(), args.seed) };
    let halt = || match (interrupt.asked(), Instant::now() > end) {
        (true, _) => Some(Halt::Interrupted),
        (_, true) => Some(Halt::TimeUp),
        _ => None,
    };
    let bar = spinner("measuring");
    let mut progress = |step: &str| bar.set_message(step.to_string());
    let (mut found, levels) = paper.measure(&experiments, &mut host, &setting, &halt, &mut progress);
    drop(host); // back to all CPUs, and the memory to the system
    let memory_bytes = args.memory.map(|mib| mib << 20);
    let longer = LongerRun { given: setting.given, levels, memory_bytes, seed: args.seed, halt: &halt };
    (experiments.run_longer)(&mut found, longer, &mut progress);
    bar.finish_and_clear();
    if interrupt.asked() {
        found.halted.get_or_insert_with(|| Halt::Interrupted.to_string());
    }
    show(args, &found)?;
    Ok(if interrupt.asked() { interrupt.code() } else { code(&found) })
}

fn code(found: &Reproduction) -> u8 {
    if found.holding() == found.counted().count() && found.halted.is_none() {
        0
    } else {
        NOT_CLEAN
    }
}

fn show(args: &ReproduceArgs, found: &Reproduction) -> Result<(), Failure> {
    if let Some(path) = &args.html {
        write_file(path, &page(found))?;
    }
    if args.json {
        return print(&lookaside_report::json::document("lookaside-reproduction/1", found));
    }
    let (machine, assumed) = labels(found);
    let mut text = format!("{}\n{machine}: {}\n", found.cite, found.machine);
    for assumption in &found.assumptions {
        text.push_str(&format!("{assumed}: {assumption}\n"));
    }
    let rows: Vec<_> = found.rows.iter().map(row).collect();
    text.push('\n');
    text.push_str(&reproduction::render(&HEADERS, &rows, &style(None)));
    if found.measured {
        for series in &found.series {
            text.push('\n');
            text.push_str(&reproduction::curve(&curve(series), &style(None)));
        }
    }
    text.push_str(&format!("\n{}\n", summary(found)));
    if let Some(reason) = &found.halted {
        text.push_str(&format!("ended early: {reason}\n"));
    }
    print(&text)
}

/// What the machine is, and what the lines below it say.
fn labels(found: &Reproduction) -> (&'static str, &'static str) {
    if found.measured {
        ("measured", "how")
    } else {
        ("model", "assumed")
    }
}

fn summary(found: &Reproduction) -> String {
    format!("{} of {} rows that count hold", found.holding(), found.counted().count())
}

fn page(found: &Reproduction) -> String {
    let (machine, assumed) = labels(found);
    html::reproduction::render(&reproduction::Page {
        version: env!("CARGO_PKG_VERSION"),
        title: &found.paper,
        cite: &found.cite,
        summary: &summary(found),
        halted: found.halted.as_deref(),
        machine: (machine, &found.machine),
        lines: (assumed, &found.assumptions),
        headers: &HEADERS,
        rows: &found.rows.iter().map(row).collect::<Vec<_>>(),
        curves: &found.series.iter().map(curve).collect::<Vec<_>>(),
    })
}

fn curve(series: &Series) -> reproduction::Curve<'_> {
    reproduction::Curve {
        name: &series.name,
        x: &series.x,
        y: &series.y,
        points: &series.points,
        intervals: &series.intervals,
        labels: &series.labels,
    }
}

fn row(row: &Row) -> reproduction::Row {
    let unit = if row.unit.is_empty() { String::new() } else { format!(" {}", row.unit) };
    let ours = row.ours.as_ref().map(|ours| format!("{ours}{unit}")).unwrap_or_default();
    reproduction::Row {
        cells: vec![
            row.place.clone(),
            row.what.clone(),
            format!("{}{unit}", row.published),
            ours,
            row.verdict.to_string(),
        ],
        verdict: match row.verdict {
            Verdict::Holds => Paint::Good,
            Verdict::Differs => Paint::Bad,
            Verdict::Fitted => Paint::Warn,
            Verdict::AnotherMachine | Verdict::Beyond | Verdict::NotReproduced => Paint::Plain,
        },
        remark: row.note.clone(),
    }
}
