//! The same accesses with a baker's helper beside the program.

use std::sync::atomic::{AtomicBool, Ordering};

use lookaside_engine::{Detail, Engine, Outcome, RunEnd, Setup};
use lookaside_machine::Machine;
use lookaside_trace::{Block, Source};

use super::{primed_pages, refilling_misses, StretchCounts, WindowTally, REFILLS};
use crate::bake::{BakeModelError, ModelledBaker, RunningHelper};
use crate::cost_curve::CostCurve;
use crate::recent_uses::UsesBefore;
use crate::slice::cut;
use crate::window::SampledWindows;
use crate::window_plan::WindowPlan;

/// Recorded accesses that the program goes on by before the helper catches up; touches that the helper makes before the
/// program goes on.
const STEP: usize = 16;
/// Touches that are made at a time where no program runs beside.
const TOUCHES_AT_ONCE: u64 = 256;

/// The helper's touches in all, about: these take a second or two.
const TOUCHES: u64 = 4 << 20;

/// When the helper runs.
#[derive(Clone, Debug, PartialEq)]
pub struct HelperHours {
    /// The windows that are counted; `None` = the whole run, and the helper all the time.
    pub plan: Option<WindowPlan>,
    /// It begins so many recorded accesses before a window,
    pub before: u64,
    /// and with so many touches at once, as if it had run all the time.
    pub touches_before: u64,
}

impl HelperHours {
    /// The whole run is counted.
    pub const ALWAYS: Self = Self { plan: None, before: 0, touches_before: 0 };

    /// For a run of these costs by recorded access, where windows lie by the seed, whose program was seen to its end in
    /// `outcome`, by the touches that the helper may make.
    pub fn new(baker: &ModelledBaker, machine: &Machine, outcome: &Outcome, (costs, seed): (&CostCurve, u64)) -> Self {
        let recorded = costs.visits();
        let page = machine.page_table.format.page_sizes().first().map_or(4096, |size| size.bytes());
        let stride = baker.stride_pages.saturating_mul(page).max(1);
        let round: u64 = baker.regions.iter().map(|region| (region.end - region.start).div_ceil(stride)).sum();
        let windows = WindowPlan::WINDOWS;
        let touches_before = round.min(TOUCHES / windows / 2);
        // It is at most so fast.
        let cycles = outcome.modelled_cycles() / recorded.max(1) as f64;
        let touches_an_access = (cycles / baker.pace.touch_cycles).max(1.0);
        // Half of its touches in a window, half in as many accesses before.
        let counted = (TOUCHES / windows - touches_before) as f64 / 2.0 / touches_an_access;
        let counted = (counted as u64).max(STEP as u64);
        let warming = (REFILLS * refilling_misses(machine, outcome.table_bytes)).max(counted);
        let plan = WindowPlan::short(costs, counted, warming, seed);
        let plan = plan.map(|plan| plan.primed_with(primed_pages(std::iter::once(machine))));
        Self { plan, before: counted, touches_before }
    }

    /// From the access after so many that were let through to the one beside which the helper runs; 0 where it does.
    fn away(&self, passed: u64) -> u64 {
        self.plan.as_ref().map_or(0, |plan| plan.until_window(passed).saturating_sub(self.before))
    }
}

/// Runs a setup over the windows of a plan, with a helper that goes by the program's modelled time, or with none: the
/// program's counts of each window, or of the whole run alone. `stop` ends the run.
///
/// # Errors
/// The setup is impossible, the source can't be read, or the helper can't be placed.
pub fn rerun_baked(
    setup: Setup,
    baker: Option<&ModelledBaker>,
    (source, uses): (impl Source, Option<UsesBefore>),
    hours: HelperHours,
    stop: &AtomicBool,
) -> Result<(Vec<StretchCounts>, RunEnd), BakeModelError> {
    let machine = setup.machine.clone();
    let mut engine = Engine::new(Setup { detail: Detail::Totals, ..setup })?;
    let mut source = SampledWindows::primed(source, hours.plan.clone(), uses);
    let mut tally = WindowTally::new(hours.plan.as_ref());
    let (mut block, mut step) = (Block::default(), Block::default());
    let mut helper: Option<RunningHelper<'_>> = None;
    let (mut begun, mut runs, mut passed) = (false, false, 0);
    let mut end = RunEnd::Complete;
    while source.next_block(&mut block)? {
        if stop.load(Ordering::Relaxed) {
            end = RunEnd::Stopped;
            break;
        }
        let mut from = 0;
        loop {
            let away = if baker.is_some() { hours.away(passed) } else { u64::MAX };
            let most = if away == 0 { STEP } else { usize::try_from(away).unwrap_or(usize::MAX) };
            let until = from + most.min(block.len() - from);
            cut(&block, from..until, &mut step);
            engine.run(&step);
            if !std::mem::replace(&mut begun, true) {
                // The program has the first hardware thread.
                helper = baker.map(|baker| RunningHelper::new(baker, &machine, &mut engine)).transpose()?;
            }
            if let Some(helper) = &mut helper {
                let ran = std::mem::replace(&mut runs, away == 0);
                catch_up(helper, &mut engine, (ran, runs), hours.touches_before);
            }
            passed += (until - from) as u64;
            from = until;
            if from == block.len() {
                break;
            }
        }
        if let Some(plan) = &hours.plan {
            tally.add(plan, &engine, &block);
        }
    }
    let counts = match hours.plan {
        Some(_) => tally.windows,
        None => vec![StretchCounts::of(&engine.outcome())],
    };
    Ok((counts, end))
}

/// To where the program is. Of the helper: it ran before that step, it runs now.
fn catch_up(helper: &mut RunningHelper<'_>, engine: &mut Engine, (ran, runs): (bool, bool), touches_before: u64) {
    if !runs {
        return;
    }
    let clock = engine.clock();
    let time = clock.accesses as f64 + clock.waiting_cycles();
    if !ran {
        let mut left = touches_before;
        while left > 0 {
            let count = left.min(TOUCHES_AT_ONCE);
            helper.steps(engine, count as usize);
            left -= count;
        }
        helper.sleep_until(time);
    }
    while helper.now() <= time {
        helper.steps(engine, STEP);
    }
}

#[cfg(test)]
mod tests {
    use lookaside_machine::preset;
    use lookaside_trace::{Event, Kind, MapSource};

    use super::*;
    use crate::bake::TouchMethod;

    const BASE: u64 = 1 << 36;

    /// A helper over so many GiB.
    fn over(gib: u64) -> ModelledBaker {
        let range = BASE..BASE + (gib << 30);
        ModelledBaker::new(TouchMethod::Prefetch, 1, vec![range])
    }

    #[test]
    fn the_helper_begins_so_many_accesses_before_a_window() {
        // Windows of ten accesses, with a hundred before each.
        let plan = WindowPlan::even(64_000, 640, 100, 1);
        assert!(plan.is_some());
        let hours = HelperHours { plan, before: 30, touches_before: 0 };
        let expected = [(0, 70), (69, 1), (70, 0), (99, 0), (109, 0), (110, 70), (180, 0)];
        for (passed, away) in expected {
            assert_eq!(hours.away(passed), away, "{passed}");
        }
        assert_eq!(HelperHours { plan: None, ..hours }.away(0), 0);
    }

    #[test]
    fn a_large_memorys_helper_has_half_of_its_touches_before_windows() {
        let machine = preset("skylake").expect("a preset");
        // A program that is so fast that the helper makes one touch an access.
        let hours = |gib| HelperHours::new(&over(gib), &machine, &Outcome::default(), (&CostCurve::even(1 << 40), 1));
        // Of 2^22 touches in 64 windows half are made before; of the others half in the window itself.
        assert_eq!((hours(1024).touches_before, hours(1024).before), (1 << 15, 1 << 14));
        // A round over a half GiB takes 2^14 touches.
        let first_half = BASE..BASE + (512 << 20);
        let half = ModelledBaker::new(TouchMethod::Prefetch, 1, vec![first_half]);
        let hours = HelperHours::new(&half, &machine, &Outcome::default(), (&CostCurve::even(1 << 40), 1));
        assert_eq!((hours.touches_before, hours.before), (1 << 14, 3 << 13));
    }

    #[test]
    fn a_helper_catches_up_with_the_programs_time() {
        let machine = preset("skylake").expect("a preset");
        let mut engine = Engine::new(Setup::new(machine.clone())).expect("a setup");
        let mut block = Block { process: 1, thread: 1, ..Block::default() };
        block.push_event(Event::Map { addr: BASE, len: 1 << 30, prot: 3, source: MapSource::Anonymous, site: 0 });
        (0..20).for_each(|i| block.push(Kind::Load, BASE + i * (7 << 20)));
        engine.run(&block);
        let clock = engine.clock();
        let time = clock.accesses as f64 + clock.waiting_cycles();
        assert!(clock.accesses == 20 && time > 1000.0, "{clock:?}");
        let baker = over(1);
        let mut helper = RunningHelper::new(&baker, &machine, &mut engine).expect("a helper");
        catch_up(&mut helper, &mut engine, (false, false), 10);
        assert_eq!(helper.now(), 0.0);
        catch_up(&mut helper, &mut engine, (true, true), 0);
        // It is ahead by less than its touches at a time take, each of which reads four tables at the most from memory.
        let ahead = |now: f64| now > time && now < time + STEP as f64 * 4.0 * machine.memory.cycles;
        assert!(ahead(helper.now()), "{time} {}", helper.now());
        // What it did before is in the past.
        catch_up(&mut helper, &mut engine, (false, true), 1000);
        assert!(ahead(helper.now()), "{time} {}", helper.now());
    }
}
