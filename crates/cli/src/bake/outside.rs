//! `lookaside bake pid` and `system`: other processes, from outside.

use std::time::{Duration, Instant};

use lookaside_runtime::bake::{ProcessBakers, ProcessSelection, Settings};
use lookaside_views::baked::{view, BakedProcesses};
use lookaside_views::json;

use super::publish::Publisher;
use crate::args::bake::BakeOutsideArgs;
use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::{check_writable, spinner, style};

/// How soon an interruption is heeded.
const STEP: Duration = Duration::from_millis(50);

/// Bakes until the processes have ended, the time is over, or somebody interrupts. Exit code 1 where a process could
/// not be baked; 128 + the signal where it was interrupted.
pub fn run(args: &BakeOutsideArgs, wanted: ProcessSelection) -> Result<u8, Failure> {
    let settings: Settings = args.settings.parse().map_err(Failure::bad)?;
    if let Some(path) = &args.metrics {
        check_writable(path)?;
    }
    args.output.check()?;
    let interrupt = Interrupt::install()?;
    // Others may still come.
    let waits = wanted.pids.is_empty();
    let mut outside = ProcessBakers::start(&settings, wanted).map_err(Failure::bad)?;
    let ranking = outside.ranking();
    let publisher = Publisher::open(args, ranking.clone())?;
    publisher.publish(&outside.report())?;
    let end = args.time.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let bar = spinner("baking");
    let mut next = Instant::now() + outside.until_refresh();
    while !interrupt.asked() && end.is_none_or(|end| Instant::now() < end) {
        std::thread::sleep(STEP);
        if Instant::now() < next {
            continue;
        }
        let there = outside.refresh().map_err(Failure::bad)?;
        next = Instant::now() + outside.until_refresh();
        if there == 0 && !waits {
            break;
        }
        let report = outside.report();
        publisher.publish(&report)?;
        let rounds: u64 = report.iter().map(|baked| baked.stats.rounds).sum();
        bar.set_message(format!("{there} processes, {rounds} rounds"));
    }
    bar.finish_and_clear();
    let looks_cpu_share = outside.looks_cpu_share();
    let baked = BakedProcesses { processes: outside.stop(), looks_cpu_share };
    let report = &baked.processes;
    publisher.publish(report)?;
    args.output.write(&view(&baked, ranking.as_ref()), &json::render(&baked), &style(None))?;
    if interrupt.asked() {
        return Ok(interrupt.code());
    }
    Ok(if report.iter().any(|baked| baked.refused.is_some()) { NOT_CLEAN } else { 0 })
}
