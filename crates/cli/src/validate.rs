//! The `validate` command: a machine description held against the machine at hand.

use std::time::{Duration, Instant};

use lookaside_probe::validate::{patterns, validate, ValidationOptions};
use lookaside_probe::{Halt, HostMachine};
use lookaside_views::json;
use lookaside_views::validation::view;

use crate::args::validate::ValidateArgs;
use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::machines;
use lookaside_cli::memory::available_bytes;
use lookaside_cli::output::{spinner, style};
use lookaside_cli::probing::probed;

/// Runs of each pattern, and with `--quick`: the least whose lower quartile is not the fastest.
const RUNS: (usize, usize) = (9, 5);

/// Measures, models, prints. Exit code 1 where the errors are not within the bounds.
pub fn run(args: &ValidateArgs) -> Result<u8, Failure> {
    // Bad input is found before anything takes time.
    let described = args.machine.as_deref().map(machines::find).transpose()?;
    args.output.check()?;
    let max_bytes = match args.memory {
        Some(mib) => mib << 20,
        None => available_bytes().map_err(|e| Failure::bad(format_args!("{e}; give --memory")))? / 2,
    };
    let interrupt = Interrupt::install()?;
    let machine = match described {
        Some(machine) => machine,
        None => probed(args.seed, &interrupt)?,
    };
    let mut host = HostMachine::on_idlest_cpu(max_bytes).map_err(Failure::bad)?;
    let end = Instant::now() + Duration::from_secs(args.time);
    let halt = || match (interrupt.asked(), Instant::now() > end) {
        (true, _) => Some(Halt::Interrupted),
        (_, true) => Some(Halt::TimeUp),
        _ => None,
    };
    let options = ValidationOptions {
        patterns: patterns(args.quick),
        max_bytes,
        repeats: if args.quick { RUNS.1 } else { RUNS.0 },
        seed: args.seed,
    };
    let bar = spinner("validating");
    let validation = validate(&mut host, &machine, &options, &halt, &mut |what, share| {
        bar.set_message(format!("{:.0} %, {what}", share * 100.0));
    });
    bar.finish_and_clear();
    drop(host);
    let validation = validation?;
    args.output.write(&view(&validation), &json::render(&validation), &style(None))?;
    if interrupt.asked() {
        return Ok(interrupt.code());
    }
    let within = validation.summary.as_ref().is_some_and(|summary| summary.within());
    Ok(if within && validation.walked() && validation.halted.is_none() { 0 } else { NOT_CLEAN })
}
