//! Blocks in memory as a source.

use crate::{Block, Source, TraceError, TraceInfo};

/// Blocks made beforehand, one after the other.
///
/// ```
/// use lookaside_trace::{Block, Kind, MemorySource, Source, TraceInfo};
///
/// let mut own = Block { process: 1, thread: 1, ..Block::default() };
/// own.push(Kind::Load, 0x1000);
/// let mut source = MemorySource::new(TraceInfo::default(), vec![own.clone()]);
/// let mut block = Block::default();
/// assert!(source.next_block(&mut block)? && block == own);
/// assert!(!source.next_block(&mut block)?);
/// # Ok::<(), lookaside_trace::TraceError>(())
/// ```
#[derive(Debug)]
pub struct MemorySource {
    info: TraceInfo,
    blocks: std::vec::IntoIter<Block>,
}

impl MemorySource {
    /// These blocks, of a trace that says this of itself.
    pub fn new(info: TraceInfo, blocks: Vec<Block>) -> Self {
        Self { info, blocks: blocks.into_iter() }
    }
}

impl Source for MemorySource {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        let next = self.blocks.next();
        let is_there = next.is_some();
        *block = next.unwrap_or_default();
        Ok(is_there)
    }
}
