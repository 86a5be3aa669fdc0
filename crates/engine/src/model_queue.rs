//! Models that take their turns at a source's blocks, on no more threads than there are CPUs.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use lookaside_trace::Block;

/// Blocks that may wait for the slowest model: enough to even out blocks of unequal cost.
const MOST_WAITING: usize = 4;

/// All models of a run, and the blocks that not all of them have run.
#[derive(Debug)]
pub(crate) struct ModelQueue<M> {
    state: Mutex<QueueState<M>>,
    changed: Condvar,
}

#[derive(Debug)]
struct QueueState<M> {
    blocks: VecDeque<Arc<Block>>,
    /// Number of the first of `blocks`.
    first: u64,
    models: Vec<QueuedModel<M>>,
    /// No more blocks come.
    is_ended: bool,
    /// A thread that had a model has panicked.
    is_broken: bool,
}

#[derive(Debug)]
struct QueuedModel<M> {
    /// `None` while a thread has it.
    model: Option<M>,
    /// Number of the block that it runs next.
    next: u64,
}

/// A model that a thread has taken, with the blocks that it is to run.
#[derive(Debug)]
pub(crate) struct TakenModel<'a, M> {
    queue: &'a ModelQueue<M>,
    pub(crate) number: usize,
    pub(crate) blocks: Vec<Arc<Block>>,
    model: Option<M>,
}

impl<M> ModelQueue<M> {
    pub(crate) fn new(models: Vec<M>) -> Self {
        let models = models.into_iter().map(|model| QueuedModel { model: Some(model), next: 0 }).collect();
        let state = QueueState { blocks: VecDeque::new(), first: 0, models, is_ended: false, is_broken: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds a block, once there is room for it. `false`: a model is lost, and nobody needs more.
    pub(crate) fn push(&self, block: Arc<Block>) -> bool {
        let has_no_room = |state: &mut QueueState<M>| state.blocks.len() >= MOST_WAITING && !state.is_broken;
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
    pub(crate) fn ended_on_drop(&self) -> QueueEnd<'_, M> {
        QueueEnd(self)
    }

    /// The model that is furthest behind of those that nobody has, once there is one with blocks to run. `None`: there
    /// will be none.
    pub(crate) fn take(&self) -> Option<TakenModel<'_, M>> {
        let mut state = self.lock();
        loop {
            if state.is_broken {
                return None;
            }
            let end = state.first + state.blocks.len() as u64;
            let waiting =
                state.models.iter().enumerate().filter(|(_, model)| model.model.is_some() && model.next < end);
            if let Some((number, next)) =
                waiting.map(|(number, model)| (number, model.next)).min_by_key(|&(_, next)| next)
            {
                let blocks = state.blocks.iter().skip((next - state.first) as usize).cloned().collect();
                let model = state.models[number].model.take();
                return Some(TakenModel { queue: self, number, blocks, model });
            }
            if state.is_ended {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The models, in order, after all threads have come to their ends. Fewer if one was lost.
    pub(crate) fn into_models(self) -> impl Iterator<Item = M> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.models.into_iter().filter_map(|model| model.model)
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`ModelQueue::ended_on_drop`].
#[derive(Debug)]
pub(crate) struct QueueEnd<'a, M>(&'a ModelQueue<M>);

impl<M> Drop for QueueEnd<'_, M> {
    fn drop(&mut self) {
        self.0.lock().is_ended = true;
        self.0.changed.notify_all();
    }
}

impl<M> TakenModel<'_, M> {
    /// Calls `run` with its number, the model, and each of its blocks.
    pub(crate) fn run(mut self, mut run: impl FnMut(usize, &mut M, &Block)) {
        let Some(mut model) = self.model.take() else { return };
        for block in &self.blocks {
            run(self.number, &mut model, block);
        }
        self.model = Some(model);
    }
}

/// Gives the model back; one that is lost in a panic breaks the queue, so that nobody waits for it.
impl<M> Drop for TakenModel<'_, M> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.is_broken |= self.model.is_none();
        let model = &mut state.models[self.number];
        model.model = self.model.take();
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
