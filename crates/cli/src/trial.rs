//! The `trial` command: does it help the process that runs?

pub mod marks;
mod metric;
mod program;
mod targets;

use std::sync::Arc;

use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::{spinner_unless, style};
use lookaside_runtime::bake::Settings;
use lookaside_runtime::hugepages::PlanFinder;
use lookaside_runtime::trial::{self, Decision, Journal, TrialLever, TrialMetric, TrialReport, TrialRequest};
use lookaside_views::json;
use lookaside_views::trial::{view, Trials};

use crate::args::trial::{TrialArgs, TrialOptions, WhatArg};
use crate::clock_sampler::ClockSampler;
use crate::plan::file;
use crate::undo::left_over;
use lookaside_cli::say::say;
use marks::DebugRegisters;
use program::TrialProgram;

/// Tries, reports, keeps or takes back. With a program of its own: that one's exit code.
pub fn run(args: &TrialArgs) -> Result<u8, Failure> {
    // Bad input is found before anything takes time.
    let metric = metric::metric(&args.options)?;
    let levers = levers(&args.options)?;
    args.output.check()?;
    let journal = Journal::open()?;
    left_over(&journal).iter().for_each(say);
    let mut program = match args.command.is_empty() {
        true => None,
        false => Some(TrialProgram::start(&args.command)?),
    };
    let interrupt = Interrupt::install()?;
    if let Some(program) = &program {
        interrupt.watch(program.control(), true);
    }
    let tried = try_all(args, &levers, &metric, &journal, program.as_ref(), &interrupt);
    let tried = match (tried, &mut program) {
        // Nothing was applied yet.
        (Err(_), None) if interrupt.asked() => return Ok(interrupt.code()),
        // The program goes on, whatever became of the trial.
        (Err(failure), Some(program)) => {
            say(&failure.line);
            return program.wait();
        }
        (tried, _) => tried?,
    };
    let code = code(&tried, &interrupt);
    let trials = Trials { trials: tried };
    args.output.write(&view(&trials), &json::render(&trials), &style(None))?;
    match &mut program {
        Some(program) => program.wait(),
        None => Ok(code),
    }
}

/// Exit code by what became of all trials.
fn code(tried: &[TrialReport], interrupt: &Interrupt) -> u8 {
    let is_clean = |trial: &TrialReport| trial.ended.is_none() && trial.decision != Decision::NotAllTakenBack;
    match (interrupt.asked(), tried.iter().all(is_clean)) {
        (true, _) => interrupt.code(),
        (_, true) => 0,
        _ => NOT_CLEAN,
    }
}

fn try_all(
    args: &TrialArgs,
    levers: &[TrialLever],
    metric: &TrialMetric,
    journal: &Journal,
    program: Option<&TrialProgram>,
    interrupt: &Interrupt,
) -> Result<Vec<TrialReport>, Failure> {
    let stop = || interrupt.asked();
    let pids = match program {
        Some(program) => program.when_set_up(&stop)?,
        None => targets::pids(args)?,
    };
    let mut tried = Vec::new();
    for lever in levers.iter().filter(|_| !stop()) {
        let request = request(&args.options, pids.clone(), lever.clone(), metric.clone(), &stop);
        request.check()?;
        let bar = spinner_unless("trying", program.is_some());
        let shown = |what: &str| bar.set_message(what.to_string());
        let report = trial::run(&TrialRequest { progress: &shown, ..request }, journal);
        bar.finish_and_clear();
        tried.push(report?);
    }
    Ok(tried)
}

/// What is to be tried, one after the other.
fn levers(options: &TrialOptions) -> Result<Vec<TrialLever>, Failure> {
    let plan = options.plan.as_ref().map(|path| file::load(path)).transpose()?;
    let huge = TrialLever::HugePages {
        budget: options.budget as usize,
        memory_bytes: options.memory << 20,
        by: options.by.map(Into::into),
        plan: plan.map(|plan| Arc::new(plan) as Arc<dyn PlanFinder>),
    };
    let bake = || -> Result<TrialLever, Failure> { Ok(TrialLever::Bake(options.settings.parse::<Settings>()?)) };
    Ok(match options.what {
        WhatArg::Hugepages => vec![huge],
        WhatArg::Bake => vec![bake()?],
        WhatArg::All => vec![huge, bake()?],
    })
}

/// A trial of these processes as the options have it.
pub fn request<'a>(
    options: &TrialOptions,
    pids: Vec<u32>,
    lever: TrialLever,
    metric: TrialMetric,
    stop: &'a dyn Fn() -> bool,
) -> TrialRequest<'a> {
    TrialRequest {
        pids,
        lever,
        metric,
        time: options.time,
        look: options.look,
        phase: options.phase,
        settle: options.settle,
        precision: options.precision / 100.0,
        most_stall: options.max_stall,
        only_measure: options.measure_only,
        seed: options.seed,
        sampler: Arc::new(ClockSampler),
        marks: Arc::new(DebugRegisters),
        stop,
        progress: &|_| {},
    }
}
