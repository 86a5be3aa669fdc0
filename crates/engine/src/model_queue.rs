//! Models that take their turns at a source's blocks, on no more threads than there are CPUs.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use lookaside_trace::Block;

use crate::Engine;

/// Blocks that may wait for the slowest model: enough to even out blocks of unequal cost.
const MOST_WAITING: usize = 4;

/// All models of a run, and the blocks that not all of them have run.
#[derive(Debug)]
pub(crate) struct ModelQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Debug)]
struct QueueState {
    blocks: VecDeque<Arc<Block>>,
    /// Number of the first of `blocks`.
    first: u64,
    models: Vec<QueuedModel>,
    /// No more blocks come.
    is_ended: bool,
    /// A thread that had a model has panicked.
    is_broken: bool,
}

#[derive(Debug)]
struct QueuedModel {
    /// `None` while a thread has it.
    engine: Option<Engine>,
    /// Number of the block that it runs next.
    next: u64,
}

/// A model that a thread has taken, with the blocks that it is to run.
#[derive(Debug)]
pub(crate) struct TakenModel<'a> {
    queue: &'a ModelQueue,
    pub(crate) number: usize,
    pub(crate) blocks: Vec<Arc<Block>>,
    engine: Option<Engine>,
}

impl ModelQueue {
    pub(crate) fn new(engines: Vec<Engine>) -> Self {
        let models = engines.into_iter().map(|engine| QueuedModel { engine: Some(engine), next: 0 }).collect();
        let state = QueueState { blocks: VecDeque::new(), first: 0, models, is_ended: false, is_broken: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds a block, once there is room for it. `false`: a model is lost, and nobody needs more.
    pub(crate) fn push(&self, block: Arc<Block>) -> bool {
        let has_no_room = |state: &mut QueueState| state.blocks.len() >= MOST_WAITING && !state.is_broken;
        let waited = self.changed.wait_while(self.lock(), has_no_room);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        // Without models nobody would ever take it.
        if state.models.is_empty() {
            return true;
        }
        state.blocks.push_back(block);
        self.changed.notify_all();
        !state.is_broken
    }

    /// What says, when dropped, that no more blocks come.
    pub(crate) fn ended_on_drop(&self) -> QueueEnd<'_> {
        QueueEnd(self)
    }

    /// The model that is furthest behind of those that nobody has, once there is one with blocks to run. `None`: there
    /// will be none.
    pub(crate) fn take(&self) -> Option<TakenModel<'_>> {
        let mut state = self.lock();
        loop {
            if state.is_broken {
                return None;
            }
            let end = state.first + state.blocks.len() as u64;
            let waiting =
                state.models.iter().enumerate().filter(|(_, model)| model.engine.is_some() && model.next < end);
            if let Some((number, next)) =
                waiting.map(|(number, model)| (number, model.next)).min_by_key(|&(_, next)| next)
            {
                let blocks = state.blocks.iter().skip((next - state.first) as usize).cloned().collect();
                let engine = state.models[number].engine.take();
                return Some(TakenModel { queue: self, number, blocks, engine });
            }
            if state.is_ended {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The models, in order, after all threads have come to their ends. Fewer if one was lost.
    pub(crate) fn into_engines(self) -> impl Iterator<Item = Engine> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.models.into_iter().filter_map(|model| model.engine)
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`ModelQueue::ended_on_drop`].
#[derive(Debug)]
pub(crate) struct QueueEnd<'a>(&'a ModelQueue);

impl Drop for QueueEnd<'_> {
    fn drop(&mut self) {
        self.0.lock().is_ended = true;
        self.0.changed.notify_all();
    }
}

impl TakenModel<'_> {
    /// Runs its blocks, and calls `watch` after each.
    pub(crate) fn run(mut self, watch: impl Fn(usize, &Engine, &Block)) {
        let Some(mut engine) = self.engine.take() else { return };
        for block in &self.blocks {
            engine.run(block);
            watch(self.number, &engine, block);
        }
        self.engine = Some(engine);
    }
}

/// Gives the model back; one that is lost in a panic breaks the queue, so that nobody waits for it.
impl Drop for TakenModel<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.is_broken |= self.engine.is_none();
        let model = &mut state.models[self.number];
        model.engine = self.engine.take();
        model.next += self.blocks.len() as u64;
        self.blocks.clear();
        let least = state.models.iter().map(|model| model.next).min().unwrap_or(0);
        while state.first < least {
            state.blocks.pop_front();
            state.first += 1;
        }
        self.queue.changed.notify_all();
    }
}
