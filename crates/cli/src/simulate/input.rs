//! The trace that `simulate` reads, and what is said when it ends.

use lookaside_engine::{Filter, RunEnd, Setup};
use lookaside_trace::Source;

use crate::args::simulate::SimulateArgs;
use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::say::say;

/// Opens the trace; says where it is not exact for one of the machines.
pub fn open(args: &SimulateArgs, setups: &[Setup]) -> Result<Box<dyn Source + Send>, Failure> {
    let source = lookaside_trace::open(&args.trace.to_string_lossy())?;
    if source.info().sample_period_ns > 0 {
        return Err(Failure::bad(format_args!(
            "{}: holds samples, not every access; analyze --trace shows where the time went",
            args.trace.display()
        )));
    }
    for setup in setups {
        if let Err(why) = Filter::check(source.info(), setup) {
            say(format_args!("{}: {why}", args.trace.display()));
        }
    }
    Ok(source)
}

/// Says how much of the trace was seen; the exit code.
pub fn ended(args: &SimulateArgs, source: &dyn Source, end: RunEnd, interrupt: &Interrupt) -> Result<u8, Failure> {
    for damage in source.damage() {
        say(format_args!(
            "{}: bytes {}–{} left out: {}",
            args.trace.display(),
            damage.offset,
            damage.offset + damage.len,
            damage.reason
        ));
    }
    match end {
        RunEnd::Complete if source.damage().is_empty() => Ok(0),
        RunEnd::Complete => Ok(NOT_CLEAN),
        RunEnd::Stopped => {
            say("interrupted: the counts cover the trace up to there");
            Ok(interrupt.code())
        }
        RunEnd::Unreadable(e) => {
            say(format_args!("the counts cover the trace up to here: {e}"));
            Ok(NOT_CLEAN)
        }
    }
}
