//! The `top` command: all processes by what translation costs them, live.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use lookaside_cli::exit::Failure;
use lookaside_cli::here::MachineHere;
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::{check_writable, print, style, write_file};
use lookaside_views::top::view;
use lookaside_views::{json, openmetrics_top};

use crate::args::top::TopArgs;
use inspection::Inspector;
use snapshot::ProcessObserver;

mod inspection;
mod live;
mod snapshot;

/// Between two looks that say which processes are busy now, before they are sampled.
const FIRST: Duration = Duration::from_millis(300);

/// Shows them until `q`, Ctrl-C or a signal; or once.
pub fn run(args: &TopArgs) -> Result<u8, Failure> {
    args.output.check()?;
    let metrics = args.openmetrics.as_deref();
    let printed = metrics.is_some_and(|path| path == Path::new("-"));
    if printed && args.output.prints_json() {
        return Err(Failure::bad("--openmetrics, --json: both print; give one of them a file, as --json=FILE"));
    }
    metrics.filter(|_| !printed).map_or(Ok(()), check_writable)?;
    let interval = Duration::from_secs(args.interval);
    let mut observer = ProcessObserver::new();
    let first = observer.snapshot()?;
    let inspector = Inspector::new(if args.no_samples { None } else { Some(MachineHere::kept()?) });
    if !args.once && !args.output.asked() && metrics.is_none() && std::io::stdout().is_terminal() {
        return live::run(args, observer, first, inspector);
    }
    let interrupt = Interrupt::install()?;
    let mut inspector = inspector;
    std::thread::sleep(FIRST);
    let busy = observer.snapshot()?;
    inspector.sample(&busy.processes, interval, &|| interrupt.asked());
    let seen = observer.snapshot()?;
    let recent = seen.since(&first);
    let inspection = inspector.inspect(&seen.processes)?;
    let all = seen.rows(&inspection, args.cgroups);
    let text = metrics.map(|_| openmetrics_top::render(&all));
    match &text {
        Some(text) if printed => {
            print(text)?;
            args.output.write_files(&view(&all, &recent), &json::render(&all))?;
        }
        _ => args.output.write(&view(&all, &recent), &json::render(&all), &style(None))?,
    }
    if let (Some(path), Some(text), false) = (metrics, &text, printed) {
        write_file(path, text)?;
    }
    Ok(if interrupt.asked() { interrupt.code() } else { 0 })
}
