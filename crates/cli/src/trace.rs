//! `lookaside trace`: info, cat, head, convert, check.

use std::io::{self, Write};
use std::path::Path;

use lookaside_report::{num, Cell, Column, Paint, Table};
use lookaside_trace::{
    cat, check, convert, summary, ChampSimLosses, Damage, Granularity, Summary, TraceError, TraceInfo,
};

use crate::args::trace::{ExportFormat, TraceCommand};
use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::output::{print, print_json, style};

/// Runs the command. Exit code 1 when a part of a trace could not be read.
pub fn run(command: TraceCommand) -> Result<u8, Failure> {
    match command {
        TraceCommand::Info { trace, json } => {
            let found = summary(&text(&trace), None)?;
            if json {
                print_json(&found)?;
            } else {
                print(&info(&found))?;
            }
            Ok(said(&trace, &found.damage))
        }
        TraceCommand::Cat { trace } => written(&trace, None),
        TraceCommand::Head { trace, n } => written(&trace, Some(n)),
        TraceCommand::Convert { from, to, format } => {
            let format = format.map_or_else(|| by_ending(&to), Ok)?;
            let done = convert(&text(&from), None, &text(&to), format.into())?;
            if let Some(losses) = done.champsim.filter(|l| *l != ChampSimLosses::default()) {
                eprintln!("lookaside: {}: ChampSim's records have no room for all: {losses:?}", to.display());
            }
            Ok(said(&from, &done.damage))
        }
        TraceCommand::Check { trace, json } => {
            let damage = check(&text(&trace), None)?;
            if json {
                print_json(&damage)?;
            } else if damage.is_empty() {
                print(&format!("{}: sound\n", trace.display()))?;
            }
            Ok(said(&trace, &damage))
        }
    }
}

/// Says which parts could not be read; gives the exit code.
fn said(trace: &Path, damage: &[Damage]) -> u8 {
    for d in damage {
        eprintln!("lookaside: {}: bytes {}–{} left out: {}", trace.display(), d.offset, d.offset + d.len, d.reason);
    }
    if damage.is_empty() {
        0
    } else {
        NOT_CLEAN
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn written(trace: &Path, limit: Option<u64>) -> Result<u8, Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match cat(&text(trace), None, limit, &mut out) {
        Ok(damage) => {
            let _ = out.flush(); // a reader that has gone away
            Ok(said(trace, &damage))
        }
        Err(TraceError::Io { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(e) => Err(e.into()),
    }
}

fn by_ending(to: &Path) -> Result<ExportFormat, Failure> {
    match to.extension().and_then(|e| e.to_str()) {
        Some("lkt") => Ok(ExportFormat::Lkt),
        Some("champsim" | "champsimtrace") => Ok(ExportFormat::Champsim),
        Some("txt") => Ok(ExportFormat::Text),
        _ => Err(Failure::bad(format_args!(
            "{}: the ending says no format; end it in .lkt, .champsim or .txt, or give --format",
            to.display()
        ))),
    }
}

/// Which accesses the recorder left out.
fn left_out(info: &TraceInfo) -> String {
    let what = match info.granularity {
        Granularity::Byte => return "nothing".into(),
        Granularity::Line => "line",
        Granularity::Page => "page",
    };
    let classes = 1u64.checked_shl(info.filter_log2_classes).map_or("many".into(), num::grouped);
    let of_classes = |before: String| match info.filter_log2_classes {
        0 => before,
        _ => format!("{before} of each of {classes} classes of pages"),
    };
    let repeats = match info.window() {
        None => of_classes(format!("repeats of the last {what}")),
        Some(window) if window.log2_classes == 0 => format!("repeats of the {} pages used last", window.pages),
        Some(window) => of_classes(format!("repeats of the {} pages used last, {}", window.pages, window.class_pages)),
    };
    if info.filter_stores_apart {
        format!("{repeats}; loads and stores apart")
    } else {
        repeats
    }
}

fn info(s: &Summary) -> String {
    let mut table = Table::new([Column::left(""), Column::left("").wrap()]);
    let mut row = |name: &str, value: String| {
        table.row([Cell::painted(Paint::Dim, name), Cell::painted(Paint::Plain, value)]);
    };
    if !s.info.recorder.is_empty() {
        row("recorder", s.info.recorder.clone());
    }
    if !s.info.command.is_empty() {
        row("command", s.info.command.join(" "));
    }
    if s.info.sample_period_ns > 0 {
        row("samples", format!("one stands for {} ns of a thread's time", num::grouped(s.info.sample_period_ns)));
    } else {
        row("granularity", format!("{:?}", s.info.granularity).to_lowercase());
        row("left out", left_out(&s.info));
    }
    row("accesses", num::grouped(s.recorded_accesses + s.left_out_repeats));
    row("of those recorded", num::grouped(s.recorded_accesses));
    row(
        "recorded by kind",
        format!(
            "{} loads, {} stores, {} fetches",
            num::grouped(s.recorded_loads),
            num::grouped(s.recorded_stores),
            num::grouped(s.recorded_fetches)
        ),
    );
    let about = if s.distinct_pages_exact { "" } else { "about " };
    row("distinct 4K pages", format!("{about}{}", num::grouped(s.distinct_pages)));
    row("processes, threads", format!("{}, {}", s.processes, s.threads));
    if s.file_bytes > 0 {
        row("bytes", num::grouped(s.file_bytes));
        row("bytes an access", format!("{:.4}", s.bytes_per_access));
        row("bytes a recorded access", format!("{:.4}", s.bytes_per_recorded_access));
    }
    if s.chunks > 0 {
        row("chunks", num::grouped(s.chunks));
    }
    let events: Vec<String> = s.events.iter().map(|(name, n)| format!("{name} {}", num::grouped(*n))).collect();
    if !events.is_empty() {
        row("events", events.join(", "));
    }
    table.render(&style(None))
}
