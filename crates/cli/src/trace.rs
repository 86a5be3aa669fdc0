//! `lookaside trace`: info, cat, head, convert, check.

use std::io::{self, Write};
use std::path::Path;

use lookaside_report::num::{counted, grouped};
use lookaside_trace::{cat, convert, summary, ChampSimLosses, Damage, TraceError};
use lookaside_views::json;
use lookaside_views::trace::check::{self, TraceCheck};
use lookaside_views::trace::info;

use crate::args::trace::{ExportFormat, TraceCommand};
use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::output::style;
use lookaside_cli::say::say;

/// Runs the command. Exit code 1 when a part of a trace could not be read.
pub fn run(command: TraceCommand) -> Result<u8, Failure> {
    match command {
        TraceCommand::Info { trace, output } => {
            output.check()?;
            let path = text(&trace);
            let found = summary(&path, None)?;
            output.write(&info::view(&path, &found), &json::render(&found), &style(None))?;
            Ok(said(&trace, &found.damage))
        }
        TraceCommand::Cat { trace } => written(&trace, None),
        TraceCommand::Head { trace, n } => written(&trace, Some(n)),
        TraceCommand::Convert { from, output, format } => {
            let format = format.map_or_else(|| by_ending(&output), Ok)?;
            let done = convert(&text(&from), None, &text(&output), format.into())?;
            let lost = done.champsim.filter(|losses| !losses.is_none());
            if let Some(losses) = lost {
                say(format_args!("{}: {}", output.display(), words(&losses)));
            }
            let code = said(&from, &done.damage);
            Ok(if lost.is_some() { NOT_CLEAN } else { code })
        }
        TraceCommand::Check { trace, output } => {
            output.check()?;
            let path = text(&trace);
            let found = TraceCheck { damage: lookaside_trace::check(&path, None)? };
            output.write(&check::view(&path, &found.damage), &json::render(&found), &style(None))?;
            Ok(said(&trace, &found.damage))
        }
    }
}

/// What ChampSim's records hold of a trace, and what they don't.
fn words(losses: &ChampSimLosses) -> String {
    let ChampSimLosses { records, accesses, events, zero_addresses, thread_changes } = *losses;
    let lost = [
        (events, "event (memory map, threads, processes)", "events (memory map, threads, processes)"),
        (thread_changes, "switch between threads", "switches between threads"),
        (zero_addresses, "access to address 0", "accesses to address 0"),
    ];
    let lost = lost.iter().filter(|(count, ..)| *count > 0);
    let lost: Vec<String> = lost
        .map(|(count, one, more)| format!("{} {}", grouped(*count), if *count == 1 { one } else { more }))
        .collect();
    format!(
        "has {} accesses in {}; ChampSim's format can't hold {}",
        grouped(accesses),
        counted(records as usize, "instruction"),
        lost.join(", ")
    )
}

/// Says which parts could not be read; gives the exit code.
fn said(trace: &Path, damage: &[Damage]) -> u8 {
    for d in damage {
        say(format_args!("{}: bytes {}–{} left out: {}", trace.display(), d.offset, d.offset + d.len, d.reason));
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
            "{}: unknown file ending; use .lkt, .champsim or .txt, or give --format",
            to.display()
        ))),
    }
}
