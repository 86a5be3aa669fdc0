//! Model runs of one program with different windows huge; what was run once is remembered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use lookaside_engine::{Detail, Engine, PagePolicy, ProcessRange, Setup};
use lookaside_machine::PageSize;
use lookaside_trace::Block;

use super::{Window, WINDOW_BYTES};
use crate::lock::bench::side_by_side;
use crate::plan::PlanError;

/// Where sets of huge windows are tried out.
pub struct HugePageBench<'a> {
    setup: Setup,
    /// The windows are of files' code, and not of memory.
    of_code: bool,
    blocks: &'a [Block],
    stop: &'a AtomicBool,
    /// Cycles of the whole run for one of `blocks`.
    scale: f64,
    known: BTreeMap<Vec<Window>, f64>,
}

impl<'a> HugePageBench<'a> {
    /// Of a setup with base pages. Cycles are those of `blocks`, scaled so that base pages alone cost `whole_cycles`,
    /// what they cost over all of the trace that the blocks are parts of.
    ///
    /// # Errors
    /// A setup that can't be run; stopped.
    pub fn new(base: &Setup, blocks: &'a [Block], whole_cycles: f64, stop: &'a AtomicBool) -> Result<Self, PlanError> {
        Self::begin(base, false, blocks, whole_cycles, stop)
    }

    /// The same for windows of files' code.
    ///
    /// # Errors
    /// As [`HugePageBench::new`].
    pub fn of_code(
        base: &Setup,
        blocks: &'a [Block],
        whole_cycles: f64,
        stop: &'a AtomicBool,
    ) -> Result<Self, PlanError> {
        Self::begin(base, true, blocks, whole_cycles, stop)
    }

    fn begin(
        base: &Setup,
        of_code: bool,
        blocks: &'a [Block],
        whole_cycles: f64,
        stop: &'a AtomicBool,
    ) -> Result<Self, PlanError> {
        let mut setup = base.clone();
        setup.detail = Detail::Totals;
        setup.os.huge_page = Some(PageSize::M2);
        let mut bench = Self { setup, of_code, blocks, stop, scale: 1.0, known: BTreeMap::new() };
        let tried = bench.cycles(&[])?;
        if tried > 0.0 && tried != whole_cycles {
            bench.scale = whole_cycles / tried;
        }
        Ok(bench)
    }

    /// Translation cycles with these windows huge from their first touch on. Their order plays no part.
    ///
    /// # Errors
    /// A setup that can't be run; stopped.
    pub fn cycles(&mut self, huge: &[Window]) -> Result<f64, PlanError> {
        self.try_all(std::slice::from_ref(&huge.to_vec()))?;
        Ok(self.known.get(&key(huge)).map_or(0.0, |cycles| cycles * self.scale))
    }

    /// Runs all sets that were not run before, side by side.
    ///
    /// # Errors
    /// As [`HugePageBench::cycles`].
    pub(crate) fn try_all(&mut self, sets: &[Vec<Window>]) -> Result<(), PlanError> {
        let mut new: Vec<Vec<Window>> = sets.iter().map(|set| key(set)).collect();
        new.sort_unstable();
        new.dedup();
        new.retain(|set| !self.known.contains_key(set));
        let results = side_by_side(new.len(), |job| self.run(&new[job]));
        for (set, cycles) in new.into_iter().zip(results) {
            self.known.insert(set, cycles?);
        }
        Ok(())
    }

    /// Model runs so far.
    pub fn runs(&self) -> u64 {
        self.known.len() as u64
    }

    fn run(&self, huge: &[Window]) -> Result<f64, PlanError> {
        let mut setup = self.setup.clone();
        setup.os.pages = match (huge.is_empty(), self.of_code) {
            (true, _) => PagePolicy::Base,
            (false, true) => PagePolicy::SelectiveFiles(ranges(huge)),
            (false, false) => PagePolicy::Selective(ranges(huge)),
        };
        let mut engine = Engine::new(setup)?;
        for block in self.blocks {
            if self.stop.load(Ordering::Relaxed) {
                return Err(PlanError::Stopped);
            }
            engine.run(block);
        }
        Ok(engine.outcome().translation_cycles())
    }
}

fn key(set: &[Window]) -> Vec<Window> {
    let mut key = set.to_vec();
    key.sort_unstable();
    key.dedup();
    key
}

/// Ascending windows as ranges, neighbours as one: the engine looks through all of them at a page's first touch.
fn ranges(windows: &[Window]) -> Vec<ProcessRange> {
    let mut all: Vec<ProcessRange> = Vec::new();
    for window in windows {
        let (process, start) = (Some(window.process), window.addr);
        let end = start.saturating_add(WINDOW_BYTES);
        match all.last_mut().filter(|before| (before.process, before.end) == (process, start)) {
            Some(before) => before.end = end,
            None => all.push(ProcessRange { process, start, end }),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_process_are_one_range() {
        let window = |process, number: u64| Window { process, addr: number * WINDOW_BYTES };
        let range = |process, from: u64, to: u64| ProcessRange {
            process: Some(process),
            start: from * WINDOW_BYTES,
            end: to * WINDOW_BYTES,
        };
        let windows = [window(1, 1), window(1, 2), window(1, 4), window(2, 5), window(2, 6)];
        assert_eq!(ranges(&windows), [range(1, 1, 3), range(1, 4, 5), range(2, 5, 7)]);
        assert_eq!(key(&[window(2, 1), window(1, 3), window(2, 1)]), [window(1, 3), window(2, 1)]);
    }
}
