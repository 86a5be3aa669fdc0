//! Runs the probe: every step in its order; if it is stopped, the report has what was found until then.

use std::time::Instant;

use lookaside_machine::PageSize;

use crate::bench::{ChainBench, Halt};
use crate::budget::Budget;
use crate::effects::measure::measure_effects;
use crate::eviction_sets::TlbLevels;
use crate::finding::Finding;
use crate::hierarchy::measure::measure_hierarchy;
use crate::large_pages::{gigantic_pages, large_pages};
use crate::metal::Metal;
use crate::options::ProbeOptions;
use crate::options::ProbeStep;
use crate::pmu::events::EVENTS;
use crate::pmu::proven_events::try_events;
use crate::pmu::proven_events::usable_events;
use crate::report::effects::TlbEffects;
use crate::report::levels::LevelReport;
use crate::report::ProbeReport;
use crate::retry::WORTH_WHILE;
use crate::timing::measure::measure_timing;
use crate::tlb::confirm::outgrown;
use crate::tlb::geometry::FoundLevel;
use crate::tlb::policy::identify::policy;
use crate::tlb::search::{first_level, second_level};
use crate::until_two_agree::until_two_agree;

/// Probes a machine. `halt` is asked before all samples, and so is the time; `progress` is told what comes next.
pub fn probe(
    metal: &mut dyn Metal,
    options: &ProbeOptions,
    halt: &dyn Fn() -> Option<Halt>,
    progress: &mut dyn FnMut(&str),
) -> ProbeReport {
    let emulator = metal.emulator();
    let halt = || emulator.clone().map(Halt::Emulated).or_else(halt);
    let budget = Budget::new(options, &halt, &Instant::now);
    let halt = || budget.check();
    let mut report = ProbeReport {
        seed: options.seed,
        cycles_per_tick: metal.cycles_per_tick(),
        cpu: metal.cpu(),
        remarks: metal.remarks(),
        ..ProbeReport::default()
    };
    // First, since it needs nothing of the others, and a neighbour that hides the levels may take all the time.
    measure_timing(metal, options, &budget, progress, &mut report);
    let mut bench = ChainBench::new(metal, PageSize::K4, options.seed, &halt);
    let mut found = Vec::new();
    let ended = steps(&mut bench, options, &budget, progress, &mut report, &mut found).err();
    report.halted = ended.map(|halt| halt.to_string()).or(report.halted.take());
    // Levels that it did not get to are named too.
    let last = u32::from(options.wants(ProbeStep::L1)) + u32::from(options.wants(ProbeStep::L2));
    for level in report.levels.len() as u32 + 1..=last {
        let reason = report.halted.as_deref().unwrap_or("the first level is not known");
        report.levels.push(LevelReport::new(level, &bench, &FoundLevel::nothing(reason), &[]));
    }
    if options.wants(ProbeStep::Policy) {
        for level in report.levels.iter_mut().filter(|level| level.policy.is_unasked()) {
            level.policy = Finding::not_determined(report.halted.as_deref().unwrap_or("its geometry is not known"));
        }
    }
    if let Some(effects) = &mut report.effects {
        effects.explain(report.halted.as_deref().unwrap_or("needs both TLB levels"));
    } else if options.wants(ProbeStep::Effects) {
        report.effects = Some(TlbEffects::unknown(report.halted.as_deref().unwrap_or("needs both TLB levels")));
    }
    report.measurements = bench.measurements();
    measure_hierarchy(metal, options, &budget, progress, &mut report);
    large_pages(metal, options, &budget, progress, &mut report);
    gigantic_pages(metal, options, &budget, progress, &mut report);
    // Where there is time for another attempt at all of it, that is worth more.
    let another = !report.is_whole() && budget.left().is_some_and(|share| share >= WORTH_WHILE);
    if options.wants(ProbeStep::Policy) && report.halted.is_none() && !another {
        let mut bench = ChainBench::new(metal, PageSize::K4, options.seed.rotate_left(32), &halt);
        let ended = policies_again(&mut bench, &budget, progress, &mut report, &found).err();
        // That the time is up is no news: all had its share before.
        report.halted = ended.filter(|halt| *halt != Halt::TimeUp).map(|halt| halt.to_string());
        report.measurements += bench.measurements();
    }
    report
}

/// What the others left of the time goes to the policies that are still open: on a busy machine their share is too
/// short.
fn policies_again(
    bench: &mut ChainBench<'_>,
    budget: &Budget<'_>,
    progress: &mut dyn FnMut(&str),
    report: &mut ProbeReport,
    found: &[FoundLevel],
) -> Result<(), Halt> {
    let open = report.levels.iter().filter(|level| level.geometry.value().is_some() && level.policy.value().is_none());
    if budget.more(ProbeStep::Policy, open.count()) {
        policies(bench, budget, progress, report, found)?;
    }
    Ok(())
}

/// Replacement of the levels that it is not known of, the second level first: a fully associative first level may be
/// none of the rules, and take all the time that there is.
fn policies(
    bench: &mut ChainBench<'_>,
    budget: &Budget<'_>,
    progress: &mut dyn FnMut(&str),
    report: &mut ProbeReport,
    found: &[FoundLevel],
) -> Result<(), Halt> {
    for (at, found) in found.iter().enumerate().rev() {
        let Some((geometry, level)) = found.known() else { continue };
        // The last looks may have taken a geometry back.
        if report.levels[at].policy.value().is_some() || report.levels[at].geometry.value().is_none() {
            continue;
        }
        let what = ["first level's replacement", "second level's replacement"][at];
        let done = budget.part(bench, ProbeStep::Policy, what, progress, |bench| policy(bench, level, geometry))?;
        let (policy, trials) = done.unwrap_or_else(|reason| (Finding::not_determined(reason), Vec::new()));
        // A second try that ended early says less than the first.
        if policy.value().is_some() || !trials.is_empty() || report.levels[at].trials.is_empty() {
            (report.levels[at].policy, report.levels[at].trials) = (policy, trials);
        }
    }
    Ok(())
}

fn steps(
    bench: &mut ChainBench<'_>,
    options: &ProbeOptions,
    budget: &Budget<'_>,
    progress: &mut dyn FnMut(&str),
    report: &mut ProbeReport,
    levels: &mut Vec<FoundLevel>,
) -> Result<(), Halt> {
    if !options.wants(ProbeStep::L1) {
        return Ok(());
    }
    let nothing = |reason: String| (FoundLevel::nothing(reason), Vec::new());
    let found =
        budget.part(bench, ProbeStep::L1, "first level", progress, |bench| until_two_agree(bench, first_level))?;
    let (first, ticks) = found.unwrap_or_else(nothing);
    report.levels.push(LevelReport::new(1, bench, &first, &ticks));
    let mut second = FoundLevel::nothing("the first level is not known");
    if let (true, Some((geometry, level))) = (options.wants(ProbeStep::L2), first.known()) {
        let search = |bench: &mut ChainBench<'_>| until_two_agree(bench, |bench| second_level(bench, geometry, level));
        let mut found = budget.part(bench, ProbeStep::L2, "second level", progress, search)?.unwrap_or_else(nothing);
        // Nearly all that follows rests on it.
        if found.0.known().is_none() && budget.more(ProbeStep::L2, 1) {
            let again = budget.part(bench, ProbeStep::L2, "second level, once more", progress, search)?;
            found = again.unwrap_or_else(nothing);
        }
        let (found, ticks) = found;
        report.levels.push(LevelReport::new(2, bench, &found, &ticks));
        second = found;
    }
    levels.extend([first.clone(), second.clone()]);
    if options.wants(ProbeStep::Policy) {
        policies(bench, budget, progress, report, levels)?;
    }
    if let (true, Some((first, _)), Some((second, _))) =
        (options.wants(ProbeStep::Effects), first.known(), second.known())
    {
        let levels = TlbLevels { first: first.clone(), second: Some(second.clone()) };
        let found = report.effects.insert(TlbEffects::not_asked());
        let work = |bench: &mut ChainBench<'_>| measure_effects(bench, &levels, found);
        let done = budget.part(bench, ProbeStep::Effects, "what fills and empties the levels", progress, work)?;
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
    if options.wants(ProbeStep::Counters) {
        let work = |bench: &mut ChainBench<'_>| try_events(bench, EVENTS, first.known(), second.known());
        let tried = budget.part(bench, ProbeStep::Counters, "hardware counters", progress, work)?;
        let found = tried.map_or_else(Finding::not_determined, usable_events);
        // Who does not ask for them in particular misses nothing without them.
        report.counters = if options.only == Some(ProbeStep::Counters) { found } else { found.unasked() };
    }
    Ok(())
}
