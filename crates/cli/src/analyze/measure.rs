//! `analyze --measure`: the program run plainly, with and without huge pages, by the runs of `compare`.

use std::collections::BTreeMap;

use lookaside_capture::{inspect_program, ProgramIsa};
use lookaside_engine::Outcome;
use lookaside_runtime::compare::pressure::Pressure;
use lookaside_runtime::compare::{
    check, Comparison, ComparisonPlan, EarlyEnd, Metric, Variant, VariantOutcome, VariantRun,
};
use lookaside_runtime::hugepages::{self, CollapseSide};
use lookaside_stats::median;
use lookaside_techniques::huge_gain::{MeasuredGain, TimeRatio};
use lookaside_techniques::hugepages::mosaic::{MosaicGain, MosaicWindow};
use tempfile::NamedTempFile;

use super::mosaic::MosaicPlan;
use crate::args::analyze::{AnalyzeArgs, MeasureArg};
use crate::compare::in_turns::in_turns;
use crate::compare::preloaded;
use crate::preload::library::HUGEPAGES_INSTEAD;
use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::interrupt::Interrupt;

/// Rounds that don't count, before those that do: as `compare` has it.
const WARMUPS: u32 = 1;

/// What is to be run.
pub struct MeasurePlan {
    comparison: ComparisonPlan,
    mosaic: Option<MosaicPlan>,
    /// Where the preloaded library would report to, while there is one.
    _report: Option<NamedTempFile>,
}

/// What was measured.
#[derive(Default)]
pub struct Measured {
    /// With and without huge pages; `None` = no round was complete.
    pub gain: Option<MeasuredGain>,
    /// With parts of the memory in huge pages.
    pub mosaic: Option<MosaicGain>,
    /// What went wrong, for when the analysis is told: it is in the notes too.
    pub failure: Option<Failure>,
}

/// What is to be run. What can't be is found here, before anything takes time.
pub fn plan(args: &AnalyzeArgs, wanted: MeasureArg) -> Result<MeasurePlan, Failure> {
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
    let (mut inside, mut report) = (None, None);
    if wanted.mosaic {
        let side = hugepages::collapse_side();
        if side.map_err(|e| Failure::bad(format_args!("--measure=mosaic: {e}")))? == CollapseSide::Inside {
            let file = NamedTempFile::new().map_err(|e| Failure::bad(format_args!("a temporary file: {e}")))?;
            inside = Some(preloaded(&args.command, file.path(), HUGEPAGES_INSTEAD)?);
            report = Some(file);
        }
    }
    let comparison = ComparisonPlan {
        command: args.command.clone(),
        variants: vec![Variant::Base, Variant::Thp],
        runs: wanted.rounds,
        warmups: WARMUPS,
        // What is modelled is the program's own code, on all its threads: neither the kernel's nor waiting.
        metric: Metric::User,
        pressure: Pressure::None,
        seed: args.machine.seed,
        inside,
        look: None,
        plans: BTreeMap::new(),
    };
    check(&comparison)?;
    Ok(MeasurePlan { comparison, mosaic: None, _report: report })
}

impl MeasurePlan {
    /// Adds runs in which a part of these windows, dearest first, is huge.
    pub fn add_mosaics(&mut self, windows: Vec<MosaicWindow>, seed: u64) {
        let mosaic = MosaicPlan::new(windows, seed);
        let (variants, plans) = mosaic.variants();
        self.comparison.variants.extend(variants);
        self.comparison.plans = plans;
        self.mosaic = Some(mosaic);
    }

    /// Runs it; `had_input`: the analysed run had something to read; `outcome`: what it cost in the model.
    pub fn run(&self, interrupt: &Interrupt, had_input: bool, outcome: &Outcome, notes: &mut Vec<String>) -> Measured {
        let found = match in_turns(&self.comparison, interrupt, "measuring") {
            Ok(found) => found,
            Err(e) => {
                notes.push(format!("not measured: {e}"));
                return Measured { failure: Some(e.into()), ..Measured::default() };
            }
        };
        let failure = found.early.as_ref().map(|early| {
            let whole = found.rounds > 0;
            let what = if whole { "measured in part only" } else { "not measured" };
            notes.push(format!("{what}: {early}"));
            Failure {
                line: format!("--measure: {early}"),
                code: if *early == EarlyEnd::Interrupted { interrupt.code() } else { NOT_CLEAN },
            }
        });
        // What each mosaic was made of, its table says.
        let of_mosaic = |note: &&String| self.mosaic.is_some() && note.starts_with("hugepages:");
        notes.extend(found.notes.iter().filter(|note| !of_mosaic(note)).map(|note| format!("measured: {note}")));
        if had_input {
            notes.push(
                "measured: the analysed run had a file or pipe as its standard input, these runs an empty one: if the \
                 program reads it, they did other work; name the input in an argument"
                    .into(),
            );
        }
        if found.rounds == 0 {
            return Measured { failure, ..Measured::default() };
        }
        notes.extend(self.mosaic.as_ref().and_then(|_| MosaicPlan::note(&found)));
        let mosaic = self.mosaic.as_ref().map(|mosaic| mosaic.gain(&found, outcome)).transpose();
        let mosaic = mosaic.unwrap_or_else(|why| {
            notes.push(format!("mosaic: can't tell: {why}"));
            None
        });
        Measured { gain: Some(summary(&found)), mosaic, failure }
    }
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

/// One time of the first two variants: with small pages, and with huge ones.
fn time(found: &Comparison, seconds: fn(&VariantRun) -> f64) -> Option<TimeRatio> {
    let [base, huge, ..] = &found.variants[..] else { return None };
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
