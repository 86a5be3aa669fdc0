//! The `experiment switch` command: what a switch takes here.

use std::time::Duration;

use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::memory::available_bytes;
use lookaside_cli::output::{spinner, style};
use lookaside_fast_address_space_switching::metal::{self as switch, Early, SwitchOptions};
use lookaside_fast_address_space_switching::{view, SWITCH_SCHEMA};
use lookaside_report::json;

use crate::args::experiment::Switch;

/// Measures, prints, writes. Exit code 1 where it broke off, no round was complete in time, or so much else ran that
/// the rounds tell nothing; 128 + the signal where it was interrupted.
pub fn run(args: &Switch) -> Result<u8, Failure> {
    // Bad input is found before anything takes time.
    args.output.check()?;
    let available = available_bytes().map_err(Failure::bad)?;
    let interrupt = Interrupt::install()?;
    let bar = spinner("switches");
    let mut progress = |step: &str| bar.set_message(step.to_string());
    let report = switch::run(&options(args), available, &|| interrupt.asked(), &mut progress);
    bar.finish_and_clear();
    let report = report.map_err(Failure::bad)?;
    args.output.write(&view(&report), &json::document(SWITCH_SCHEMA, &report), &style(None))?;
    match &report.early {
        Some(Early::Interrupted) => Ok(interrupt.code()),
        Some(Early::Time(_)) | None if report.disturbed.is_some() => Ok(NOT_CLEAN),
        Some(Early::Time(_)) if report.rounds > 0 => Ok(0),
        Some(Early::Time(_)) => Ok(NOT_CLEAN),
        Some(Early::Failed(why)) => Err(Failure { line: format!("broke off: {why}"), code: NOT_CLEAN }),
        None => Ok(0),
    }
}

/// What is asked for; the rest as usual, or as little as shows that it works.
fn options(args: &Switch) -> SwitchOptions {
    let usual = if args.quick { SwitchOptions::quick() } else { SwitchOptions::default() };
    SwitchOptions {
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
