//! Running whole sources: one setup or several over one decoding pass.

use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::Arc;

use lookaside_trace::{Block, Source, TraceError};

use crate::batch::Batch;
use crate::model_group::ModelGroup;
use crate::model_queue::ModelQueue;
use crate::{Engine, Outcome, Setup, SetupError};

/// What a run over a source came to.
#[derive(Debug)]
pub struct RunResult {
    /// One for each setup, in order. All saw the same accesses.
    pub outcomes: Vec<Outcome>,
    /// Accesses that the models saw, left-out repeats counted (`Event::Repeats` not).
    pub accesses: u64,
    /// Why it ended.
    pub end: RunEnd,
}

/// Why a run ended.
#[derive(Debug)]
pub enum RunEnd {
    /// The source has no more.
    Complete,
    /// The progress callback asked for it.
    Stopped,
    /// The source can't be read any further; the outcomes are of what came before.
    Unreadable(TraceError),
}

/// Runs one setup over a source.
///
/// `progress` is called after each block with the accesses so far, and may stop the run.
///
/// # Errors
/// The setup is impossible. A source that fails is in [`RunResult::end`], with the outcome so far.
pub fn run_source(
    setup: Setup,
    source: &mut dyn Source,
    progress: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<RunResult, SetupError> {
    run_many(vec![setup], source, progress)
}

/// Runs several setups over a source that is decoded once, on as many threads as there are CPUs (at most one a setup)
/// beside the one that decodes. The outcomes are the same as from runs one by one. Setups that count walks only and differ
/// in nothing but the later TLB levels ask the first level once. Later arrays of the same sets, ways and policy are asked
/// once; under LRU all of the same sets are, whatever their ways (up to 32).
///
/// ```
/// use std::ops::ControlFlow;
/// use lookaside_engine::{run_many, Setup};
/// # struct Nothing(lookaside_trace::TraceInfo);
/// # impl lookaside_trace::Source for Nothing {
/// #     fn info(&self) -> &lookaside_trace::TraceInfo { &self.0 }
/// #     fn next_block(&mut self, _: &mut lookaside_trace::Block) -> Result<bool, lookaside_trace::TraceError> { Ok(false) }
/// # }
/// # let mut source = Nothing(Default::default());
/// let machine = lookaside_machine::preset("ryzen-5900x")?;
/// let bigger = machine.with_overrides(&["tlb.l2d.entries=4096".into()])?;
/// let ran = run_many(vec![Setup::new(machine), Setup::new(bigger)], &mut source, |_| ControlFlow::Continue(()))?;
/// assert_eq!(ran.outcomes.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A setup is impossible. A source that fails is in [`RunResult::end`], with the outcomes so far.
pub fn run_many(
    setups: Vec<Setup>,
    source: &mut dyn Source,
    progress: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<RunResult, SetupError> {
    let groups = ModelGroup::of(setups, cpus())?;
    let run = |batch: &mut Option<Box<Batch>>, _: usize, group: &mut ModelGroup, block: &Block| group.run(batch, block);
    let (groups, accesses, end) = run_models(groups, source, progress, run);
    let mut outcomes: Vec<_> = groups.flat_map(ModelGroup::outcomes).collect();
    outcomes.sort_by_key(|(number, _)| *number);
    Ok(RunResult { outcomes: outcomes.into_iter().map(|(_, outcome)| outcome).collect(), accesses, end })
}

/// As [`run_many`]. `watch` is called after each block with the number of a setup, its model and the block, in order for
/// each setup, on whichever thread ran it.
///
/// # Errors
/// A setup is impossible. A source that fails is in [`RunResult::end`], with the outcomes so far.
pub fn run_many_watched(
    setups: Vec<Setup>,
    source: &mut dyn Source,
    progress: impl FnMut(u64) -> ControlFlow<()>,
    watch: impl Fn(usize, &Engine, &Block) + Sync,
) -> Result<RunResult, SetupError> {
    let engines = setups.into_iter().map(Engine::new).collect::<Result<Vec<_>, _>>()?;
    let run = |batch: &mut Option<Box<Batch>>, number: usize, engine: &mut Engine, block: &Block| {
        engine.run_by(batch, |engine| engine.run(block));
        watch(number, engine, block);
    };
    let (engines, accesses, end) = run_models(engines, source, progress, run);
    Ok(RunResult { outcomes: engines.map(|engine| engine.outcome()).collect(), accesses, end })
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Runs models over a source: these, the accesses, and how it ended. `run` gets a thread's batch, the number of a model,
/// the model and a block.
fn run_models<M: Send>(
    models: Vec<M>,
    source: &mut dyn Source,
    mut progress: impl FnMut(u64) -> ControlFlow<()>,
    run: impl Fn(&mut Option<Box<Batch>>, usize, &mut M, &Block) + Sync,
) -> (impl Iterator<Item = M>, u64, RunEnd) {
    let threads = cpus().min(models.len());
    let queue = ModelQueue::new(models);
    let mut accesses = 0;
    let end = std::thread::scope(|scope| {
        let run_taken = || {
            // One after the other uses it.
            let mut batch = None;
            while let Some(model) = queue.take() {
                model.run(|number, model, block| run(&mut batch, number, model, block));
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run_taken)).collect();
        let end = give_blocks(&queue, source, |more| {
            accesses += more;
            progress(accesses)
        });
        for thread in threads {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        end
    });
    (queue.into_models(), accesses, end)
}

/// Puts a source's blocks into the queue, and ends it. `progress` is called after each with its accesses.
fn give_blocks<M>(
    queue: &ModelQueue<M>,
    source: &mut dyn Source,
    mut progress: impl FnMut(u64) -> ControlFlow<()>,
) -> RunEnd {
    // Even if the source panics: the models' threads are waited for.
    let _end = queue.ended_on_drop();
    let mut pool: Vec<Arc<Block>> = Vec::new();
    loop {
        let mut block = take_unused(&mut pool);
        let Some(filled) = Arc::get_mut(&mut block) else { continue };
        match source.next_block(filled) {
            Ok(true) => {}
            Ok(false) => return RunEnd::Complete,
            Err(error) => return RunEnd::Unreadable(error),
        }
        let accesses = filled.accesses();
        // The panic that lost a model is passed on when its thread is joined.
        if !queue.push(Arc::clone(&block)) {
            return RunEnd::Stopped;
        }
        pool.push(block);
        if progress(accesses).is_break() {
            return RunEnd::Stopped;
        }
    }
}

/// A block that no model holds any more, or a new one.
fn take_unused(pool: &mut Vec<Arc<Block>>) -> Arc<Block> {
    match pool.iter_mut().position(|block| Arc::get_mut(block).is_some()) {
        Some(place) => pool.swap_remove(place),
        None => Arc::default(),
    }
}
