//! Running whole sources: one setup or several over one decoding pass.

use std::ops::ControlFlow;
use std::sync::mpsc::{sync_channel, Receiver};
use std::sync::Arc;

use lookaside_trace::{Block, Source, TraceError};

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

/// Blocks that may wait for the slowest model: enough to even out blocks of unequal cost.
const QUEUED_BLOCKS: usize = 4;

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

/// Runs several setups over a source that is decoded once. Each model has a thread of its own; the
/// outcomes are the same as from runs one by one.
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
    run_many_watched(setups, source, progress, |_, _, _| ())
}

/// As [`run_many`]. `watch` is called after each block with the number of a setup, its model and the block, on that
/// model's thread.
///
/// # Errors
/// A setup is impossible. A source that fails is in [`RunResult::end`], with the outcomes so far.
pub fn run_many_watched(
    setups: Vec<Setup>,
    source: &mut dyn Source,
    mut progress: impl FnMut(u64) -> ControlFlow<()>,
    watch: impl Fn(usize, &Engine, &Block) + Sync,
) -> Result<RunResult, SetupError> {
    let watch = &watch;
    let engines = setups.into_iter().map(Engine::new).collect::<Result<Vec<_>, _>>()?;
    let ran = std::thread::scope(|scope| {
        let (senders, models): (Vec<_>, Vec<_>) = engines
            .into_iter()
            .enumerate()
            .map(|(number, engine)| {
                let (sender, receiver) = sync_channel::<Arc<Block>>(QUEUED_BLOCKS);
                (sender, scope.spawn(move || model(engine, &receiver, |engine, block| watch(number, engine, block))))
            })
            .unzip();
        let mut pool: Vec<Arc<Block>> = Vec::new();
        let mut accesses = 0;
        let end = loop {
            let mut block = take_unused(&mut pool);
            let Some(filled) = Arc::get_mut(&mut block) else { continue };
            match source.next_block(filled) {
                Ok(true) => {}
                Ok(false) => break RunEnd::Complete,
                Err(error) => break RunEnd::Unreadable(error),
            }
            accesses += filled.accesses();
            for sender in &senders {
                // Fails only if the model's thread has panicked, which the join below passes on.
                let _ = sender.send(Arc::clone(&block));
            }
            pool.push(block);
            if progress(accesses).is_break() {
                break RunEnd::Stopped;
            }
        };
        drop(senders);
        let outcomes = models.into_iter().map(|model| match model.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        RunResult { outcomes: outcomes.collect(), accesses, end }
    });
    Ok(ran)
}

fn model(mut engine: Engine, blocks: &Receiver<Arc<Block>>, watch: impl Fn(&Engine, &Block)) -> Outcome {
    while let Ok(block) = blocks.recv() {
        engine.run(&block);
        watch(&engine, &block);
    }
    engine.outcome()
}

/// A block that no model holds any more, or a new one.
fn take_unused(pool: &mut Vec<Arc<Block>>) -> Arc<Block> {
    match pool.iter_mut().position(|block| Arc::get_mut(block).is_some()) {
        Some(place) => pool.swap_remove(place),
        None => Arc::default(),
    }
}
