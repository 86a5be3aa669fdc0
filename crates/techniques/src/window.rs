//! A source that lets through windows spread over another: for model runs on a budget.

use std::io;

use lookaside_trace::{Block, Damage, Source, TraceError, TraceInfo, BLOCK_ACCESSES};

use crate::recent_uses::{PriorUse, UsesBefore};
use crate::slice::cut;
use crate::window_plan::{Stretch, WindowPlan};

/// Lets through the windows of a plan with their warming, or all where there is no plan. Events pass always, but for
/// those that speak of left-out accesses. No block reaches over the border of a window.
pub struct SampledWindows<S> {
    inner: S,
    plan: Option<WindowPlan>,
    /// Tells what windows are primed with.
    uses: Option<UsesBefore>,
    /// Pages that the next window is still to be primed with, the next one last.
    priming: Vec<PriorUse>,
    /// The window that is primed.
    primed: Option<usize>,
    /// Recorded accesses before those of the block that are left.
    seen: u64,
    block: Block,
    /// Accesses of the block that are done with.
    done: usize,
}

impl<S: Source> SampledWindows<S> {
    /// From the source's beginning.
    pub fn new(inner: S, plan: Option<WindowPlan>) -> Self {
        Self { inner, plan, uses: None, priming: Vec::new(), primed: None, seen: 0, block: Block::default(), done: 0 }
    }

    /// The same, with windows primed by what was used before them, if the plan says so.
    pub(crate) fn primed(inner: S, plan: Option<WindowPlan>, uses: Option<UsesBefore>) -> Self {
        Self { uses, ..Self::new(inner, plan) }
    }

    /// What the window is primed with that begins with the next access: as many pages as the plan says. Where fewer were
    /// used, the first of these is used more often.
    fn pages_before(&self, most: u64) -> io::Result<Vec<PriorUse>> {
        let mut pages = match &self.uses {
            Some(uses) => uses.of(self.seen, most as usize)?,
            None => Vec::new(),
        };
        let (process, thread) = (self.block.process, self.block.thread);
        let next = PriorUse { process, thread, addr: self.block.addr[self.done], kind: self.block.kind[self.done] };
        let first = pages.first().copied().unwrap_or(next);
        pages.reverse();
        pages.resize(most as usize, first);
        Ok(pages)
    }

    /// A block of the pages that a window is still to be primed with: those of one thread.
    fn prime(&mut self, part: &mut Block) {
        part.clear();
        let Some(last) = self.priming.last() else { return };
        (part.process, part.thread) = (last.process, last.thread);
        while let Some(page) = self
            .priming
            .pop_if(|page| (page.process, page.thread) == (part.process, part.thread) && part.len() < BLOCK_ACCESSES)
        {
            part.push(page.kind, page.addr);
        }
    }
}

impl<S: Source> Source for SampledWindows<S> {
    fn info(&self) -> &TraceInfo {
        self.inner.info()
    }

    fn next_block(&mut self, part: &mut Block) -> Result<bool, TraceError> {
        let Some(plan) = &self.plan else { return self.inner.next_block(part) };
        if self.done == self.block.len() {
            self.done = 0;
            while let (Stretch::Skipped, left) = plan.stretch(self.seen) {
                let skipped = self.inner.skip(left);
                self.seen += skipped;
                if skipped == 0 {
                    break;
                }
            }
            if !self.inner.next_block(&mut self.block)? {
                self.block.clear();
                part.clear();
                return Ok(false);
            }
        }
        let (stretch, left) = plan.stretch(self.seen);
        if stretch != Stretch::Skipped && self.done < self.block.len() {
            let window = plan.window_at(self.seen);
            if self.primed.replace(window) != Some(window) {
                let what = "temporary file".to_string();
                self.priming = self.pages_before(plan.primed()).map_err(|source| TraceError::Io { what, source })?;
            }
            if !self.priming.is_empty() {
                self.prime(part);
                return Ok(true);
            }
        }
        let end = self.done + (self.block.len() - self.done).min(usize::try_from(left).unwrap_or(usize::MAX));
        cut(&self.block, self.done..end, part);
        self.seen += (end - self.done) as u64;
        self.done = end;
        if stretch == Stretch::Skipped {
            let events = std::mem::take(&mut part.events);
            part.clear();
            part.events = events.into_iter().map(|(_, event)| (0, event)).collect();
        }
        Ok(true)
    }

    fn damage(&self) -> &[Damage] {
        self.inner.damage()
    }
}

#[cfg(test)]
mod tests {
    use lookaside_trace::{Event, Kind, MemorySource, WindowEvent};
    use proptest::prelude::*;

    use super::*;
    use crate::cost_curve::CostCurve;
    use crate::spool::Spool;

    /// Is the access of this number in a window or its warming?
    fn passes(plan: &WindowPlan, number: u64) -> bool {
        plan.windows().iter().any(|window| (window.warms..window.end).contains(&number))
    }

    proptest! {
        /// What passes is what a look at each access by itself lets pass, with all events, and cut at the borders.
        #[test]
        fn windows_are_those_of_the_plan(
            lengths in prop::collection::vec((0usize..200, 0usize..200), 1..60), budget in 64u64..2400, warming in 0u64..80,
            seed in any::<u64>(), by_cost in any::<bool>(),
        ) {
            let mut number = 0u64;
            let mut costs = CostCurve::default();
            let blocks: Vec<Block> = lengths.iter().map(|&(length, event)| {
                let mut block = Block { process: 1, thread: 1, ..Block::default() };
                for at in 0..=length {
                    if at == event.min(length) {
                        block.push_event(Event::Free { addr: number });
                    }
                    if at < length {
                        block.push(Kind::Load, number);
                        number += 1;
                    }
                }
                costs.push(number, (event * event) as f64 + costs.visits() as f64);
                block
            }).collect();
            let plan = match by_cost {
                true => WindowPlan::by_cost(&costs, budget, warming, seed),
                false => WindowPlan::even(number, budget, warming, seed),
            };
            let passing = |number: u64| plan.as_ref().is_none_or(|plan| passes(plan, number));
            let mut source = SampledWindows::new(MemorySource::new(TraceInfo::default(), blocks), plan.clone());
            let (mut part, mut passed, mut events) = (Block::default(), Vec::new(), 0);
            let (mut begun, mut ended) = (u32::from(plan.as_ref().is_some_and(|plan| plan.begins_window(0))), 0);
            while source.next_block(&mut part).expect("memory") {
                if let (Some(plan), Some(&first)) = (&plan, part.addr.first()) {
                    let window = plan.windows()[plan.window_at(first)];
                    let last = *part.addr.last().expect("not empty");
                    prop_assert!(last < window.begin || first >= window.begin && last < window.end, "{first} {last} {window:?}");
                    let before = passed.len() as u64;
                    prop_assert_eq!(plan.until_window(before), window.begin.saturating_sub(first));
                    let after = before + part.len() as u64;
                    begun += u32::from(plan.begins_window(after));
                    ended += u32::from(plan.ends_window(after));
                    prop_assert_eq!(plan.ends_window(after), last + 1 == window.end);
                }
                passed.extend_from_slice(&part.addr);
                events += part.events.len();
            }
            prop_assert_eq!(events, lengths.len());
            prop_assert_eq!(passed, (0..number).filter(|&number| passing(number)).collect::<Vec<_>>());
            let windows = plan.map_or(0, |plan| plan.windows().len() as u32);
            prop_assert_eq!((begun, ended), (windows, windows));
        }
    }

    #[test]
    fn what_is_said_of_left_out_accesses_is_left_out_too() {
        // One access of each ten passes.
        let plan = WindowPlan::even(640, 64, 0, 1).expect("windows");
        let is_told = |number: u64| number.is_multiple_of(3);
        let mut block = Block::default();
        for number in 0..640 {
            if is_told(number) {
                block.push_leave(number, Kind::Load, 0, 0);
                block.push_touch(number, Kind::Load);
                block.push_event(Event::Free { addr: number });
            }
            block.push(Kind::Load, number);
        }
        let memory = MemorySource::new(TraceInfo::default(), vec![block]);
        let mut source = SampledWindows::new(memory, Some(plan.clone()));
        let (mut part, mut left) = (Block::default(), Vec::new());
        while source.next_block(&mut part).expect("memory") {
            left.append(&mut part.window_events);
        }
        let kept = (0..640)
            .filter(|&number| is_told(number) && passes(&plan, number))
            .flat_map(|addr| [WindowEvent::leave(0, addr, Kind::Load, 0, 0), WindowEvent::touch(0, addr, Kind::Load)]);
        assert_eq!(left, kept.collect::<Vec<_>>());
    }

    #[test]
    fn windows_are_primed_with_what_was_used_last() {
        // 400 pages, round and round; of each 16,384 accesses two hundred are in a window.
        let mut spool = Spool::new(&TraceInfo::default()).expect("a temporary file");
        for number in 0..256u64 {
            let mut block = Block { process: 1, thread: (number % 2) as u32, ..Block::default() };
            (0..4096).for_each(|at| block.push(Kind::Store, ((number * 4096 + at) % 400) << 12 | 8));
            spool.run(&block);
        }
        spool.finish();
        let plan = WindowPlan::even(1 << 20, 64 * 200, 0, 1).expect("windows").primed_with(300);
        let reader = spool.open().expect("a temporary file");
        let uses = spool.uses_before().expect("a temporary file");
        let mut source = SampledWindows::primed(reader, Some(plan.clone()), Some(uses.clone()));
        let (mut part, mut window, mut let_through) = (Block::default(), 0, 0u64);
        let mut primed = Vec::new();
        while source.next_block(&mut part).expect("memory") {
            if part.addr.is_empty() {
                continue;
            }
            if plan.until_window(let_through) > 0 {
                let of = |(&addr, &kind)| PriorUse { process: part.process, thread: part.thread, addr, kind };
                primed.extend(part.addr.iter().zip(&part.kind).map(of));
            } else if let_through == 0 || plan.begins_window(let_through) {
                // Before the first stretch's end nothing is known.
                let mut expected = uses.of(plan.windows()[window].begin, 300).expect("a file");
                if expected.is_empty() {
                    expected =
                        vec![PriorUse { process: 1, thread: part.thread, addr: part.addr[0], kind: Kind::Store }];
                }
                let repeated = vec![expected[0]; 300 - expected.len()];
                assert_eq!(std::mem::take(&mut primed), [repeated, expected].concat(), "{window}");
                window += 1;
            }
            let_through += part.len() as u64;
        }
        assert_eq!((window, let_through), (64, 64 * 500));
    }

    /// The counts of what is let through are then the same.
    #[test]
    fn where_no_uses_are_known_a_window_is_primed_with_its_own_first_access() {
        let mut block = Block { process: 1, thread: 1, ..Block::default() };
        (0..640).for_each(|number| block.push(Kind::Load, number));
        let plan = WindowPlan::even(640, 64, 0, 1).expect("windows").primed_with(3);
        let mut source = SampledWindows::new(MemorySource::new(TraceInfo::default(), vec![block]), Some(plan.clone()));
        let (mut part, mut passed) = (Block::default(), Vec::new());
        while source.next_block(&mut part).expect("memory") {
            passed.extend_from_slice(&part.addr);
        }
        let expected: Vec<u64> = plan.windows().iter().flat_map(|window| [window.begin; 4]).collect();
        assert_eq!(passed, expected);
    }

    /// A source that is damaged, and otherwise empty.
    struct Torn(TraceInfo, [Damage; 1]);

    impl Source for Torn {
        fn info(&self) -> &TraceInfo {
            &self.0
        }

        fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
            block.clear();
            Ok(false)
        }

        fn damage(&self) -> &[Damage] {
            &self.1
        }
    }

    #[test]
    fn windows_say_of_themselves_what_the_source_says() {
        let info = TraceInfo { recorder: "valgrind".into(), ..TraceInfo::default() };
        let damage = [Damage { offset: 3, len: 5, reason: "torn".into() }];
        for plan in [None, WindowPlan::even(12_864, 6400, 100, 1)] {
            let mut source = SampledWindows::new(Torn(info.clone(), damage.clone()), plan);
            assert_eq!((source.info(), source.damage()), (&info, &damage[..]));
            let mut block = Block { addr: vec![1], ..Block::default() };
            assert!(!source.next_block(&mut block).expect("an end") && block.is_empty());
        }
    }
}
