//! Does it help? The same program run in several ways, in turns, and what is significant of the difference.
//!
//! Each round runs every variant once, in an order drawn anew, so that what drifts (clocks, other guests, caches) falls on all
//! alike. Medians are compared by rounds: [`lookaside_stats::ratio`].

mod child;
mod energy;
pub mod pressure;
mod turns;
mod variant;
mod watch;
mod within;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use lookaside_stats::{ratio, Ratio, RESAMPLES};
use serde::Serialize;

use crate::bake::{Baker, Target};
use crate::hugepages::{self, Find, Followed, Look, Planned};
use energy::Meter;
use pressure::{Pressure, Stress};
use turns::Turns;
pub use variant::Variant;
pub use watch::{Helped, Pages};
pub use within::in_turns;

/// Why there is no comparison.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// Bad input, or something that is missing: what, and what to do.
    #[error("{0}")]
    Bad(String),
    /// The program could not be started.
    #[error("{program}: {why}")]
    Start {
        /// Its name.
        program: String,
        /// Why.
        why: String,
        /// Exit code that a shell would give: 127 not found, 126 else.
        code: u8,
    },
}

/// Reads a number out of a line of output: `None` if it is not the line, an error if it is and holds no number.
pub type ReadLine = Box<dyn Fn(&str) -> Result<Option<f64>, String>>;

/// What is compared.
pub enum Metric {
    /// Seconds from start to end.
    Wall,
    /// Seconds of CPU in user mode, all threads, as the kernel counts them.
    User,
    /// Seconds of CPU in the kernel.
    Sys,
    /// A number in the program's output; the last one counts.
    Output {
        /// How it was asked for.
        name: String,
        /// Finds it.
        read: ReadLine,
    },
}

impl Metric {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Wall => "wall time",
            Self::User => "user time",
            Self::Sys => "system time",
            Self::Output { name, .. } => name,
        }
    }

    /// It is a time, in seconds: less is better, and ratios are base ÷ variant.
    pub fn is_time(&self) -> bool {
        !matches!(self, Self::Output { .. })
    }
}

/// What to compare.
pub struct Plan {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Ways to run it, the first being what the others are compared with.
    pub variants: Vec<Variant>,
    /// Rounds that count.
    pub runs: u32,
    /// Rounds before them that don't.
    pub warmups: u32,
    /// What is compared.
    pub metric: Metric,
    /// What runs beside.
    pub pressure: Pressure,
    /// Of the orders and resamples.
    pub seed: u64,
    /// The library for variants that [need it](Variant::needs_preload).
    pub inside: Option<Inside>,
    /// How programs are sampled; needed if huge pages are to be chosen.
    pub look: Option<Arc<dyn Look>>,
    /// The plans of huge pages that variants name, by file.
    pub plans: BTreeMap<PathBuf, Arc<dyn Find>>,
}

/// The library that bakes from inside, or makes huge pages there, and what it tells of baking.
pub struct Inside {
    /// Its file.
    pub file: PathBuf,
    /// A file for its report (`LOOKASIDE_BAKE_STATS`); emptied before each run.
    pub report: PathBuf,
    /// Reads a report; `None` if no process wrote one.
    pub read: fn(&str) -> Option<Helped>,
}

impl Inside {
    /// What the library did since the last call.
    fn take(&self) -> Option<Helped> {
        let text = std::fs::read_to_string(&self.report).unwrap_or_default();
        let _ = std::fs::write(&self.report, "");
        (self.read)(&text)
    }
}

/// What happens while programs run.
pub struct Hooks<'a> {
    /// Whether to stop.
    pub halt: &'a dyn Fn() -> bool,
    /// A program of this number has started.
    pub started: &'a dyn Fn(u32),
    /// It has ended; its number is not yet given to another.
    pub ended: &'a dyn Fn(),
    /// What is going on.
    pub progress: &'a dyn Fn(&str),
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// Which round, from 1.
    pub round: u32,
    /// Which in its round, from 1.
    pub position: u32,
    /// The metric.
    pub value: f64,
    /// Seconds from start to end.
    pub wall_seconds: f64,
    /// Seconds of CPU in user mode: the program, all its threads, and those it waited for.
    pub user_seconds: f64,
    /// Seconds of CPU in the kernel.
    pub sys_seconds: f64,
    /// Most resident bytes of a process of it; at least what the comparing program had itself when it started it.
    pub max_resident_bytes: u64,
    /// Joules of all CPU packages meanwhile.
    pub energy_joules: Option<f64>,
    /// What baked it.
    pub helped: Option<Helped>,
    /// Huge pages that were chosen and made while it ran.
    pub hugepages: Option<Followed>,
    /// Huge pages of a plan that were made while it ran.
    pub planned: Option<Planned>,
}

/// A variant's runs and what they say. All but `unfinished` is of complete rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Its name, as it is written in a list of variants.
    pub name: String,
    /// What it is.
    pub what: String,
    /// Its runs, by round.
    pub runs: Vec<Run>,
    /// Its run of the round that was not finished.
    pub unfinished: Option<Run>,
    /// Median of the metric.
    pub median: Option<f64>,
    /// Least.
    pub least: Option<f64>,
    /// Most.
    pub most: Option<f64>,
    /// Medians' ratio to the base: base ÷ variant of a time, variant ÷ base of other numbers.
    pub ratio: Option<Ratio>,
    /// Median of the energy, in joules.
    pub energy_joules: Option<f64>,
    /// Base's median energy ÷ this one's.
    pub energy_ratio: Option<Ratio>,
    /// Pages seen in the warm-up runs, at their most.
    pub pages: Option<Pages>,
}

/// Why it ended before all rounds were run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Early {
    /// By a signal.
    #[error("interrupted")]
    Interrupted,
    /// The program failed, or did not say what was asked for.
    #[error("{variant}, {run}: {what}")]
    Failed {
        /// Which variant.
        variant: String,
        /// Which run of it.
        run: String,
        /// What happened.
        what: String,
    },
    /// The pressure ended.
    #[error("pressure {0}")]
    Pressure(String),
}

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Lookaside's version.
    pub version: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The metric's name.
    pub metric: String,
    /// It is a time in seconds, and ratios are base ÷ variant; else they are variant ÷ base.
    pub is_time: bool,
    /// What ran beside.
    pub pressure: String,
    /// Seed of the orders and resamples.
    pub seed: u64,
    /// Rounds that were asked for.
    pub rounds_wanted: u32,
    /// Rounds in which every variant ran.
    pub rounds: u32,
    /// Rounds before them that don't count.
    pub warmups: u32,
    /// CPUs that this program may use.
    pub cpus: u32,
    /// The variants, base first.
    pub variants: Vec<Outcome>,
    /// Why there is no energy.
    pub no_energy: Option<String>,
    /// What has to be known to judge it.
    pub notes: Vec<String>,
    /// Why it ended early.
    pub early: Option<Early>,
}

impl Comparison {
    /// Base ÷ variant of a time of the runs, whatever was compared: medians over the complete rounds, with the same draws as
    /// the variant's own ratio. `None` if there is no round, or a time that is not above 0.
    pub fn time_ratio(&self, variant: &Outcome, seconds: impl Fn(&Run) -> f64) -> Option<Ratio> {
        let times = |outcome: &Outcome| outcome.runs.iter().map(&seconds).collect::<Vec<f64>>();
        ratio(&times(self.variants.first()?), &times(variant), self.seed, RESAMPLES)
    }
}

/// Runs all variants in turns. What was found until it was halted, or until a program failed, is given too.
///
/// # Errors
/// What can't be done at all is found before the first program starts, but for programs that can't be started.
pub fn compare(plan: &Plan, hooks: &Hooks<'_>) -> Result<Comparison, CompareError> {
    check(plan)?;
    let (meter, no_energy) = match Meter::open(&lookaside_host::powercap_folder()) {
        Ok(meter) => (Some(meter), None),
        Err(why) => (None, Some(why)),
    };
    let stress = Stress::start(plan.pressure, hooks.halt)?;
    let mut turns = Turns::new(plan, hooks, (meter, no_energy), stress);
    let early = turns.all()?;
    Ok(turns.comparison(early))
}

/// Finds what cannot be, before anything is run: [`compare`] does it too.
///
/// # Errors
/// What is missing, or switched off, or says nothing; and what to do.
pub fn check(plan: &Plan) -> Result<(), CompareError> {
    if plan.variants.is_empty() || plan.runs == 0 {
        return Err(CompareError::Bad("nothing is to be run".into()));
    }
    for variant in &plan.variants {
        let bad = |e: String| CompareError::Bad(format!("variant {variant}: {e}"));
        match variant {
            Variant::Thp => variant::check_thp()?,
            Variant::Scan(settings) => {
                // On this process, so that what the kernel lacks is known before a program runs.
                Baker::start_for(Target::Process(std::process::id()), settings, &[]).map_err(|e| bad(e.to_string()))?;
            }
            Variant::Huge(_) => {
                hugepages::way().map_err(|e| bad(e.to_string()))?;
                if plan.look.is_none() {
                    return Err(bad("needs a sampler".into()));
                }
            }
            Variant::Planned(file) => {
                hugepages::way().map_err(|e| bad(e.to_string()))?;
                if !plan.plans.contains_key(file) {
                    return Err(bad("needs the plan".into()));
                }
            }
            _ => {}
        }
        if variant.needs_preload() && plan.inside.is_none() {
            return Err(bad("needs the library that is preloaded".into()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
