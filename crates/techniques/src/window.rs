//! A source that lets through windows spread over another: for model runs on a budget.

use lookaside_stats::finalise;
use lookaside_trace::{Block, Damage, Source, TraceError, TraceInfo};

use crate::slice::cut;

/// Where the windows of a run lie: one somewhere in each of so many equal parts, by chance, and before each a stretch
/// that warms up whatever looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowPlan {
    /// Seed of the chance.
    seed: u64,
    /// Recorded accesses of a part.
    every: u64,
    /// Before a window.
    warming: u64,
    /// In a window.
    counted: u64,
}

/// What an access is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stretch {
    Skipped,
    Warming,
    Counted,
}

impl WindowPlan {
    /// Windows that a budget is spent on.
    pub const WINDOWS: u64 = 64;

    /// Of `total` recorded accesses about `budget` are in windows, and `warming` pass before each. `None` where the
    /// windows and their warming would be all of the run, or more: it is then run whole.
    pub fn new(total: u64, budget: u64, warming: u64, seed: u64) -> Option<Self> {
        let (every, counted) = (total / Self::WINDOWS, (budget / Self::WINDOWS).max(1));
        (warming.saturating_add(counted) < every).then_some(Self { seed, every, warming, counted })
    }

    /// The same windows, each of `counted` accesses or half of its part, and as much of `warming` before it as there
    /// is: for a run of at least two accesses a window. `None`: it is shorter.
    pub fn short(total: u64, counted: u64, warming: u64, seed: u64) -> Option<Self> {
        let part = total / Self::WINDOWS;
        let counted = counted.clamp(1, (part / 2).max(1));
        Self::new(total, counted * Self::WINDOWS, warming.min(part.saturating_sub(counted + 1)), seed)
    }

    /// What the access of this number is for, and how many from it on are for the same.
    fn stretch(&self, number: u64) -> (Stretch, u64) {
        let (part, at) = (number / self.every, number % self.every);
        if part >= Self::WINDOWS {
            return (Stretch::Skipped, u64::MAX);
        }
        let warms = self.begin(part);
        let (begin, end) = (warms + self.warming, warms + self.warming + self.counted);
        match () {
            () if at < warms => (Stretch::Skipped, warms - at),
            () if at < begin => (Stretch::Warming, begin - at),
            () if at < end => (Stretch::Counted, end - at),
            () => (Stretch::Skipped, self.every - at),
        }
    }

    /// Where in a part its window's warming begins: anywhere where there is room.
    fn begin(&self, part: u64) -> u64 {
        let room = self.every - self.warming - self.counted;
        // Of 2^64 numbers, as many fall on each place, but for one.
        finalise(finalise(self.seed).wrapping_add(part)) % (room + 1)
    }

    /// From the access after so many that were let through to the next window, or 0 in one.
    pub(crate) fn until_window(&self, passed: u64) -> u64 {
        self.warming.saturating_sub(passed % (self.warming + self.counted))
    }

    /// Of an access that is let through: it is the first of a window, by the number of those before it that were.
    pub(crate) fn begins_window(&self, passed: u64) -> bool {
        passed % (self.warming + self.counted) == self.warming
    }

    /// So many that were let through are whole windows.
    pub(crate) fn ends_window(&self, passed: u64) -> bool {
        passed.is_multiple_of(self.warming + self.counted)
    }
}

/// Lets through the windows of a plan with their warming, or all where there is no plan. Events pass always, but for
/// those that speak of left-out accesses. No block reaches over the border of a window.
pub struct SampledWindows<S> {
    inner: S,
    plan: Option<WindowPlan>,
    /// Recorded accesses before those of the block that are left.
    seen: u64,
    block: Block,
    /// Accesses of the block that are done with.
    done: usize,
}

impl<S: Source> SampledWindows<S> {
    /// From the source's beginning.
    pub fn new(inner: S, plan: Option<WindowPlan>) -> Self {
        Self { inner, plan, seen: 0, block: Block::default(), done: 0 }
    }
}

impl<S: Source> Source for SampledWindows<S> {
    fn info(&self) -> &TraceInfo {
        self.inner.info()
    }

    fn next_block(&mut self, part: &mut Block) -> Result<bool, TraceError> {
        let Some(plan) = self.plan else { return self.inner.next_block(part) };
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

    proptest! {
        /// What passes is what a look at each access by itself lets pass, with all events, and cut at the borders.
        #[test]
        fn windows_are_those_of_the_plan(
            lengths in prop::collection::vec((0usize..200, 0usize..200), 1..60), budget in 64u64..2400, warming in 0u64..80,
            seed in any::<u64>(),
        ) {
            let mut number = 0u64;
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
                block
            }).collect();
            let total = number;
            let plan = WindowPlan::new(total, budget, warming, seed);
            let passes = |number: u64| plan.is_none_or(|plan| {
                let part = total / WindowPlan::WINDOWS;
                let (window, at) = (number / part, number % part);
                let begin = plan.begin(window);
                assert!(begin + warming + plan.counted <= part);
                window < WindowPlan::WINDOWS && (begin..begin + warming + plan.counted).contains(&at)
            });
            let mut source = SampledWindows::new(MemorySource::new(TraceInfo::default(), blocks), plan);
            let (mut part, mut passed, mut events) = (Block::default(), Vec::new(), 0);
            while source.next_block(&mut part).expect("memory") {
                if let (Some(plan), Some(_)) = (plan, part.addr.first()) {
                    let length = (plan.warming + plan.counted) as usize;
                    let (before, after) = (passed.len() % length, passed.len() % length + part.len());
                    let warming = plan.warming as usize;
                    prop_assert!(after <= warming || before >= warming && after <= length, "{plan:?} {before}..{after}");
                }
                passed.extend_from_slice(&part.addr);
                events += part.events.len();
            }
            prop_assert_eq!(events, lengths.len());
            prop_assert_eq!(passed, (0..total).filter(|&number| passes(number)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn each_stretch_ends_where_the_next_one_begins() {
        use Stretch::{Counted, Skipped, Warming};
        let plan = WindowPlan { seed: 7, every: 100, warming: 20, counted: 10 };
        let stretches = |numbers: &[u64]| numbers.iter().map(|&number| plan.stretch(number)).collect::<Vec<_>>();
        for part in [0, WindowPlan::WINDOWS - 1] {
            let (start, begin) = (100 * part, 100 * part + plan.begin(part));
            let before = plan.begin(part);
            assert!(before > 0 && before < 70, "neither end of a part is tried: choose another seed");
            assert_eq!(stretches(&[start, begin - 1]), [(Skipped, before), (Skipped, 1)]);
            let expected = [(Warming, 20), (Warming, 1), (Counted, 10), (Counted, 1), (Skipped, 70 - before)];
            assert_eq!(stretches(&[0, 19, 20, 29, 30].map(|at| begin + at)), expected, "{part}");
            assert_eq!(stretches(&[start + 99]), [(Skipped, 1)]);
        }
        assert_eq!(stretches(&[6400, 6424, 9999]), [(Skipped, u64::MAX); 3]);
    }

    #[test]
    fn windows_begin_anywhere() {
        let plan = |seed| WindowPlan { seed, every: 13, warming: 3, counted: 2 };
        let mut seen = [0u32; 9];
        for seed in 0..1000 {
            (0..WindowPlan::WINDOWS).for_each(|part| seen[plan(seed).begin(part) as usize] += 1);
        }
        // 7111 each on average, with a standard deviation of 80.
        assert!(seen.iter().all(|&times| (6750..7470).contains(&times)), "{seen:?}");
    }

    #[test]
    fn what_is_said_of_left_out_accesses_is_left_out_too() {
        // One access of each ten passes.
        let plan = WindowPlan::new(640, 64, 0, 1);
        let passes = |number: u64| plan.is_some_and(|plan| plan.begin(number / 10) == number % 10);
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
        let mut source = SampledWindows::new(MemorySource::new(TraceInfo::default(), vec![block]), plan);
        let (mut part, mut left) = (Block::default(), Vec::new());
        while source.next_block(&mut part).expect("memory") {
            left.append(&mut part.window_events);
        }
        let kept = (0..640)
            .filter(|&number| is_told(number) && passes(number))
            .flat_map(|addr| [WindowEvent::leave(0, addr, Kind::Load, 0, 0), WindowEvent::touch(0, addr, Kind::Load)]);
        assert_eq!(left, kept.collect::<Vec<_>>());
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
        for plan in [None, WindowPlan::new(12_864, 6400, 100, 1)] {
            let mut source = SampledWindows::new(Torn(info.clone(), damage.clone()), plan);
            assert_eq!((source.info(), source.damage()), (&info, &damage[..]));
            let mut block = Block { addr: vec![1], ..Block::default() };
            assert!(!source.next_block(&mut block).expect("an end") && block.is_empty());
        }
    }

    #[test]
    fn short_windows_take_the_warming_that_there_is() {
        let plan = |counted, warming| Some(WindowPlan { seed: 3, every: 100, warming, counted });
        assert_eq!(WindowPlan::short(6400, 10, 1 << 40, 3), plan(10, 89));
        assert_eq!(WindowPlan::short(6400, 1 << 40, 1 << 40, 3), plan(50, 49));
        assert_eq!(WindowPlan::short(6400, 10, 20, 3), plan(10, 20));
        assert_eq!(WindowPlan::short(127, 10, 20, 3), None);
        assert!(WindowPlan::short(128, 10, 20, 3).is_some());
    }

    #[test]
    fn what_is_no_longer_than_its_windows_is_run_whole() {
        assert_eq!(WindowPlan::new(0, 6400, 0, 3), None);
        assert_eq!(WindowPlan::new(6400, 6400, 0, 3), None);
        assert_eq!(WindowPlan::new(12_800, 6400, 100, 3), None);
        let plan = WindowPlan { seed: 3, every: 201, warming: 100, counted: 100 };
        assert_eq!(WindowPlan::new(12_864, 6400, 100, 3), Some(plan));
        assert_eq!([0, 99, 100, 199, 200].map(|passed| plan.until_window(passed)), [100, 1, 0, 0, 100]);
        let begins = [0, 99, 100, 101, 200, 300].map(|passed| plan.begins_window(passed));
        assert_eq!(begins, [false, false, true, false, false, true]);
        let ends = [100, 199, 200, 201, 300, 400].map(|passed| plan.ends_window(passed));
        assert_eq!(ends, [false, false, true, false, false, true]);
    }
}
