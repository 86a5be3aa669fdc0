//! The accesses, and their times.

use lookaside_probe::counter::{prefetch, GroupTicks, TimedChain, Timer};

use super::memory::PageArea;
use super::plan::{MoveCase, Use};
use super::treatment::MovePattern;

/// A case's accesses to an area's pages.
pub(super) enum Accesses<'a> {
    /// Addresses are computed.
    Sweep { area: &'a PageArea, case: &'a MoveCase },
    /// Addresses are in the pages.
    Chase(TimedChain),
}

/// Ticks of the first accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AccessTicks {
    /// Of the prefetches; 0 where there were none.
    pub restore: u64,
    /// Of the first access to each page.
    pub access: u64,
    /// Of the next, to another line of each.
    pub again: u64,
}

impl<'a> Accesses<'a> {
    /// Those of a case. A chase is written into the pages.
    pub(super) fn new(timer: Timer, area: &'a PageArea, case: &'a MoveCase, seed: u64) -> Self {
        match case.pattern {
            MovePattern::Sweep => Self::Sweep { area, case },
            MovePattern::Chase => {
                let words = |i: u64| [Use::Accessed, Use::Again].map(|line| area.word(case.at(i, line)));
                let words: Vec<[*mut u64; 2]> = case.order(seed).into_iter().map(words).collect();
                // SAFETY: words of the area, that are nobody else's while these accesses live: they borrow it, and one
                // case is measured at a time.
                Self::Chase(unsafe { TimedChain::link(timer, &words, words.len()) })
            }
        }
    }

    /// All pages once: first their first lines, then their second ones. `last` becomes the tick after.
    fn pass(&self, timer: &Timer, last: &mut u64) -> GroupTicks {
        match self {
            Self::Chase(chain) => chain.step(0, last),
            Self::Sweep { area, case } => {
                let begin = timer.now();
                sweep(area, case, Use::Accessed);
                let between = timer.now();
                sweep(area, case, Use::Again);
                let now = timer.now();
                let before = begin.wrapping_sub(*last);
                *last = now;
                GroupTicks { shot: between.wrapping_sub(begin), control: now.wrapping_sub(between), before }
            }
        }
    }

    /// Goes through the pages so often, untimed.
    pub(super) fn warm(&self, timer: &Timer, passes: u32) {
        let mut last = timer.now();
        for _ in 0..passes {
            self.pass(timer, &mut last);
        }
    }

    /// Prefetches, then goes through the pages; prefetches that are still on the way are waited for by the accesses
    /// that need them, in whose time that is.
    // One copy of the code, which is warm from a case before.
    #[inline(never)]
    pub(super) fn timed(&self, timer: &Timer, restored: &[u64]) -> AccessTicks {
        let begin = timer.now();
        prefetch(restored);
        let mut last = timer.now();
        let restore = last.wrapping_sub(begin);
        let ticks = self.pass(timer, &mut last);
        // What lies between the stamps is the restore's, so that nothing of it is lost.
        let restore = if restored.is_empty() { 0 } else { restore.wrapping_add(ticks.before) };
        AccessTicks { restore, access: ticks.shot, again: ticks.control }
    }
}

/// Loads that need nothing of each other.
#[inline(never)]
fn sweep(area: &PageArea, case: &MoveCase, line: Use) {
    for i in 0..case.pages {
        // SAFETY: a word of the area.
        std::hint::black_box(unsafe { area.word(case.at(i, line)).read_volatile() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metal::{Caches, Treatment};

    #[test]
    fn only_a_restore_takes_restores_time() {
        let (timer, _) = Timer::here().expect("a timer");
        let cases = MoveCase::all(&[1, 9, 64]);
        let area = PageArea::small(8 << 20, 64, 1).expect("memory");
        for case in &cases {
            let accesses = Accesses::new(timer, &area, case, 7);
            accesses.warm(&timer, 2);
            for way in [Treatment::Nothing, Treatment::Huge, Treatment::Returns] {
                assert_eq!(accesses.timed(&timer, &case.restored(way)).restore, 0, "{case:?} {way:?}");
            }
        }
    }

    #[test]
    fn a_chase_goes_through_its_pages_in_order_and_back() {
        let (timer, _) = Timer::here().expect("a timer");
        let case = MoveCase { pattern: MovePattern::Chase, stride_bytes: 69632, caches: Caches::Kept, pages: 40 };
        let area = PageArea::small(8 << 20, 40, 1).expect("memory");
        Accesses::new(timer, &area, &case, 7).warm(&timer, 1);
        let order = case.order(7);
        for line in [Use::Accessed, Use::Again] {
            let word = |i: u64| area.word(case.at(i, line));
            for (page, next) in order.iter().zip(order.iter().cycle().skip(1)) {
                // SAFETY: a word of the area, that nobody writes now.
                assert_eq!(unsafe { word(*page).read() }, word(*next) as u64);
            }
        }
    }
}
