//! What a job does: the accesses of one round, over and over, as fast as its task goes.

use lookaside_trace::{Block, Kind, Source, TraceError};

/// Bytes of a page: the base page, which is what is coloured.
pub const PAGE_BYTES: u64 = 4096;

/// Bytes of a line, in every machine description so far.
const LINE_BYTES: u64 = 64;

/// What each job of a task does.
///
/// ```
/// use lookaside_techniques::color::work::Work;
///
/// let work = Work::stores(&[0x1000, 0x3000], 1000);
/// assert_eq!(work.pages(), [0x1000, 0x3000]);
/// assert_eq!(work.placed(&[0x8000, 0x9000])?.pages(), [0x8000, 0x9000]);
/// # Ok::<(), lookaside_techniques::color::work::TooFewPages>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    pub(super) round: Vec<Touch>,
    /// Accesses of a round.
    pub(super) accesses: u64,
    /// Accesses in a millisecond of execution.
    pub(super) accesses_per_ms: u64,
}

/// Accesses of one kind to one line, directly one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) kind: Kind,
    pub(super) addr: u64,
    /// At least 1.
    pub(super) times: u32,
}

/// A recorded task has more pages than it is given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task touches {needed} pages and is given {given}")]
pub struct TooFewPages {
    /// Pages of a round.
    pub needed: usize,
    /// Pages given.
    pub given: usize,
}

impl Work {
    /// A store to each of these addresses in turn (the synthetic tasks of Panchamukhi 2014, section 6.0.8).
    pub fn stores(addrs: &[u64], accesses_per_ms: u64) -> Self {
        let round: Vec<Touch> = addrs.iter().map(|&addr| Touch { kind: Kind::Store, addr, times: 1 }).collect();
        Self { accesses: round.len() as u64, round, accesses_per_ms }
    }

    /// A recorded job, its first `most` accesses; events are left out.
    ///
    /// # Errors
    /// The source cannot be read.
    pub fn record(source: &mut dyn Source, most: u64, accesses_per_ms: u64) -> Result<Self, TraceError> {
        let mut work = Self { round: Vec::new(), accesses: 0, accesses_per_ms };
        let mut block = Block::default();
        while work.accesses < most && source.next_block(&mut block)? {
            for i in 0..block.len() {
                let times = 1 + u64::from(block.repeat.get(i).copied().unwrap_or(0));
                work.push(block.kind[i], block.addr[i], times.min(most - work.accesses));
            }
        }
        Ok(work)
    }

    /// One or more accesses more. An access to the line of the one before changes nothing in TLBs and caches: it is
    /// counted there.
    fn push(&mut self, kind: Kind, addr: u64, times: u64) {
        self.accesses += times;
        let mut left = times;
        if let Some(last) = self.round.last_mut() {
            if last.kind == kind && last.addr / LINE_BYTES == addr / LINE_BYTES {
                let joined = left.min(u64::from(u32::MAX - last.times));
                last.times += joined as u32;
                left -= joined;
            }
        }
        while left > 0 {
            let times = left.min(u64::from(u32::MAX)) as u32;
            self.round.push(Touch { kind, addr, times });
            left -= u64::from(times);
        }
    }

    /// Accesses of a round.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// First bytes of the pages of a round, ascending.
    pub fn pages(&self) -> Vec<u64> {
        let mut pages: Vec<u64> = self.round.iter().map(|touch| page_of(touch.addr)).collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// The same on other pages: its pages in ascending order take the place of each other's in this order. Pages beyond
    /// what it touches are left alone.
    ///
    /// # Errors
    /// There are too few pages.
    pub fn placed(&self, pages: &[u64]) -> Result<Self, TooFewPages> {
        let own = self.pages();
        if pages.len() < own.len() {
            return Err(TooFewPages { needed: own.len(), given: pages.len() });
        }
        let place = |addr: u64| {
            let at = own.partition_point(|&page| page < page_of(addr));
            page_of(pages[at]) + addr % PAGE_BYTES
        };
        let round = self.round.iter().map(|touch| Touch { addr: place(touch.addr), ..*touch }).collect();
        Ok(Self { round, ..*self })
    }

    /// Each page of the round once, as it is first touched.
    pub(super) fn warm_up(&self) -> Self {
        let mut seen = std::collections::HashSet::new();
        let first = self.round.iter().filter(|touch| seen.insert(page_of(touch.addr)));
        let round: Vec<Touch> = first.map(|touch| Touch { times: 1, ..*touch }).collect();
        Self { accesses: round.len() as u64, round, accesses_per_ms: self.accesses_per_ms }
    }
}

/// An address in each page, on a line of its own: the `from`-th line in the first page, the next in the next, so that
/// up to 64 pages meet in no set of a data cache whose ways are of 4 KiB each (Panchamukhi 2014, Figure 6.8).
pub fn on_own_lines(pages: &[u64], from: usize) -> Vec<u64> {
    let lines = PAGE_BYTES / LINE_BYTES;
    (from as u64..).zip(pages).map(|(line, page)| page_of(*page) + line % lines * LINE_BYTES).collect()
}

fn page_of(addr: u64) -> u64 {
    addr & !(PAGE_BYTES - 1)
}

#[cfg(test)]
mod tests {
    use lookaside_trace::{MemorySource, TraceInfo};
    use lookaside_workloads::{Gups, PatternStream, BASE};

    use super::*;

    /// These blocks, of a trace of every access.
    fn source(blocks: Vec<Block>) -> MemorySource {
        MemorySource::new(TraceInfo::default(), blocks)
    }

    #[test]
    fn a_recording_is_the_streams_accesses_in_order() {
        let mut block = Block::default();
        PatternStream::new(Gups::new(64 << 10, 3), 500).next_block(&mut block).expect("a block");
        for most in [0, 1, 777, 1000, 5000] {
            let work = Work::record(&mut PatternStream::new(Gups::new(64 << 10, 3), 500), most, 1).expect("a stream");
            let all =
                work.round.iter().flat_map(|t| std::iter::repeat_n((t.kind, t.addr / LINE_BYTES), t.times as usize));
            let expected = block.kind.iter().zip(&block.addr).map(|(kind, addr)| (*kind, addr / LINE_BYTES));
            let expected: Vec<_> = expected.take(most as usize).collect();
            assert_eq!(all.collect::<Vec<_>>(), expected);
            assert_eq!(work.accesses(), expected.len() as u64);
        }
    }

    #[test]
    fn what_is_placed_keeps_its_order_and_offsets() {
        let work = Work::record(&mut PatternStream::new(Gups::new(64 << 10, 3), 500), 1000, 1).expect("a stream");
        assert_eq!(work.pages(), (0..16).map(|i| BASE + i * PAGE_BYTES).collect::<Vec<_>>());
        let pages: Vec<u64> = (0..17).map(|i| (1 << 40) - i * 7 * PAGE_BYTES).collect();
        let placed = work.placed(&pages).expect("enough");
        for (from, to) in work.round.iter().zip(&placed.round) {
            assert_eq!(to.addr, pages[((from.addr - BASE) / PAGE_BYTES) as usize] + from.addr % PAGE_BYTES);
            assert_eq!((to.kind, to.times), (from.kind, from.times));
        }
        assert_eq!(work.placed(&pages[..16]).as_ref(), Ok(&placed));
        let error = work.placed(&pages[..15]).expect_err("too few").to_string();
        assert_eq!(error, "the task touches 16 pages and is given 15");
    }

    #[test]
    fn a_warm_up_touches_each_page_once() {
        let work = Work::record(&mut PatternStream::new(Gups::new(64 << 10, 3), 500), 1000, 1).expect("a stream");
        let warm = work.warm_up();
        assert_eq!((warm.round.len(), warm.accesses(), warm.pages()), (16, 16, work.pages()));
        assert_eq!(warm.round[0].addr, work.round[0].addr);
    }

    #[test]
    fn lines_are_all_different_up_to_a_page_of_them() {
        let pages: Vec<u64> = (0..40).map(|i| i * 3 * PAGE_BYTES + 5).collect();
        let addrs = on_own_lines(&pages, 30);
        let lines: std::collections::HashSet<u64> = addrs.iter().map(|addr| addr % PAGE_BYTES / LINE_BYTES).collect();
        assert_eq!(lines.len(), 40);
        assert!(addrs.iter().zip(&pages).all(|(addr, page)| page_of(*addr) == page_of(*page)));
    }

    #[test]
    fn repeats_are_accesses_too_and_no_block_is_read_beyond_the_last() {
        let block = |repeat: &[u32]| Block {
            addr: vec![64; repeat.len()],
            kind: vec![Kind::Load; repeat.len()],
            repeat: repeat.into(),
            ..Block::default()
        };
        let record = |repeat: &[u32], most: u64| {
            let mut source = source(vec![block(repeat), block(&[0])]);
            let work = Work::record(&mut source, most, 1).expect("blocks");
            let times: Vec<u32> = work.round.iter().map(|touch| touch.times).collect();
            let mut left = 0;
            while source.next_block(&mut Block::default()).expect("blocks") {
                left += 1;
            }
            (times, work.accesses(), left)
        };
        // 3 + 1 + 5, and one more in the second block.
        for (most, times, blocks_left) in [(0, 0, 2), (8, 8, 1), (9, 9, 1), (10, 10, 0), (11, 10, 0)] {
            let (found, accesses, left) = record(&[2, 0, 4], most);
            assert_eq!((found.iter().sum::<u32>(), accesses, left), (times, u64::from(times), blocks_left), "{most}");
        }
        // A touch is done 2^32 - 1 times at most.
        assert_eq!(record(&[u32::MAX], u64::MAX), (vec![u32::MAX, 2], (1 << 32) + 1, 0));
        assert_eq!(record(&[u32::MAX - 3, 4], u64::MAX), (vec![u32::MAX, 4], (1 << 32) + 3, 0));
    }

    #[test]
    fn only_accesses_of_one_kind_to_one_line_are_joined() {
        use Kind::{Load, Store};
        let block = Block {
            addr: vec![0, 63, 64, 100, 64, 0],
            kind: vec![Load, Load, Load, Store, Store, Load],
            ..Block::default()
        };
        let work = Work::record(&mut source(vec![block]), u64::MAX, 7).expect("a block");
        let touch = |kind, addr, times| Touch { kind, addr, times };
        assert_eq!(work.round, [touch(Load, 0, 2), touch(Load, 64, 1), touch(Store, 100, 2), touch(Load, 0, 1)]);
        assert_eq!(work.warm_up(), Work { round: vec![touch(Load, 0, 1)], accesses: 1, accesses_per_ms: 7 });
    }
}
