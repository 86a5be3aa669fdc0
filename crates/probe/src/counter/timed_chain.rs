//! Passes over a caller's own pages, timed in groups: each group's time is one sample, not a mean over rounds.

use crate::metal::MetalError;

/// The timer, found to be readable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timer {
    /// Its ticks in a second, against the system's clock.
    pub ticks_per_second: f64,
    /// Core cycles in a tick, by a chain of dependent additions; a clock that changes makes it one moment's.
    pub cycles_per_tick: f64,
}

#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod here {
    pub(super) use crate::metal::clock::{check, cycles_per_tick, fenced_now, ticks_per_second};
    pub(super) use crate::metal::emulator::emulator;
    pub(super) use crate::metal::single_shot::asm::load_chain;
    use crate::metal::single_shot::asm::prefetch_each;
    use crate::metal::PrefetchHint;

    pub(super) fn prefetch(addresses: &[u64]) {
        if !addresses.is_empty() {
            // SAFETY: the list is a slice of that length, and not empty.
            unsafe { prefetch_each(PrefetchHint::T0, addresses.as_ptr() as u64, addresses.len() as u64) };
        }
    }
}

#[cfg(not(all(unix, any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod here {
    use crate::metal::MetalError;

    pub(super) fn check() -> Result<Option<String>, MetalError> {
        Err(MetalError::Unsupported("no timer is written for this instruction set".into()))
    }
    pub(super) fn emulator() -> Option<String> {
        None
    }
    pub(super) fn cycles_per_tick() -> f64 {
        1.0
    }
    pub(super) fn ticks_per_second() -> f64 {
        1.0
    }
    pub(super) fn fenced_now() -> u64 {
        0
    }
    pub(super) unsafe fn load_chain(_: u64, _: u64) {}
    pub(super) fn prefetch(_: &[u64]) {}
}

impl Timer {
    /// Looks at the timer; a few hundredths of a second. And what is to be said about it, where something is.
    ///
    /// # Errors
    /// There is none that a program may read, or what takes time here is an emulator.
    pub fn here() -> Result<(Self, Option<String>), MetalError> {
        if let Some(who) = here::emulator() {
            return Err(MetalError::Unsupported(format!("{who}: its times say nothing about a TLB")));
        }
        let remark = here::check()?;
        Ok((Self { ticks_per_second: here::ticks_per_second(), cycles_per_tick: here::cycles_per_tick() }, remark))
    }

    /// Ticks, after all loads before and before all after.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        here::fenced_now()
    }

    /// Nanoseconds of so many ticks.
    pub fn ns(&self, ticks: u64) -> f64 {
        ticks as f64 * 1e9 / self.ticks_per_second
    }
}

/// Prefetches each address into all caches, as far as this processor heeds that; none faults, whatever it is. What they
/// began may go on afterwards.
pub fn prefetch(addresses: &[u64]) {
    here::prefetch(addresses);
}

/// What a group took: its pages' first words, then their second ones. What was lost of the translations is in the first
/// only, what was lost of the data caches in both alike, the words being on lines of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupTicks {
    /// Of the words that bring the translations back.
    pub shot: u64,
    /// Of the others.
    pub control: u64,
    /// From the stamp before to this group's begin: the caller's own code, or what interrupted it.
    pub before: u64,
}

/// Chains of dependent loads through words of the caller's, two on each page, in groups of pages that are timed each
/// for itself.
#[derive(Debug)]
pub struct TimedChain {
    timer: Timer,
    groups: Vec<PageGroup>,
}

#[derive(Clone, Copy, Debug)]
struct PageGroup {
    /// First words of the two chains.
    starts: [u64; 2],
    pages: u64,
}

impl TimedChain {
    /// Links the words in this order, two a page (each then holds the address of the next page's), `size` pages a
    /// group; the last group may be smaller.
    ///
    /// # Safety
    /// Each is a word, aligned to 8 bytes, that may be written and that nobody else uses while the chain lives.
    pub unsafe fn link(timer: Timer, pages: &[[*mut u64; 2]], size: usize) -> Self {
        for (words, next) in pages.iter().zip(pages.iter().cycle().skip(1)) {
            for (word, next) in words.iter().zip(next) {
                // SAFETY: the caller's.
                unsafe { word.write(*next as u64) };
            }
        }
        let group =
            |pages: &[[*mut u64; 2]]| PageGroup { starts: pages[0].map(|at| at as u64), pages: pages.len() as u64 };
        Self { timer, groups: pages.chunks(size.max(1)).map(group).collect() }
    }

    /// The same over words that are only read, a page a group: what they hold does not matter.
    ///
    /// # Safety
    /// Each is a word, aligned to 8 bytes, that may be read while the chain lives, and that nobody writes to while it
    /// is.
    pub unsafe fn over(timer: Timer, pages: &[[*mut u64; 2]]) -> Self {
        let group = |words: &[*mut u64; 2]| PageGroup { starts: words.map(|at| at as u64), pages: 1 };
        Self { timer, groups: pages.iter().map(group).collect() }
    }

    /// Pages of each group.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.groups.iter().map(|group| group.pages as usize)
    }

    /// The timer.
    pub fn timer(&self) -> Timer {
        self.timer
    }

    /// Loads a group's words, each when the one before is there, the first words of all its pages and then the second.
    /// `last` becomes the tick after: of groups done one after the other no time is lost.
    // One copy of the code, which is warm from whatever chain came before.
    #[inline(never)]
    pub fn step(&self, group: usize, last: &mut u64) -> GroupTicks {
        let PageGroup { starts, pages } = self.groups[group];
        let begin = self.timer.now();
        // SAFETY: linked from the caller's words, which are nobody else's, or one of these.
        unsafe { here::load_chain(starts[0], pages) };
        let between = self.timer.now();
        // SAFETY: as above.
        unsafe { here::load_chain(starts[1], pages) };
        let now = self.timer.now();
        let before = begin.wrapping_sub(*last);
        let ticks = GroupTicks { shot: between.wrapping_sub(begin), control: now.wrapping_sub(between), before };
        *last = now;
        ticks
    }

    /// All groups once: the ticks of each.
    pub fn pass(&self) -> Vec<GroupTicks> {
        let mut ticks = vec![GroupTicks::default(); self.groups.len()];
        // Nothing but the groups between the stamps.
        let mut last = self.timer.now();
        for (group, ticks) in ticks.iter_mut().enumerate() {
            *ticks = self.step(group, &mut last);
        }
        ticks
    }
}

#[cfg(all(test, unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::{TimedChain, Timer};

    #[test]
    fn words_that_are_only_read_stay_as_they_are() {
        let mut words: Vec<u64> = (0..40).collect();
        let base = words.as_mut_ptr();
        let pages: Vec<[*mut u64; 2]> = (0..20).map(|i| [0, 20].map(|k| base.wrapping_add(k + i))).collect();
        // SAFETY: words of ours.
        let chain = unsafe { TimedChain::over(Timer::here().expect("a timer").0, &pages) };
        assert_eq!(chain.groups().collect::<Vec<_>>(), vec![1; 20]);
        assert_eq!(chain.pass().len(), 20);
        drop(chain);
        assert_eq!(words, (0..40).collect::<Vec<u64>>());
    }

    #[test]
    fn a_chain_goes_through_all_words_and_back() {
        let mut words = vec![0u64; 200];
        let base = words.as_mut_ptr();
        let pages: Vec<[*mut u64; 2]> =
            (0..100).map(|i| [0, 100].map(|k| base.wrapping_add(k + i * 37 % 100))).collect();
        // SAFETY: words of ours.
        let chain = unsafe { TimedChain::link(Timer::here().expect("a timer").0, &pages, 8) };
        assert_eq!(chain.groups().collect::<Vec<_>>(), [vec![8; 12], vec![4]].concat());
        assert_eq!(chain.pass().len(), 13);
        for kind in 0..2 {
            let mut at = pages[0][kind];
            for next in pages.iter().cycle().skip(1).take(100) {
                // SAFETY: linked above.
                at = unsafe { at.read() } as *mut u64;
                assert_eq!(at, next[kind]);
            }
        }
    }
}
