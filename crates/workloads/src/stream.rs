//! From a pattern to a source of blocks.

use lookaside_trace::{Block, Event, Granularity, Kind, MapSource, Source, TraceError, TraceInfo};

/// Base page of all streams here, bytes.
pub const PAGE_BYTES: u64 = 4096;

/// Where the streams' memory begins: 2^36, below the user half of every 64-bit format (Sv39 has the smallest,
/// 2^38) and aligned to 1 GiB.
pub const BASE: u64 = 1 << 36;

/// Most pages that a stream walks over, so that no address overflows.
pub(crate) const MOST_PAGES: u64 = 1 << 40;

/// Steps a block, so that a block stays within the second-level cache.
const STEPS_PER_BLOCK: u64 = 16 * 1024;

/// An endless, deterministic sequence of accesses.
pub trait Pattern {
    /// Name, as it stands in the trace's `command`.
    fn name(&self) -> &'static str;

    /// Bytes of memory that it walks over, from offset 0.
    fn bytes(&self) -> u64;

    /// Appends the accesses of the next step, at offsets + `base`.
    fn step(&mut self, base: u64, block: &mut Block);
}

/// A number of steps of a pattern, as a source of blocks of one thread (process 1, thread 1).
#[derive(Clone, Debug)]
pub struct PatternStream<P> {
    pattern: P,
    base: u64,
    left: u64,
    begun: bool,
    info: TraceInfo,
}

impl<P: Pattern> PatternStream<P> {
    /// `steps` steps over memory at [`BASE`].
    pub fn new(pattern: P, steps: u64) -> Self {
        let info = TraceInfo {
            granularity: Granularity::Byte,
            recorder: "workloads".into(),
            command: vec![pattern.name().into()],
            ..TraceInfo::default()
        };
        Self { pattern, base: BASE, left: steps, begun: false, info }
    }

    /// The same over memory at another page-aligned address (formats with 32 address bits need one).
    pub fn at(mut self, base: u64) -> Self {
        self.base = base & !(PAGE_BYTES - 1);
        self
    }
}

impl<P: Pattern> Source for PatternStream<P> {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        block.clear();
        if !self.begun {
            self.begun = true;
            let len = self.pattern.bytes().next_multiple_of(PAGE_BYTES);
            block.push_event(Event::Map { addr: self.base, len, prot: 3, source: MapSource::Anonymous, site: 0 });
        }
        (block.process, block.thread) = (1, 1);
        let steps = self.left.min(STEPS_PER_BLOCK);
        for _ in 0..steps {
            self.pattern.step(self.base, block);
        }
        self.left -= steps;
        Ok(!block.is_empty())
    }
}

/// Pushes one load: what most patterns do a step.
#[inline]
pub(crate) fn load(block: &mut Block, addr: u64) {
    block.push(Kind::Load, addr);
}
