//! The model's loop: program, helper and stressors take turns by their modelled times.

use std::collections::HashSet;

use lookaside_engine::{Detail, Engine, Setup};
use lookaside_trace::{Block, Event, Source};

use super::baker::{BakeModelError, BakeResult, BakedProgram, ModelledBaker, Stressor};
use super::helper::RunningHelper;
use super::program_core::ProgramCore;
use super::stressor::RunningStressor;
use crate::slice;

/// Accesses that the program goes on by before the helper catches up: some hundred to some thousand cycles.
const STEP: usize = 16;

/// Runs a program's accesses through a machine, with a helper beside it or without, and with stressors beside both.
/// Same arguments, same result to the bit.
///
/// # Errors
/// The setup is impossible, the source can't be read, or the helper can't be placed or has nothing to do.
pub fn model(
    setup: Setup,
    source: &mut dyn Source,
    program: &BakedProgram<'_>,
    baker: Option<&ModelledBaker>,
    stressors: &[Stressor],
) -> Result<BakeResult, BakeModelError> {
    let machine = setup.machine.clone();
    let mut core = ProgramCore::new(program.flow, &machine)?;
    let mut engine = Engine::new(Setup { detail: Detail::Totals, ..setup })?;
    let (mut warm, mut counted) = (engine.background_counts(), engine.background_counts());
    let (mut block, mut step) = (Block::default(), Block::default());
    let mut helper: Option<RunningHelper<'_>> = None;
    let mut pressing: Vec<RunningStressor> = Vec::new();
    let mut threads = HashSet::new();
    let (mut begun, mut seen, mut warm_cycles) = (false, 0, 0.0);
    while source.next_block(&mut block)? {
        if threads.insert((block.process, block.thread)) {
            // Each new thread gets the next hardware thread, whoever else there is: the first gets the first.
            let place = Event::Migrate { cpu: (threads.len() - 1) as u32 };
            let (process, thread) = (block.process, block.thread);
            engine.run_background(&Block { process, thread, events: vec![(0, place)], ..Block::default() }, &mut warm);
        }
        if !begun {
            begun = true;
            helper = baker.map(|baker| RunningHelper::new(baker, &machine, &mut engine)).transpose()?;
            // The helper's core stays free where there is none: what stressors do is then the same.
            let stressors = stressors.iter().zip(0..);
            let stressors = stressors.map(|(of, number)| RunningStressor::new(*of, number, 2, &machine, &mut engine));
            pressing = stressors.collect::<Result<_, _>>()?;
        }
        core.next_block();
        let len = block.len();
        for from in (0..len.max(1)).step_by(STEP) {
            let to = len.min(from + STEP);
            slice::cut(&block, from..to, &mut step);
            let is_warm = seen < program.warm_accesses;
            let counts = if is_warm { &mut warm } else { &mut counted };
            core.run(&mut engine, &step, is_warm, counts);
            seen += (to - from) as u64;
            if is_warm {
                warm_cycles = core.cycles();
            }
            catch_up(&mut engine, core.cycles(), is_warm, helper.as_mut(), &mut pressing);
        }
    }
    Ok(BakeResult {
        program_cycles: core.cycles() - warm_cycles,
        program: engine.background_outcome(&mut counted),
        helper: helper.map(|helper| helper.end(&mut engine)),
    })
}

/// Lets helper and stressors do what they do up to a time, one after the other as their times tell; at one time the
/// helper first.
fn catch_up(
    engine: &mut Engine,
    time: f64,
    is_warm: bool,
    mut helper: Option<&mut RunningHelper<'_>>,
    pressing: &mut [RunningStressor],
) {
    loop {
        let at = helper.as_ref().map_or(f64::INFINITY, |helper| helper.now());
        let first = pressing.iter_mut().min_by(|a, b| a.now().total_cmp(&b.now()));
        match (&mut helper, first) {
            (_, Some(stressor)) if stressor.now() <= time && stressor.now() < at => stressor.step(engine),
            (Some(helper), _) if at <= time => helper.step(engine, is_warm),
            _ => break,
        }
    }
}
