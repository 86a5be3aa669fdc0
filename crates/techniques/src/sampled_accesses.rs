//! Reads a source once, and keeps a sample of its accesses in memory, for many model runs.

use std::io;

use lookaside_trace::{Block, Source, TraceError};

use crate::spool::Spool;
use crate::window::SampledWindows;
use crate::window_plan::WindowPlan;

/// Recorded accesses that locks or huge pages are tried on at the most. A plan takes some hundred runs over them, of a
/// quarter of a second.
const TRIED_ACCESSES: u64 = 2 << 20;
/// Of where windows lie: a recording has one plan.
const SEED: u64 = 1;

/// A sample of a source's accesses, on which locks or huge pages are tried.
pub(crate) struct SampledAccesses {
    /// All accesses, or those in windows spread over the run.
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
    let plan = WindowPlan::even(spooled, TRIED_ACCESSES, 0, SEED);
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

#[cfg(test)]
mod tests {
    use lookaside_trace::{Event, Kind, TraceInfo};

    use super::*;

    /// Blocks from memory, and maybe an error behind them.
    struct Blocks(TraceInfo, std::vec::IntoIter<Block>, Option<TraceError>);

    impl Source for Blocks {
        fn info(&self) -> &TraceInfo {
            &self.0
        }

        fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
            *block = self.1.next().unwrap_or_default();
            match self.2.take_if(|_| block.is_empty()) {
                Some(error) => Err(error),
                None => Ok(!block.is_empty()),
            }
        }
    }

    /// Blocks of three processes with so many accesses each.
    fn blocks() -> Vec<Block> {
        let block = |(process, accesses): (u32, u64)| {
            let mut block = Block { process, thread: process, ..Block::default() };
            block.push_event(Event::Free { addr: 1 });
            (0..accesses).for_each(|at| block.push(Kind::Load, at << 12));
            block
        };
        [(1, 300), (2, 500), (3, 200)].map(block).to_vec()
    }

    #[test]
    fn a_short_run_is_tried_whole() {
        let error = || TraceError::Format { what: "it".into(), place: "here".into(), reason: "torn".into() };
        for torn in [None, Some(error())] {
            let is_torn = torn.is_some();
            let mut source = Blocks(TraceInfo::default(), blocks().into_iter(), torn);
            let mut seen = Vec::new();
            let sampled = SampledAccesses::pull(&mut source, &mut |block| seen.push(block.clone())).expect("a file");
            assert_eq!(seen, blocks());
            assert_eq!(sampled.blocks, blocks());
            assert_eq!((sampled.tried, sampled.recorded, sampled.share(), sampled.full), (1000, 1000, 1.0, None));
            assert_eq!(sampled.error.map(|e| e.to_string()), is_torn.then(|| error().to_string()));
        }
    }

    #[test]
    fn the_share_is_of_the_recorded_accesses() {
        let share =
            |tried, recorded| SampledAccesses { blocks: Vec::new(), tried, recorded, full: None, error: None }.share();
        assert_eq!([share(3, 4), share(0, 4), share(0, 0)], [0.75, 0.0, 1.0]);
    }

    #[test]
    fn of_a_run_that_is_too_long_windows_are_kept_and_nothing_between_them() {
        let spool = || {
            let mut spool = Spool::new(&TraceInfo::default()).expect("a file");
            blocks().iter().for_each(|block| spool.run(&Block { events: Vec::new(), ..block.clone() }));
            spool.finish();
            spool
        };
        let accesses = |spooled| {
            let kept = kept(&mut spool(), spooled).expect("what was spooled");
            (kept.len(), kept.iter().map(Block::len).sum::<usize>())
        };
        assert_eq!(accesses(TRIED_ACCESSES), (3, 1000));
        // As if there were more: a window somewhere in each part, whose first accesses it may miss.
        let part = TRIED_ACCESSES / WindowPlan::WINDOWS;
        let of = |more: u64| accesses(WindowPlan::WINDOWS * (part + more)).1;
        assert!((1000 - 16..=1000).contains(&of(16)));
        assert!((1..1000).contains(&of(1600)), "{}", of(1600));
        assert_eq!(of(1 << 40), 0);
    }
}
