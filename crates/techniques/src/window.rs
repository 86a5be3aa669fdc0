//! A source that lets through evenly spaced windows of another: for model runs on a budget.

use lookaside_trace::{Block, Damage, Event, Source, TraceError, TraceInfo};

/// SampledWindows that a budget is spent on. Of eight million recorded accesses each has then half a million, which refill the
/// largest modelled TLB some 250 times over: what a window inherits from the gap before it is lost in its count.
const WINDOWS: u64 = 16;

/// Lets through one window in every `every`; events pass always, but for those that speak of left-out accesses.
pub struct SampledWindows<S> {
    inner: S,
    every: u64,
    /// Recorded accesses in a window.
    length: u64,
    seen: u64,
}

impl<S: Source> SampledWindows<S> {
    /// So many windows are left out that about `budget` of `total` recorded accesses pass.
    pub fn new(inner: S, total: u64, budget: u64) -> Self {
        Self { inner, every: total.div_ceil(budget.max(1)).max(1), length: (budget / WINDOWS).max(1), seen: 0 }
    }
}

impl<S: Source> Source for SampledWindows<S> {
    fn info(&self) -> &TraceInfo {
        self.inner.info()
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        if !self.inner.next_block(block)? {
            return Ok(false);
        }
        let window = self.seen / self.length;
        self.seen += block.len() as u64;
        if !window.is_multiple_of(self.every) {
            let events = std::mem::take(&mut block.events);
            block.clear();
            let pass =
                events.into_iter().filter(|(_, event)| !matches!(event, Event::Leave { .. } | Event::Touch { .. }));
            block.events = pass.map(|(_, event)| (0, event)).collect();
        }
        Ok(true)
    }

    fn damage(&self) -> &[Damage] {
        self.inner.damage()
    }
}
