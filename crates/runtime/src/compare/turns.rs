//! The runs of a comparison, in turns, and the sum of them.

use std::cell::Cell;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;

use lookaside_stats::{median, ratio, SplitMix64, RESAMPLES};

use super::child::ChildProgram;
use super::comparison::{Comparison, EarlyEnd, VariantOutcome, VariantRun};
use super::energy::Meter;
use super::error::CompareError;
use super::made_words::{chosen_words, code_words, planned_words};
use super::plan::{ComparisonHooks, ComparisonPlan, Metric};
use super::preloaded_baker::PreloadedBaker;
use super::pressure::Stress;
use super::variant::gives_to_all;
use super::variant::Variant;
use super::watch::PageUse;
use super::watch::RunWatch;
use crate::hugepages::{self, AppliedPlan, PromotionSummary};

/// A variant's runs so far.
#[derive(Default)]
struct VariantRuns {
    runs: Vec<VariantRun>,
    pages: Option<PageUse>,
}

/// Who makes huge pages beside a run, and what was made.
enum Beside<A, B> {
    Chosen(A),
    Planned(B),
}

impl Beside<hugepages::HugePageWatch, hugepages::PlanApplier> {
    fn end(self) -> Beside<PromotionSummary, AppliedPlan> {
        match self {
            Self::Chosen(watch) => Beside::Chosen(watch.end()),
            Self::Planned(apply) => Beside::Planned(apply.end()),
        }
    }
}

/// The runs, in turns.
pub(super) struct InterleavedRuns<'a> {
    plan: &'a ComparisonPlan,
    hooks: &'a ComparisonHooks<'a>,
    meter: Option<Meter>,
    no_energy: Option<String>,
    stress: Option<Stress>,
    taken: Vec<VariantRuns>,
    notes: Vec<String>,
}

impl<'a> InterleavedRuns<'a> {
    /// None run yet.
    pub(super) fn new(
        plan: &'a ComparisonPlan,
        hooks: &'a ComparisonHooks<'a>,
        (meter, no_energy): (Option<Meter>, Option<String>),
        stress: Option<Stress>,
    ) -> Self {
        let taken = plan.variants.iter().map(|_| VariantRuns::default()).collect();
        Self { plan, hooks, meter, no_energy, stress, taken, notes: Vec::new() }
    }

    /// All rounds; why not all.
    pub(super) fn all(&mut self) -> Result<Option<EarlyEnd>, CompareError> {
        let mut rng = SplitMix64::new(self.plan.seed);
        for round in 0..u64::from(self.plan.warmups) + u64::from(self.plan.runs) {
            let counted = round.checked_sub(u64::from(self.plan.warmups)).map(|round| round as u32 + 1);
            let mut order: Vec<usize> = (0..self.plan.variants.len()).collect();
            rng.shuffle(&mut order);
            for (position, which) in order.into_iter().enumerate() {
                if (self.hooks.halt)() {
                    return Ok(Some(EarlyEnd::Interrupted));
                }
                if let Some(early) = self.one(which, counted, position as u32 + 1)? {
                    return Ok(Some(early));
                }
            }
        }
        Ok(None)
    }

    /// One run of a variant; `round` is `None` in a warm-up.
    fn one(&mut self, which: usize, round: Option<u32>, position: u32) -> Result<Option<EarlyEnd>, CompareError> {
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
        let tells = inside.filter(|_| matches!(variant, Variant::Inside(_)));
        let moves_code = inside.filter(|_| variant.is_text());
        tells.or(moves_code).map(PreloadedBaker::take_text);
        self.energy(); // what was used until now is not the program's
        let running = ChildProgram::start(&plan.command, variant, inside, captured)?;
        (self.hooks.started)(running.pid());
        let bake = match variant {
            Variant::Scan(settings) => Some(settings.clone()),
            _ => None,
        };
        let watch = match (&bake, round) {
            (None, Some(_)) => None,
            _ => {
                let watch = RunWatch::start(running.pid(), bake, round.is_none());
                Some(watch.map_err(|e| CompareError::Bad(format!("a thread: {e}"))))
            }
        };
        let pid = running.pid();
        let beside = match variant {
            Variant::Huge(settings) => plan
                .look
                .as_ref()
                .map(|look| hugepages::HugePageWatch::start(pid, *settings, Arc::clone(look)).map(Beside::Chosen)),
            Variant::Planned(file) => plan
                .plans
                .get(file)
                .map(|found| hugepages::PlanApplier::start(pid, Arc::clone(found)).map(Beside::Planned)),
            _ => None,
        };
        let beside = beside.transpose().map_err(|e| CompareError::Bad(format!("a thread: {e}")))?;
        let (beside, made) = (Cell::new(beside), Cell::new(None));
        let over = || {
            (self.hooks.ended)();
            // While the number is the program's.
            made.set(beside.take().map(Beside::end));
        };
        let ended = running.wait(&over, output, &plan.metric, self.meter.as_mut());
        let energy_joules = self.energy();
        let seen = watch.transpose()?.map(RunWatch::end).unwrap_or_default();
        let ended = ended?;
        if (self.hooks.halt)() {
            return Ok(Some(EarlyEnd::Interrupted));
        }
        let failed = |what: String| EarlyEnd::Failed { variant: variant.to_string(), run: run.clone(), what };
        if !ended.status.success() {
            return Ok(Some(failed(status_words(ended.status))));
        }
        if let Some(line) = self.stress.as_mut().and_then(Stress::ended) {
            return Ok(Some(EarlyEnd::Pressure(format!("{}: {line}", plan.pressure))));
        }
        let value = match (&plan.metric, ended.said) {
            (Metric::Wall, _) => ended.wall.as_secs_f64(),
            (Metric::User, _) => ended.user.as_secs_f64(),
            (Metric::Sys, _) => ended.sys.as_secs_f64(),
            (Metric::Output { .. }, Ok(Some(value))) => value,
            (Metric::Output { name, .. }, Ok(None)) => {
                return Ok(Some(failed(format!("no line of the output matches --metric: {name}"))))
            }
            (Metric::Output { .. }, Err(why)) => return Ok(Some(failed(why))),
        };
        if let Some(refused) = seen.refused {
            self.note(format!("{variant}: some memory was not baked: {refused}"));
        }
        let helped = seen.helped.or_else(|| tells.and_then(PreloadedBaker::take));
        if tells.is_some() && helped.is_none() {
            self.note(format!(
                "{variant}: the preloaded library sent no report in some run: a static or setuid \
                program does not load it, and a killed one can't report"
            ));
        }
        let code = moves_code.and_then(PreloadedBaker::take_code);
        let taken = &mut self.taken[which];
        let Some(round) = round else {
            taken.pages = seen.pages.or(taken.pages);
            return Ok(None);
        };
        let (hugepages, planned) = match made.take() {
            Some(Beside::Chosen(chosen)) => (Some(chosen), None),
            Some(Beside::Planned(planned)) => (None, Some(planned)),
            None => (None, None),
        };
        taken.runs.push(VariantRun {
            round,
            position,
            value,
            wall_seconds: ended.wall.as_secs_f64(),
            user_seconds: ended.user.as_secs_f64(),
            sys_seconds: ended.sys.as_secs_f64(),
            max_resident_bytes: ended.max_resident_bytes,
            energy_joules,
            helped,
            hugepages,
            planned,
            code,
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

    /// What they say.
    pub(super) fn comparison(mut self, early: Option<EarlyEnd>) -> Comparison {
        drop(self.stress.take());
        let plan = self.plan;
        let rounds = self.taken.iter().map(|taken| taken.runs.len()).min().unwrap_or(0);
        let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        self.judge_circumstances(rounds, cpus);
        let energy_of = |run: &VariantRun| run.energy_joules.unwrap_or(f64::NAN);
        let mut variants: Vec<VariantOutcome> = Vec::new();
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
            variants.push(VariantOutcome {
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
        let helped = self.plan.variants.iter().any(|variant| matches!(variant, Variant::Scan(_) | Variant::Inside(_)));
        if let Some(note) = crowding(stressors, helped, cpus) {
            self.note(note);
        }
        let shown = self.plan.variants.iter().zip(&self.taken);
        let mut notes = Vec::new();
        for (variant, taken) in shown {
            if let (Variant::Thp, Some(PageUse { huge_bytes: 0, .. })) = (variant, taken.pages) {
                notes.push(
                    "thp: no huge page was seen in the warm-up runs: the program was not helped by them (it \
                    may not use malloc, be static, or memory may be fragmented)"
                        .to_string(),
                );
            }
            let idle = taken.runs.iter().all(|run| run.helped.is_some_and(|helped| helped.touches == 0));
            match variant {
                Variant::Huge(_) | Variant::Planned(_) | Variant::Text(_) | Variant::PlannedText(_) => {
                    notes.extend(chosen_words(variant, &taken.runs));
                    notes.extend(planned_words(variant, &taken.runs));
                    notes.extend(code_words(variant, &taken.runs));
                    if gives_to_all() {
                        notes.push(format!(
                            "{variant}: the system gives huge pages to all (always), and this kernel \
                            can't keep them to those chosen (Linux 6.18 can), so it had more; as root: echo madvise > \
                            /sys/kernel/mm/transparent_hugepage/enabled"
                        ));
                    }
                }
                Variant::Scan(_) if idle && rounds > 0 => notes.push(format!(
                    "{variant}: nothing was baked in any run: no mapping had 4 MiB in small pages when it was looked \
                     at (0.1 s after the start, then after 0.3, 0.7, 1.5 s and each second)"
                )),
                Variant::Inside(_) if idle && rounds > 0 => {
                    notes.push(format!("{variant}: nothing was baked in any run"))
                }
                _ => {}
            }
        }
        for note in notes {
            self.note(note);
        }
    }
}

/// What it means that stressors, the program and a helper, if some variant has one, are more than there are CPUs.
fn crowding(stressors: u32, helped: bool, cpus: u32) -> Option<String> {
    let them = format!("{stressors} stressor{}", if stressors == 1 { "" } else { "s" });
    if stressors == 0 {
        None
    } else if stressors >= cpus {
        Some(format!(
            "{them} and the program share {cpus} CPUs: times show the scheduler too, not caches and memory alone"
        ))
    } else if helped && stressors + 1 >= cpus {
        Some(format!(
            "{them}, the program and a helper share {cpus} CPUs: the helper takes CPU time from the stressors, \
             which is part of its gain"
        ))
    } else {
        None
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
