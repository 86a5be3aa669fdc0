//! `reproduce`: published, ours, verdict.

use std::time::{Duration, Instant};

use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::machines;
use lookaside_cli::output::{spinner, style};
use lookaside_harness::metal::{LongerRun, Setting};
use lookaside_harness::{view, Effort, Paper, Reproduction, REPRODUCTION_SCHEMA};
use lookaside_probe::{Halt, HostMachine};
use lookaside_report::json;

use crate::args::reproduce::ReproduceArgs;
use crate::papers;

/// Most memory of the microbenchmarks, if nothing else is asked for.
const USUAL_MIB: u64 = 256;
/// TLBs are looked for in this part of the time at most: what needs the first level alone is measured in any case.
const SEARCH_PART: u32 = 2;

/// Runs a paper's experiments. Exit code 1 when a row that counts does not hold.
pub fn run(args: &ReproduceArgs) -> Result<u8, Failure> {
    args.output.check()?;
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
    args.output.write(&view(found), &json::document(REPRODUCTION_SCHEMA, found), &style(None))
}
