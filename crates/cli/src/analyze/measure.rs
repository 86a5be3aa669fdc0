//! `analyze --measure`: the program run plainly, with and without huge pages, by the runs of `compare`.

use std::collections::BTreeMap;

use lookaside_capture::{inspect_program, ProgramIsa};
use lookaside_runtime::compare::pressure::Pressure;
use lookaside_runtime::compare::{
    check, Comparison, ComparisonPlan, EarlyEnd, Metric, Variant, VariantOutcome, VariantRun,
};
use lookaside_stats::median;
use lookaside_techniques::huge_gain::{MeasuredGain, TimeRatio};

use crate::args::analyze::AnalyzeArgs;
use crate::compare::in_turns::in_turns;
use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;

/// Rounds that don't count, before those that do: as `compare` has it.
const WARMUPS: u32 = 1;

/// What is to be run. What can't be is found here, before anything takes time.
pub fn plan(args: &AnalyzeArgs, rounds: u32) -> Result<ComparisonPlan, Failure> {
    let other = match inspect_program(&args.command)?.isa {
        ProgramIsa::Native => None,
        ProgramIsa::Foreign(isa) => Some(format!("for {isa}")),
        ProgramIsa::Unknown(machine) => Some(format!("for ELF machine {machine}")),
    };
    if let Some(other) = other {
        let name = args.command.first().map(|name| name.to_string_lossy()).unwrap_or_default();
        return Err(Failure::bad(format_args!(
            "--measure: {name} is {other} and can't be timed on this machine; leave --measure out"
        )));
    }
    let plan = ComparisonPlan {
        command: args.command.clone(),
        variants: vec![Variant::Base, Variant::Thp],
        runs: rounds,
        warmups: WARMUPS,
        // What is modelled is the program's own code, on all its threads: neither the kernel's nor waiting.
        metric: Metric::User,
        pressure: Pressure::None,
        seed: args.machine.seed,
        inside: None,
        look: None,
        plans: BTreeMap::new(),
    };
    check(&plan)?;
    Ok(plan)
}

/// Runs it; `had_input`: the analysed run had something to read. What was found, if a round was complete; and what went
/// wrong, for when the analysis is told: it is in the notes too.
pub fn run(
    plan: &ComparisonPlan,
    interrupt: &Interrupt,
    had_input: bool,
    notes: &mut Vec<String>,
) -> (Option<MeasuredGain>, Option<Failure>) {
    let found = match in_turns(plan, interrupt, "measuring") {
        Ok(found) => found,
        Err(e) => {
            notes.push(format!("not measured: {e}"));
            return (None, Some(e.into()));
        }
    };
    let wrong = found.early.as_ref().map(|early| {
        let whole = found.rounds > 0;
        let what = if whole { "measured in part only" } else { "not measured" };
        notes.push(format!("{what}: {early}"));
        Failure {
            line: format!("--measure: {early}"),
            code: if *early == EarlyEnd::Interrupted { interrupt.code() } else { NOT_CLEAN },
        }
    });
    notes.extend(found.notes.iter().map(|note| format!("measured: {note}")));
    if had_input {
        notes.push(
            "measured: the analysed run had a file or pipe as its standard input, these runs an empty one: if the program \
             reads it, they did other work; name the input in an argument"
                .into(),
        );
    }
    ((found.rounds > 0).then(|| summary(&found)), wrong)
}

/// The comparison as an analysis has it.
fn summary(found: &Comparison) -> MeasuredGain {
    let pages = found.variants.get(1).and_then(|huge| huge.pages).filter(|pages| pages.resident_bytes > 0);
    MeasuredGain {
        rounds: found.rounds,
        cpu: time(found, |run| run.user_seconds + run.sys_seconds),
        user: time(found, |run| run.user_seconds),
        wall: time(found, |run| run.wall_seconds),
        huge_share: pages.map(|pages| pages.huge_bytes as f64 / pages.resident_bytes as f64),
    }
}

/// One time of both variants.
fn time(found: &Comparison, seconds: fn(&VariantRun) -> f64) -> Option<TimeRatio> {
    let [base, huge] = &found.variants[..] else { return None };
    let ratio = found.time_ratio(huge, seconds)?;
    let middle = |of: &VariantOutcome| median(of.runs.iter().map(seconds));
    Some(TimeRatio {
        base_seconds: middle(base)?,
        huge_seconds: middle(huge)?,
        ratio: ratio.value,
        low: ratio.low,
        high: ratio.high,
        significant: ratio.significant,
    })
}
