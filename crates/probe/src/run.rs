//! The whole probe: every step in its order, with what is known so far if it is stopped.

use std::time::{Duration, Instant};

use lookaside_machine::PageSize;
use serde::Serialize;

use crate::again::WORTH_WHILE;
use crate::bench::{Bench, Halt};
use crate::budget::Budget;
use crate::claims::Claim;
use crate::effects::{effects, Effects};
use crate::finding::Finding;
use crate::hierarchy::{self, alike, Caches, Covers, Spread, WalkCaches, Walks};
use crate::metal::Metal;
use crate::passes::{twice, SAME_MISS};
use crate::pick::Levels;
use crate::pmu::{counters, usable, Counted, EVENTS};
use crate::sizes::{gigantic_pages, large_pages, GiganticPages, LargePages};
use crate::tlb::{first_level, second_level, FoundLevel, Geometry};
use crate::tlb::{outgrown, policy, Policy, Trial};

/// A part of the probe that can be asked for alone. Each does what it needs of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// The first level: entries, ways, sets, index.
    L1,
    /// The second level.
    L2,
    /// Replacement policies of the levels.
    Policy,
    /// What else fills and empties the levels: prefetches, stores, the system, other CPUs.
    Effects,
    /// Hardware counters, where there are some.
    Counters,
    /// Data caches and memory.
    Caches,
    /// What walks cost by where their tables lie.
    Walks,
    /// How many entries above the leaf's are at hand for walks, and what one costs that is not.
    WalkCaches,
    /// What one entry covers: contiguous pages, huge pages; a second stage of translation.
    Covers,
    /// What loads cost that lie far apart, and in a row.
    Spread,
    /// The levels for 2 MiB and 1 GiB pages.
    Large,
}

impl Step {
    /// All, in the order in which they are done.
    pub(crate) const ALL: [Step; 11] = [
        Self::L1,
        Self::L2,
        Self::Policy,
        Self::Effects,
        Self::Counters,
        Self::Caches,
        Self::Walks,
        Self::WalkCaches,
        Self::Covers,
        Self::Spread,
        Self::Large,
    ];

    /// Parts that each have a share of the time.
    pub(crate) fn parts(self) -> usize {
        if matches!(self, Self::Policy | Self::Large) {
            2
        } else {
            1
        }
    }

    /// How much of the time a part may take, beside the others' weights: by what they take on the development machine
    /// where neighbours are busy.
    pub(crate) fn weight(self) -> u32 {
        match self {
            Self::L1 => 4,
            // Beside a neighbour that takes its entries; else it needs a tenth of that.
            Self::L2 => 16,
            Self::Policy | Self::Walks | Self::WalkCaches => 2,
            Self::Caches | Self::Effects | Self::Spread => 3,
            Self::Counters | Self::Covers | Self::Large => 1,
        }
    }

    /// The steps without whose results it cannot be done.
    pub(crate) fn needs(self) -> &'static [Step] {
        match self {
            Self::L1 | Self::Caches => &[],
            Self::L2 => &[Self::L1],
            Self::Policy | Self::Counters | Self::Effects => &[Self::L1, Self::L2],
            Self::Walks | Self::WalkCaches => &[Self::L1, Self::L2, Self::Caches],
            Self::Covers | Self::Spread => &[Self::L1, Self::L2, Self::Caches, Self::Walks],
            Self::Large => &[Self::L1, Self::L2, Self::Caches, Self::Walks, Self::Covers],
        }
    }

    /// Left out by [`Options::quick`].
    fn is_slow(self) -> bool {
        !matches!(self, Self::L1 | Self::L2 | Self::Counters)
    }
}

/// What to do.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The only step wanted; `None` = all.
    pub only: Option<Step>,
    /// Leave out what takes long: policies, effects, data caches, walks, loads far apart.
    pub quick: bool,
    /// Chooses pages and orders; the same seed makes the same experiments.
    pub seed: u64,
    /// How long it may take, shared out among the steps; `None` = as long as it needs.
    pub time: Option<Duration>,
}

impl Options {
    /// Whether a step is to be done: the one that is asked for and what that needs, or all.
    pub fn wants(&self, step: Step) -> bool {
        match self.only {
            None => !(self.quick && step.is_slow()),
            Some(only) => only == step || only.needs().contains(&step),
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Seed of the experiments.
    pub seed: u64,
    /// Core cycles in a tick of the timer, by a chain of dependent additions.
    pub cycles_per_tick: f64,
    /// The CPU measured, where there is one.
    pub cpu: Option<usize>,
    /// What limits what can be found here.
    pub remarks: Vec<String>,
    /// Ticks of the timer in a second, where that is known.
    pub ticks_per_second: Option<f64>,
    /// Levels, first level first.
    pub levels: Vec<LevelReport>,
    /// Data caches and memory; `None` = not asked for.
    pub caches: Option<Caches>,
    /// Costs of translations by where their tables lie; `None` = not asked for.
    pub walks: Option<Walks>,
    /// Entries above the leaf's that are at hand for walks; `None` = not asked for.
    pub walk_caches: Option<WalkCaches>,
    /// What entries cover, and the second stage; `None` = not asked for.
    pub covers: Option<Covers>,
    /// What else fills and empties the levels; `None` = not asked for.
    pub effects: Option<Effects>,
    /// Loads far apart and in a row; `None` = not asked for.
    pub spread: Option<Spread>,
    /// The levels for 2 MiB pages; `None` = not asked for.
    pub large: Option<LargePages>,
    /// The levels for 1 GiB pages; `None` = not asked for.
    pub gigantic: Option<GiganticPages>,
    /// Measurements in all.
    pub measurements: u64,
    /// Hardware counters that were tried; not asked for otherwise than by [`Step::Counters`], since all else is found
    /// without.
    pub counters: Finding<Vec<Counted>>,
    /// What CPUID and sysfs say, beside what was measured: see [`Report::compare`].
    pub claims: Vec<Claim>,
    /// Why it ended before its end; `None` = it did not.
    pub halted: Option<String>,
}

impl Report {
    /// Nanoseconds of a core cycle, where the timer's rate is known.
    pub fn ns_a_cycle(&self) -> Option<f64> {
        self.ticks_per_second.map(|ticks| 1e9 / (ticks * self.cycles_per_tick))
    }

    /// What was asked for and is not determined: what, and why. Empty = all is known; the command's exit code is by
    /// this. Every new finding has its line here.
    pub fn missing(&self) -> Vec<(String, String)> {
        let mut missing = Vec::new();
        for level in &self.levels {
            missing.extend(lacks(format!("geometry of level {}", level.level), &level.geometry));
            missing.extend(lacks(format!("cost of a miss of level {}", level.level), &level.miss_cycles));
            missing.extend(lacks(format!("replacement of level {}", level.level), &level.policy));
        }
        missing.extend(self.effects.iter().flat_map(Effects::missing));
        missing.extend(lacks("hardware counters".into(), &self.counters));
        missing.extend(self.caches.iter().flat_map(Caches::missing));
        missing.extend(self.walks.iter().flat_map(Walks::missing));
        missing.extend(self.walk_caches.iter().flat_map(WalkCaches::missing));
        missing.extend(self.covers.iter().flat_map(Covers::missing));
        missing.extend(self.spread.iter().flat_map(Spread::missing));
        missing.extend(self.large.iter().flat_map(LargePages::missing));
        missing.extend(self.gigantic.iter().flat_map(GiganticPages::missing));
        missing.extend(self.halted.iter().map(|why| ("all that was asked for".into(), why.clone())));
        missing
    }
}

pub(crate) fn lacks<T>(what: String, finding: &Finding<T>) -> Option<(String, String)> {
    finding.is_missing().then(|| (what, finding.reason().unwrap_or_default().to_string()))
}

/// One level, for data loads of 4 KiB pages.
#[derive(Clone, Debug, Serialize)]
pub struct LevelReport {
    /// 1 or 2.
    pub level: u32,
    /// Size of the pages.
    pub page_size: PageSize,
    /// Entries, ways, sets, index.
    pub geometry: Finding<Geometry>,
    /// Core cycles that a miss here adds, where the next level (or a walk with warm tables) serves it, as passes with
    /// fresh pages agree on it.
    pub miss_cycles: Finding<Seen>,
    /// Replacement policy.
    pub policy: Finding<Policy>,
    /// Sequences that were measured for the policy; the shortest that tells it comes first.
    pub trials: Vec<Trial>,
}

/// A figure as the passes that confirmed a geometry saw it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Seen {
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// Passes.
    pub passes: usize,
}

/// Probes a machine. `halt` is asked before all samples, and so is the time; `progress` is told what comes next.
pub fn probe(
    metal: &mut dyn Metal,
    options: &Options,
    halt: &dyn Fn() -> Option<Halt>,
    progress: &mut dyn FnMut(&str),
) -> Report {
    let emulator = metal.emulator();
    let halt = || emulator.clone().map(Halt::Emulated).or_else(halt);
    let budget = Budget::new(options, &halt, &Instant::now);
    let halt = || budget.check();
    let mut report = Report {
        seed: options.seed,
        cycles_per_tick: metal.cycles_per_tick(),
        cpu: metal.cpu(),
        remarks: metal.remarks(),
        ..Report::default()
    };
    let mut bench = Bench::new(metal, PageSize::K4, options.seed, &halt);
    let mut found = Vec::new();
    let ended = steps(&mut bench, options, &budget, progress, &mut report, &mut found).err();
    report.halted = ended.map(|halt| halt.to_string());
    // Levels that it did not get to are named too.
    let last = u32::from(options.wants(Step::L1)) + u32::from(options.wants(Step::L2));
    for level in report.levels.len() as u32 + 1..=last {
        let reason = report.halted.as_deref().unwrap_or("the first level is not known");
        report.levels.push(LevelReport::new(level, &bench, &FoundLevel::nothing(reason), &[]));
    }
    if options.wants(Step::Policy) {
        for level in report.levels.iter_mut().filter(|level| level.policy.is_unasked()) {
            level.policy = Finding::not_determined(report.halted.as_deref().unwrap_or("its geometry is not known"));
        }
    }
    if let Some(effects) = &mut report.effects {
        effects.explain(report.halted.as_deref().unwrap_or("both levels have to be known"));
    } else if options.wants(Step::Effects) {
        report.effects = Some(Effects::unknown(report.halted.as_deref().unwrap_or("both levels have to be known")));
    }
    report.measurements = bench.measurements();
    hierarchy::find(metal, options, &budget, progress, &mut report);
    large_pages(metal, options, &budget, progress, &mut report);
    gigantic_pages(metal, options, &budget, progress, &mut report);
    // Where there is time for another attempt at all of it, that is worth more.
    let another = !report.is_whole() && budget.left().is_some_and(|share| share >= WORTH_WHILE);
    if options.wants(Step::Policy) && report.halted.is_none() && !another {
        let mut bench = Bench::new(metal, PageSize::K4, options.seed.rotate_left(32), &halt);
        let ended = policies_again(&mut bench, &budget, progress, &mut report, &found).err();
        // That the time is up is no news: all had its share before.
        report.halted = ended.filter(|halt| *halt != Halt::TimeUp).map(|halt| halt.to_string());
        report.measurements += bench.measurements();
    }
    report
}

/// What the others left of the time goes to the policies that are still open: on a busy machine their share is too short.
fn policies_again(
    bench: &mut Bench<'_>,
    budget: &Budget<'_>,
    progress: &mut dyn FnMut(&str),
    report: &mut Report,
    found: &[FoundLevel],
) -> Result<(), Halt> {
    let open = report.levels.iter().filter(|level| level.geometry.value().is_some() && level.policy.value().is_none());
    if budget.more(Step::Policy, open.count()) {
        policies(bench, budget, progress, report, found)?;
    }
    Ok(())
}

/// Replacement of the levels that it is not known of, the second level first: a fully associative first level may be none
/// of the rules, and take all the time that there is.
fn policies(
    bench: &mut Bench<'_>,
    budget: &Budget<'_>,
    progress: &mut dyn FnMut(&str),
    report: &mut Report,
    found: &[FoundLevel],
) -> Result<(), Halt> {
    for (at, found) in found.iter().enumerate().rev() {
        let Some((geometry, level)) = found.known() else { continue };
        // The last looks may have taken a geometry back.
        if report.levels[at].policy.value().is_some() || report.levels[at].geometry.value().is_none() {
            continue;
        }
        let what = ["first level's replacement", "second level's replacement"][at];
        let done = budget.part(bench, Step::Policy, what, progress, |bench| policy(bench, level, geometry))?;
        let (policy, trials) = done.unwrap_or_else(|reason| (Finding::not_determined(reason), Vec::new()));
        // A second try that ended early says less than the first.
        if policy.value().is_some() || !trials.is_empty() || report.levels[at].trials.is_empty() {
            (report.levels[at].policy, report.levels[at].trials) = (policy, trials);
        }
    }
    Ok(())
}

fn steps(
    bench: &mut Bench<'_>,
    options: &Options,
    budget: &Budget<'_>,
    progress: &mut dyn FnMut(&str),
    report: &mut Report,
    levels: &mut Vec<FoundLevel>,
) -> Result<(), Halt> {
    if !options.wants(Step::L1) {
        return Ok(());
    }
    let nothing = |reason: String| (FoundLevel::nothing(reason), Vec::new());
    let found = budget.part(bench, Step::L1, "first level", progress, |bench| twice(bench, first_level))?;
    let (first, ticks) = found.unwrap_or_else(nothing);
    report.levels.push(LevelReport::new(1, bench, &first, &ticks));
    let mut second = FoundLevel::nothing("the first level is not known");
    if let (true, Some((geometry, level))) = (options.wants(Step::L2), first.known()) {
        let search = |bench: &mut Bench<'_>| twice(bench, |bench| second_level(bench, geometry, level));
        let mut found = budget.part(bench, Step::L2, "second level", progress, search)?.unwrap_or_else(nothing);
        // Nearly all that follows rests on it.
        if found.0.known().is_none() && budget.more(Step::L2, 1) {
            let again = budget.part(bench, Step::L2, "second level, once more", progress, search)?;
            found = again.unwrap_or_else(nothing);
        }
        let (found, ticks) = found;
        report.levels.push(LevelReport::new(2, bench, &found, &ticks));
        second = found;
    }
    levels.extend([first.clone(), second.clone()]);
    if options.wants(Step::Policy) {
        policies(bench, budget, progress, report, levels)?;
    }
    if let (true, Some((first, _)), Some((second, _))) = (options.wants(Step::Effects), first.known(), second.known()) {
        let levels = Levels { first: first.clone(), second: Some(second.clone()) };
        let found = report.effects.insert(Effects::not_asked());
        let work = |bench: &mut Bench<'_>| effects(bench, &levels, found);
        let done = budget.part(bench, Step::Effects, "what fills and empties the levels", progress, work)?;
        if let (Err(reason), Some(effects)) = (done, &mut report.effects) {
            effects.explain(&reason);
        }
    }
    bench.note("last looks");
    for (report, found) in report.levels.iter_mut().zip([&first, &second]) {
        if let Some((geometry, level)) = found.known() {
            if outgrown(bench, level, geometry)? {
                report.retract(geometry);
            }
        }
    }
    if options.wants(Step::Counters) {
        let work = |bench: &mut Bench<'_>| counters(bench, EVENTS, first.known(), second.known());
        let tried = budget.part(bench, Step::Counters, "hardware counters", progress, work)?;
        let found = tried.map_or_else(Finding::not_determined, usable);
        // Who does not ask for them in particular misses nothing without them.
        report.counters = if options.only == Some(Step::Counters) { found } else { found.unasked() };
    }
    Ok(())
}

impl LevelReport {
    /// Takes back what was found with a geometry that did not hold to the end.
    fn retract(&mut self, geometry: &Geometry) {
        let Geometry { entries, ways, .. } = geometry;
        let reason = format!(
            "{entries} entries were confirmed at first, but in the end {} pages of one set fit, not {ways}",
            ways + 1
        );
        self.geometry = Finding::not_determined(&reason);
        if self.policy.value().is_some() {
            self.policy = Finding::not_determined(&reason);
        }
    }

    /// A level as [`crate::twice`] found it, 1 or 2, with the ticks of a miss in each pass that agreed; of its policy nothing is known.
    pub fn new(level: u32, bench: &Bench<'_>, found: &FoundLevel, ticks: &[f64]) -> Self {
        let cycles: Vec<f64> = ticks.iter().map(|ticks| ticks * bench.cycles_per_tick()).collect();
        let evidence = vec![format!("{cycles:.1?} cycles by pass")];
        let miss_cycles = match (alike(&cycles, SAME_MISS), cycles.is_empty()) {
            (Some(seen), _) => Finding::confirmed(seen, evidence),
            (None, true) => Finding::not_asked(),
            (None, false) => Finding::NotDetermined { reason: "no two passes agree".into(), evidence, asked: true },
        };
        Self {
            level,
            page_size: bench.size(),
            geometry: found.geometry.clone(),
            miss_cycles,
            policy: Finding::not_asked(),
            trials: Vec::new(),
        }
    }
}
