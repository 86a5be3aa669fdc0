//! The `experiment switch` command: what a switch takes here.

use std::time::Duration;

use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::memory::available_bytes;
use lookaside_cli::output::{check_writable, print, spinner, style, write_file};
use lookaside_fast_address_space_switching::metal::{self as switch, Early, Options};
use lookaside_views::{json, pages as html, switching};

use crate::args::experiment::Switch;

/// Measures, prints, writes. Exit code 1 where it broke off, or no round was complete in time; 128 + the signal where it was interrupted.
pub fn run(args: &Switch) -> Result<u8, Failure> {
    let to_stdout = args.json.as_deref().is_some_and(|path| path.as_os_str() == "-");
    let json_file = args.json.as_ref().filter(|_| !to_stdout);
    // Bad input is found before anything takes time.
    for path in args.html.iter().chain(json_file) {
        check_writable(path)?;
    }
    let available = available_bytes().map_err(Failure::bad)?;
    let interrupt = Interrupt::install()?;
    let bar = spinner("switches");
    let mut progress = |step: &str| bar.set_message(step.to_string());
    let report = switch::run(&options(args), available, &|| interrupt.asked(), &mut progress);
    bar.finish_and_clear();
    let report = report.map_err(Failure::bad)?;
    if to_stdout {
        print(&lookaside_report::json::document(json::SWITCH_SCHEMA, &report))?;
    } else {
        print(&switching::render(&report, &style(None)))?;
    }
    let page = args.html.as_ref().map(|path| write_file(path, &html::switching::render(&report)));
    if let Some(path) = json_file {
        write_file(path, &lookaside_report::json::document(json::SWITCH_SCHEMA, &report))?;
    }
    page.unwrap_or(Ok(()))?;
    match &report.early {
        Some(Early::Interrupted) => Ok(interrupt.code()),
        Some(Early::Time(_)) if report.rounds > 0 => Ok(0),
        Some(Early::Time(_)) => Ok(NOT_CLEAN),
        Some(Early::Failed(why)) => Err(Failure { line: format!("broke off: {why}"), code: NOT_CLEAN }),
        None => Ok(0),
    }
}

/// What is asked for; the rest as usual, or as little as shows that it works.
fn options(args: &Switch) -> Options {
    let usual = if args.quick { Options::quick() } else { Options::default() };
    Options {
        participants: args.participants.clone().unwrap_or(usual.participants),
        kib: args.kib.clone().unwrap_or(usual.kib),
        children: args.children.clone().unwrap_or(usual.children),
        page_counts: args.pages.clone().unwrap_or(usual.page_counts),
        rounds: args.rounds.unwrap_or(usual.rounds),
        window: usual.window,
        time: Duration::from_secs(args.time),
        cpu: args.cpu,
        seed: args.seed,
    }
}
