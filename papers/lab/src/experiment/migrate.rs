//! The `experiment migrate` command: what a move to another CPU costs in translations, and whether prefetching them
//! pays.

use std::time::Duration;

use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::{spinner, style};
use lookaside_report::json;
use lookaside_tlb_migration::metal::{run as run_migrate, MoveOptions, SystemCpus};
use lookaside_tlb_migration::{view, MIGRATION_SCHEMA};

use crate::args::migrate::Migrate;

/// Numbers of pages: the paper's up to 64, then to what second-level TLBs hold (Zen 2's 2048 less what else is there).
const PAGES: [u64; 8] = [1, 4, 16, 64, 256, 512, 1024, 1536];
/// The same of `--quick`.
const QUICK_PAGES: [u64; 3] = [1, 8, 64];
/// Rounds; as for `compare`, more than a few, so that intervals are narrow.
const ROUNDS: u32 = 40;
/// The same of `--quick`: as few as anything is significant with.
const QUICK_ROUNDS: u32 = 5;
/// After so long no more is measured.
const TIME: Duration = Duration::from_secs(115);

/// Measures, prints, writes. Exit code 1 where no round was complete in time.
pub fn run(args: &Migrate) -> Result<u8, Failure> {
    // Bad input is found before anything takes time.
    args.output.check()?;
    let (pages, rounds) = if args.quick { (&QUICK_PAGES[..], QUICK_ROUNDS) } else { (&PAGES[..], ROUNDS) };
    let options = MoveOptions {
        from: args.from,
        to: args.to,
        pages: args.pages.clone().unwrap_or_else(|| pages.to_vec()),
        rounds: args.rounds.unwrap_or(rounds),
        time: Some(TIME),
        seed: args.seed,
        available_bytes: lookaside_host::available_bytes().unwrap_or(u64::MAX),
    };
    let interrupt = Interrupt::install()?;
    let bar = spinner("migrate");
    let mut progress = |step: &str| bar.set_message(step.to_string());
    let report = run_migrate(&options, &SystemCpus::here(), &|| interrupt.asked(), &mut progress);
    bar.finish_and_clear();
    let report = report.map_err(Failure::bad)?;
    args.output.write(&view(&report), &json::document(MIGRATION_SCHEMA, &report), &style(None))?;
    Ok(match report.rounds {
        _ if interrupt.asked() => interrupt.code(),
        0 => NOT_CLEAN,
        _ => 0,
    })
}
