//! `lookaside simulate`: the engine by itself.

use std::ops::ControlFlow;

use lookaside_engine::{run_many, Detail, End, Filter, Setup, WalkModel};
use lookaside_trace::Source;

use crate::args::Simulate;
use crate::exit::{Failure, NOT_CLEAN};
use crate::interrupt::Interrupt;
use crate::machines;
use crate::output::{print, print_json, short_count, spinner, style};

mod bake;

/// Runs the command. Exit code 1 when a part of the trace could not be read.
pub fn run(args: &Simulate) -> Result<u8, Failure> {
    let helper = bake::asked(args)?;
    let chosen = machines::setups(&args.machine)?;
    if args.machine.machine.is_empty() {
        for (setup, reason) in &chosen {
            eprintln!("lookaside: machine {}: {reason}", setup.machine.name);
        }
    }
    let mut setups: Vec<Setup> = chosen.into_iter().map(|(setup, _)| setup).collect();
    for setup in &mut setups {
        if args.count_only {
            setup.walks = WalkModel::CountOnly;
        }
        if args.totals {
            setup.detail = Detail::Totals;
        }
    }
    if let Some(helper) = &helper {
        return bake::run(args, helper, setups);
    }
    let mut source = open(args, &setups)?;
    let interrupt = Interrupt::install()?;
    let bar = spinner("simulating");
    let ran = run_many(setups, &mut *source, |accesses| {
        bar.set_message(format!("{} accesses", short_count(accesses)));
        if interrupt.asked() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    bar.finish_and_clear();
    let outcomes = ran.outcomes;
    if args.json {
        print_json(&outcomes)?;
    } else {
        print(&lookaside_report::simulate::render(&outcomes, &style(None)))?;
    }
    ended(args, &*source, ran.end, &interrupt)
}

/// Opens the trace; says where it is not exact for one of the machines.
fn open(args: &Simulate, setups: &[Setup]) -> Result<Box<dyn Source + Send>, Failure> {
    let source = lookaside_trace::open(&args.trace.to_string_lossy())?;
    if source.info().sample_period_ns > 0 {
        return Err(Failure::bad(format_args!(
            "{}: holds samples, not every access; analyze --trace shows where the time went",
            args.trace.display()
        )));
    }
    for setup in setups {
        if let Err(why) = Filter::check(source.info(), setup) {
            eprintln!("lookaside: {}: {why}", args.trace.display());
        }
    }
    Ok(source)
}

/// Says how much of the trace was seen; the exit code.
fn ended(args: &Simulate, source: &dyn Source, end: End, interrupt: &Interrupt) -> Result<u8, Failure> {
    for damage in source.damage() {
        eprintln!(
            "lookaside: {}: bytes {}–{} left out: {}",
            args.trace.display(),
            damage.offset,
            damage.offset + damage.len,
            damage.reason
        );
    }
    match end {
        End::Complete if source.damage().is_empty() => Ok(0),
        End::Complete => Ok(NOT_CLEAN),
        End::Stopped => {
            eprintln!("lookaside: interrupted: the counts cover the trace up to there");
            Ok(interrupt.code())
        }
        End::Unreadable(e) => {
            eprintln!("lookaside: the counts cover the trace up to here: {e}");
            Ok(NOT_CLEAN)
        }
    }
}
