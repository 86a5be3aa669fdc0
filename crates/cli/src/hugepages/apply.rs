//! `lookaside hugepages apply`: huge pages for the windows of a running process that it is seen in most.

use std::time::Duration;

use lookaside_runtime::hugepages::{promote, HugePageError, PromotionRequest};
use lookaside_runtime::trial::Journal;
use lookaside_views::hugepages_live::view;
use lookaside_views::json;

use crate::args::hugepages::HugepagesApplyArgs;
use crate::clock_sampler::ClockSampler;
use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::{spinner, style};

/// Looks, chooses, collapses. Exit code 1 where a chosen window could not be made huge; 128 + the signal where it was
/// interrupted.
pub fn run(args: &HugepagesApplyArgs) -> Result<u8, Failure> {
    if args.pid == std::process::id() {
        return Err(Failure::bad("--pid: names this command itself"));
    }
    args.output.check()?;
    let interrupt = Interrupt::install()?;
    let bar = spinner("looking");
    let applied = promote(&PromotionRequest {
        pid: args.pid,
        budget: args.budget as usize,
        time: Duration::from_secs(args.seconds),
        by: args.by.map(Into::into),
        dry: args.dry_run,
        look: &ClockSampler,
        stop: &|| interrupt.asked(),
        note: &|windows| {
            let noted = Journal::open().and_then(|journal| journal.record_kept("hugepages apply", args.pid, windows));
            noted.map_err(|e| HugePageError::Bad(e.to_string()))
        },
    });
    bar.finish_and_clear();
    let applied = applied?;
    args.output.write(&view(&applied), &json::render(&applied), &style(None))?;
    if interrupt.asked() {
        return Ok(interrupt.code());
    }
    Ok(if !applied.dry_run && applied.failed() > 0 { NOT_CLEAN } else { 0 })
}
