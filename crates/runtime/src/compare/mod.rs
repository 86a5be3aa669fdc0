//! Does it help? The same program run in several ways, in turns, and what is significant of the difference.
//!
//! Each round runs every variant once, in an order drawn anew, so that what drifts (clocks, other guests, caches) falls on all
//! alike. Medians are compared by rounds: [`statistics::ratio`].

mod child;
mod energy;
pub mod pressure;
pub mod statistics;
mod variant;
mod watch;

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

use serde::Serialize;

use crate::bake::{Baker, Target};
use child::Running;
use energy::Meter;
use pressure::{Pressure, Stress};
use statistics::{median, ratio, Ratio, Rng, RESAMPLES};
pub use variant::Variant;
use watch::Watch;
pub use watch::{Helped, Pages};

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
    /// How variants are baked from inside; needed if there are such.
    pub inside: Option<Inside>,
}

/// The library that bakes from inside, and what it tells.
pub struct Inside {
    /// Its file.
    pub library: PathBuf,
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

/// Runs all variants in turns. What was found until it was halted, or until a program failed, is given too.
///
/// # Errors
/// What can't be done at all is found before the first program starts, but for programs that can't be started.
pub fn compare(plan: &Plan, hooks: &Hooks<'_>) -> Result<Comparison, CompareError> {
    check(plan)?;
    let (meter, no_energy) = match Meter::open(energy::POWERCAP.as_ref()) {
        Ok(meter) => (Some(meter), None),
        Err(why) => (None, Some(why)),
    };
    let stress = Stress::start(plan.pressure, hooks.halt)?;
    let mut turns = Turns { plan, hooks, meter, no_energy, stress, taken: Vec::new(), notes: Vec::new() };
    turns.taken.resize_with(plan.variants.len(), Taken::default);
    let early = turns.all()?;
    Ok(turns.comparison(early))
}

/// What cannot be is found here.
fn check(plan: &Plan) -> Result<(), CompareError> {
    if plan.variants.is_empty() || plan.runs == 0 {
        return Err(CompareError::Bad("nothing is to be run".into()));
    }
    for variant in &plan.variants {
        match variant {
            Variant::Thp => variant::check_thp()?,
            Variant::Scan(settings) => {
                // On this process, so that what the kernel lacks is known before a program runs.
                Baker::start_for(Target::Process(std::process::id()), settings, &[])
                    .map_err(|e| CompareError::Bad(format!("variant {variant}: {e}")))?;
            }
            _ if variant.needs_preload() && plan.inside.is_none() => {
                return Err(CompareError::Bad(format!("variant {variant}: needs the library that is preloaded")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A variant's runs so far.
#[derive(Default)]
struct Taken {
    runs: Vec<Run>,
    pages: Option<Pages>,
}

/// The runs, in turns.
struct Turns<'a> {
    plan: &'a Plan,
    hooks: &'a Hooks<'a>,
    meter: Option<Meter>,
    no_energy: Option<String>,
    stress: Option<Stress>,
    taken: Vec<Taken>,
    notes: Vec<String>,
}

impl Turns<'_> {
    /// All rounds; why not all.
    fn all(&mut self) -> Result<Option<Early>, CompareError> {
        let mut rng = Rng(self.plan.seed);
        for round in 0..u64::from(self.plan.warmups) + u64::from(self.plan.runs) {
            let counted = round.checked_sub(u64::from(self.plan.warmups)).map(|round| round as u32 + 1);
            for (position, which) in rng.order(self.plan.variants.len()).into_iter().enumerate() {
                if (self.hooks.halt)() {
                    return Ok(Some(Early::Interrupted));
                }
                if let Some(early) = self.one(which, counted, position as u32 + 1)? {
                    return Ok(Some(early));
                }
            }
        }
        Ok(None)
    }

    /// One run of a variant; `round` is `None` in a warm-up.
    fn one(&mut self, which: usize, round: Option<u32>, position: u32) -> Result<Option<Early>, CompareError> {
        let plan = self.plan;
        let variant = &plan.variants[which];
        let run = match round {
            Some(round) => format!("round {round} of {}", plan.runs),
            None => "warm-up".to_string(),
        };
        (self.hooks.progress)(&format!("{run}, {variant}"));
        let pipe = |e: std::io::Error| CompareError::Bad(format!("a pipe: {e}"));
        let (output, captured) = match plan.metric {
            Metric::Output { .. } => std::io::pipe().map(|(ours, its)| (Some(ours), Some(its))).map_err(pipe)?,
            _ => (None, None),
        };
        let inside = plan.inside.as_ref().filter(|_| variant.needs_preload());
        inside.and_then(Inside::take);
        self.energy(); // what was used until now is not the program's
        let running = Running::start(&plan.command, variant, inside, captured)?;
        (self.hooks.started)(running.pid());
        let bake = match variant {
            Variant::Scan(settings) => Some(settings.clone()),
            _ => None,
        };
        let watch = match (&bake, round) {
            (None, Some(_)) => None,
            _ => {
                let watch = Watch::start(running.pid(), bake, round.is_none());
                Some(watch.map_err(|e| CompareError::Bad(format!("a thread: {e}"))))
            }
        };
        let ended = running.wait(self.hooks.ended, output, &plan.metric, self.meter.as_mut());
        let energy_joules = self.energy();
        let seen = watch.transpose()?.map(Watch::end).unwrap_or_default();
        let ended = ended?;
        if (self.hooks.halt)() {
            return Ok(Some(Early::Interrupted));
        }
        let failed = |what: String| Early::Failed { variant: variant.to_string(), run: run.clone(), what };
        if !ended.status.success() {
            return Ok(Some(failed(status_words(ended.status))));
        }
        if let Some(line) = self.stress.as_mut().and_then(Stress::ended) {
            return Ok(Some(Early::Pressure(format!("{}: {line}", plan.pressure))));
        }
        let value = match (&plan.metric, ended.said) {
            (Metric::Wall, _) => ended.wall.as_secs_f64(),
            (Metric::User, _) => ended.user.as_secs_f64(),
            (Metric::Sys, _) => ended.sys.as_secs_f64(),
            (Metric::Output { .. }, Ok(Some(value))) => value,
            (Metric::Output { name, .. }, Ok(None)) => {
                return Ok(Some(failed(format!("no line of the output has what --metric asks for: {name}"))))
            }
            (Metric::Output { .. }, Err(why)) => return Ok(Some(failed(why))),
        };
        if let Some(refused) = seen.refused {
            self.note(format!("{variant}: not all was baked: {refused}"));
        }
        let helped = seen.helped.or_else(|| inside.and_then(Inside::take));
        if inside.is_some() && helped.is_none() {
            self.note(format!("{variant}: the preloaded library told nothing in some run: a program that is static or setuid does not load it, one that is killed does not tell"));
        }
        let taken = &mut self.taken[which];
        let Some(round) = round else {
            taken.pages = seen.pages.or(taken.pages);
            return Ok(None);
        };
        taken.runs.push(Run {
            round,
            position,
            value,
            wall_seconds: ended.wall.as_secs_f64(),
            user_seconds: ended.user.as_secs_f64(),
            sys_seconds: ended.sys.as_secs_f64(),
            max_resident_bytes: ended.max_resident_bytes,
            energy_joules,
            helped,
        });
        Ok(None)
    }

    /// Joules since the last look. A counter that fails once is given up.
    fn energy(&mut self) -> Option<f64> {
        match self.meter.as_mut()?.joules() {
            Ok(joules) => Some(joules),
            Err(why) => {
                self.meter = None;
                self.no_energy = Some(why);
                None
            }
        }
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn comparison(mut self, early: Option<Early>) -> Comparison {
        drop(self.stress.take());
        let plan = self.plan;
        let rounds = self.taken.iter().map(|taken| taken.runs.len()).min().unwrap_or(0);
        let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        self.judge_circumstances(rounds, cpus);
        let energy_of = |run: &Run| run.energy_joules.unwrap_or(f64::NAN);
        let mut variants: Vec<Outcome> = Vec::new();
        for (variant, taken) in plan.variants.iter().zip(self.taken) {
            let mut runs = taken.runs;
            let unfinished = if runs.len() > rounds { runs.pop() } else { None };
            let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
            let energy: Vec<f64> = runs.iter().map(energy_of).collect();
            // Base is the first, and not compared with itself.
            let (ratio, energy_ratio) = variants.first().map_or((None, None), |base| {
                let of_base: Vec<f64> = base.runs.iter().map(|run| run.value).collect();
                let (above, below) = if plan.metric.is_time() { (&of_base, &values) } else { (&values, &of_base) };
                let energy_of_base: Vec<f64> = base.runs.iter().map(energy_of).collect();
                let seed = plan.seed;
                (ratio(above, below, seed, RESAMPLES), ratio(&energy_of_base, &energy, seed, RESAMPLES))
            });
            variants.push(Outcome {
                name: variant.to_string(),
                what: variant.words().to_string(),
                median: median(&values),
                least: values.iter().copied().reduce(f64::min),
                most: values.iter().copied().reduce(f64::max),
                ratio,
                energy_joules: median(&energy).filter(|joules| joules.is_finite()),
                energy_ratio,
                pages: taken.pages,
                unfinished,
                runs,
            });
        }
        Comparison {
            version: env!("CARGO_PKG_VERSION").into(),
            command: plan.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            metric: plan.metric.name().into(),
            is_time: plan.metric.is_time(),
            pressure: plan.pressure.to_string(),
            seed: plan.seed,
            rounds_wanted: plan.runs,
            rounds: rounds as u32,
            warmups: plan.warmups,
            cpus,
            variants,
            no_energy: self.no_energy,
            notes: self.notes,
            early,
        }
    }

    /// Notes what makes runs other than they seem.
    fn judge_circumstances(&mut self, rounds: usize, cpus: u32) {
        let stressors = self.plan.pressure.stressors();
        if stressors > 0 && stressors >= cpus {
            self.note(format!(
                "{stressors} stressors and the program share {cpus} CPUs: times are the scheduler's doing too, not of caches and memory alone"
            ));
        }
        let shown = self.plan.variants.iter().zip(&self.taken);
        let mut notes = Vec::new();
        for (variant, taken) in shown {
            if let (Variant::Thp, Some(Pages { huge_bytes: 0, .. })) = (variant, taken.pages) {
                notes.push("thp: no huge page was seen in the warm-up runs: the program was not helped by them (it may not use malloc, be static, or memory may be fragmented)".to_string());
            }
            let idle = taken.runs.iter().all(|run| run.helped.is_some_and(|helped| helped.touches == 0));
            match variant {
                Variant::Scan(_) if idle && rounds > 0 => notes.push(format!("{variant}: nothing was baked in any run: no mapping had 4 MiB in small pages when it was looked at (0.1 s after the start, then after 0.3, 0.7, 1.5 s and each second)")),
                Variant::Inside(_) if idle && rounds > 0 => notes.push(format!("{variant}: nothing was baked in any run")),
                _ => {}
            }
        }
        for note in notes {
            self.note(note);
        }
    }
}

/// How a program ended, in words.
fn status_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the program failed with exit code {code}; run it alone to see why"),
        (_, Some(signal)) => format!("the program was killed by signal {signal}"),
        _ => "the program failed".to_string(),
    }
}

#[cfg(test)]
mod tests;
