//! Compares a trace without a helper to the same with one.

use std::ops::ControlFlow;
use std::sync::mpsc::{sync_channel, Receiver};
use std::sync::Arc;

use lookaside_engine::{RunEnd, Setup};
use lookaside_trace::{Block, Source, TraceError, TraceInfo};

use super::baker::{BakeModelError, BakeResult, BakedProgram, ModelledBaker};
use super::model::model;

/// Blocks that may wait for the slower of the models.
const QUEUED_BLOCKS: usize = 4;

/// One machine's runs over the same accesses.
#[derive(Clone, Debug, PartialEq)]
pub struct BakePair {
    /// Without a helper.
    pub base: BakeResult,
    /// With it.
    pub baked: BakeResult,
}

/// What running them came to.
#[derive(Debug)]
pub struct BakeComparison {
    /// One for each setup, in order. All saw the same accesses.
    pub pairs: Vec<BakePair>,
    /// Why it ended.
    pub end: RunEnd,
}

/// Runs each setup without its helper and with it. The source is read once, the models share the CPUs, and the results
/// are those of [`model`], one by one.
///
/// `progress` is called after each block with the accesses so far, and may stop the run.
///
/// # Errors
/// As [`model`], of the first setup that has one. A source that fails is in [`BakeComparison::end`], with what came
/// before.
pub fn compare_baked(
    runs: &[(Setup, ModelledBaker)],
    source: &mut dyn Source,
    program: &BakedProgram<'_>,
    mut progress: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<BakeComparison, BakeModelError> {
    let info = source.info().clone();
    let both = runs.iter().flat_map(|(setup, baker)| [(setup, None), (setup, Some(baker))]);
    std::thread::scope(|scope| {
        let (senders, models): (Vec<_>, Vec<_>) = both
            .map(|(setup, baker)| {
                let (sender, blocks) = sync_channel::<Arc<Block>>(QUEUED_BLOCKS);
                let mut fed = Fed { info: info.clone(), blocks };
                (sender, scope.spawn(move || model(setup.clone(), &mut fed, program, baker, &[])))
            })
            .unzip();
        let mut accesses = 0;
        let end = loop {
            let mut block = Block::default();
            match source.next_block(&mut block) {
                Ok(true) => {}
                Ok(false) => break RunEnd::Complete,
                Err(error) => break RunEnd::Unreadable(error),
            }
            accesses += block.accesses();
            let block = Arc::new(block);
            // One that takes no more has an error, which the join below gives.
            if senders.iter().any(|sender| sender.send(Arc::clone(&block)).is_err()) {
                break RunEnd::Stopped;
            }
            if progress(accesses).is_break() {
                break RunEnd::Stopped;
            }
        };
        drop(senders);
        let ended: Vec<_> = models.into_iter().map(|model| model.join()).collect();
        let mut results = ended.into_iter().map(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let mut pairs = Vec::new();
        while let (Some(base), Some(baked)) = (results.next(), results.next()) {
            pairs.push(BakePair { base: base?, baked: baked? });
        }
        Ok(BakeComparison { pairs, end })
    })
}

/// Blocks that another thread reads.
struct Fed {
    info: TraceInfo,
    blocks: Receiver<Arc<Block>>,
}

impl Source for Fed {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        match self.blocks.recv() {
            Ok(next) => block.clone_from(&next),
            Err(_) => block.clear(),
        }
        Ok(!block.is_empty())
    }
}
