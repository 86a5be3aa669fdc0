//! `lookaside simulate`: the engine by itself.

use std::ops::ControlFlow;

use lookaside_engine::{run_many, Detail, Setup, WalkModel};
use lookaside_views::json;
use lookaside_views::simulate::{view, Simulation};

use crate::args::simulate::SimulateArgs;
use crate::setups::{self, ChosenSetup};
use lookaside_cli::exit::Failure;
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::{short_count, spinner, style};
use lookaside_cli::say::say;

mod bake;
mod input;

use input::{ended, open};

/// Runs the command. Exit code 1 when a part of the trace could not be read.
pub fn run(args: &SimulateArgs) -> Result<u8, Failure> {
    let helper = bake::asked(args)?;
    args.output.check()?;
    let chosen = setups::setups(&args.machine)?;
    if args.machine.machine.is_empty() {
        for ChosenSetup { setup, reason, .. } in &chosen {
            say(format_args!("machine {}: {reason}", setup.machine.name));
        }
    }
    let mut setups: Vec<Setup> = chosen.into_iter().map(|chosen| chosen.setup).collect();
    for setup in &mut setups {
        if args.count_only {
            setup.walks = WalkModel::CountOnly;
        }
        if !args.full {
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
    let simulation = Simulation { outcomes: ran.outcomes };
    args.output.write(&view(&simulation.outcomes), &json::render(&simulation), &style(None))?;
    ended(args, &*source, ran.end, &interrupt)
}
