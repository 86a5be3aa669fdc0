//! Reads a source once, and keeps a sample of its accesses in memory, for many model runs.

use std::io;

use lookaside_trace::{Block, Source, TraceError};

use crate::spool::Spool;
use crate::window::{SampledWindows, WindowPlan};

/// Recorded accesses that locks or huge pages are tried on at the most. A plan takes some hundred runs over them, of a quarter of a second.
const TRIED_ACCESSES: u64 = 2 << 20;

/// A sample of a source's accesses, on which locks or huge pages are tried.
pub(crate) struct SampledAccesses {
    /// All accesses, or evenly spaced windows of them.
    pub(crate) blocks: Vec<Block>,
    /// Recorded accesses in them.
    pub(crate) tried: u64,
    /// Recorded accesses in all.
    pub(crate) recorded: u64,
    /// Why they are of the first part of the run only; `None` = they are not.
    pub(crate) full: Option<String>,
    /// The source ended with this error; what came before it counts.
    pub(crate) error: Option<TraceError>,
}

impl SampledAccesses {
    /// Pulls a source to its end; `each` sees every block.
    ///
    /// # Errors
    /// A temporary file can't be made or read.
    pub(crate) fn pull(source: &mut dyn Source, each: &mut dyn FnMut(&Block)) -> io::Result<Self> {
        let mut spool = Spool::new(source.info())?;
        let (mut block, mut recorded) = (Block::default(), 0);
        let error = loop {
            match source.next_block(&mut block) {
                Ok(true) => {}
                Ok(false) => break None,
                Err(e) => break Some(e),
            }
            each(&block);
            spool.run(&block);
            recorded += block.len() as u64;
        };
        let (spooled, full) = spool.finish();
        let blocks = kept(&mut spool, spooled)?;
        let tried = blocks.iter().map(|block| block.len() as u64).sum();
        Ok(Self { blocks, tried, recorded, full, error })
    }

    /// Of the recorded accesses, the share that is tried; 1 = all.
    pub(crate) fn share(&self) -> f64 {
        if self.recorded == 0 {
            1.0
        } else {
            self.tried as f64 / self.recorded as f64
        }
    }
}

/// What was spooled, as much as is tried.
fn kept(spool: &mut Spool, spooled: u64) -> io::Result<Vec<Block>> {
    let plan = WindowPlan::new(spooled, TRIED_ACCESSES, 0);
    let mut source = SampledWindows::new(spool.open()?, plan);
    let mut blocks = Vec::new();
    loop {
        let mut block = Block::default();
        match source.next_block(&mut block) {
            Ok(true) if block.is_empty() => {}
            Ok(true) => blocks.push(block),
            Ok(false) => return Ok(blocks),
            Err(e) => return Err(io::Error::other(e)),
        }
    }
}
