//! The same accesses with a baker's helper beside the program.

use std::sync::atomic::{AtomicBool, Ordering};

use lookaside_engine::{Detail, Engine, Outcome, RunEnd, Setup};
use lookaside_machine::Machine;
use lookaside_trace::{Block, Source};

use super::{refilling_misses, StretchCounts, WindowTally, REFILLS};
use crate::bake::{BakeModelError, ModelledBaker, RunningHelper};
use crate::slice::cut;
use crate::window::{SampledWindows, WindowPlan};

/// Recorded accesses that the program goes on by before the helper catches up.
const STEP: usize = 16;

/// The helper's touches in all, about: these take a second or two.
const TOUCHES: u64 = 2 << 20;

/// When the helper runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HelperHours {
    /// The windows that are counted; `None` = the whole run, and the helper all the time.
    pub plan: Option<WindowPlan>,
    /// It begins so many recorded accesses before a window,
    pub before: u64,
    /// and with so many touches at once, as if it had run all the time.
    pub touches_before: u64,
}

impl HelperHours {
    /// For a run of `recorded` accesses, whose program was seen to its end in `outcome`, by the touches that it may make.
    pub fn new(baker: &ModelledBaker, machine: &Machine, outcome: &Outcome, recorded: u64) -> Self {
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
        Self { plan: WindowPlan::short(recorded, counted, warming), before: counted, touches_before }
    }

    /// The helper runs beside the access after so many that were let through.
    fn are_now(&self, passed: u64) -> bool {
        self.plan.is_none_or(|plan| plan.until_window(passed) <= self.before)
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
    source: impl Source,
    hours: HelperHours,
    stop: &AtomicBool,
) -> Result<(Vec<StretchCounts>, RunEnd), BakeModelError> {
    let machine = setup.machine.clone();
    let mut engine = Engine::new(Setup { detail: Detail::Totals, ..setup })?;
    let mut source = SampledWindows::new(source, hours.plan);
    let mut tally = WindowTally::default();
    let (mut block, mut step) = (Block::default(), Block::default());
    let mut helper: Option<RunningHelper<'_>> = None;
    let (mut begun, mut runs, mut passed) = (false, false, 0);
    let mut end = RunEnd::Complete;
    while source.next_block(&mut block)? {
        if stop.load(Ordering::Relaxed) {
            end = RunEnd::Stopped;
            break;
        }
        for from in (0..block.len().max(1)).step_by(STEP) {
            let until = block.len().min(from + STEP);
            cut(&block, from..until, &mut step);
            engine.run(&step);
            if !std::mem::replace(&mut begun, true) {
                // The program has the first hardware thread.
                helper = baker.map(|baker| RunningHelper::new(baker, &machine, &mut engine)).transpose()?;
            }
            if let Some(helper) = &mut helper {
                let ran = std::mem::replace(&mut runs, hours.are_now(passed));
                catch_up(helper, &mut engine, (ran, runs), hours.touches_before);
            }
            passed += (until - from) as u64;
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
        (0..touches_before).for_each(|_| helper.step(engine, false));
        helper.sleep_until(time);
    }
    while helper.now() <= time {
        helper.step(engine, false);
    }
}
