//! Runs single shots on this machine.
//!
//! Loads follow links that lie in the pages themselves; nothing else is touched between the acts and the end of the
//! timed loads but one page of stack, and one or two of lists where there are stores or prefetches.

use std::collections::HashMap;

use crate::metal::context_switch::SwitchPartner;
use crate::metal::page_reservation::PageReservation;
use crate::metal::single_shot::asm::TimedAddress;
use crate::metal::single_shot::{asm, Act, PairedTicks, PrefetchHint, Shot, TimedRound, MOST_ACTS};
use crate::metal::{clock, MetalError};
use lookaside_stats::SplitMix64;

/// Words of a line that hold links; the last one takes stores.
const LINKS: u64 = 7;
/// Lines from a page's timed line to the one that a refill reads: half a page away.
const REFILL_LINES: u64 = 32;
/// Times kept on the stack before they are put elsewhere.
const CHUNK: usize = 32;
/// Longest delay before a timed chain, in dependent decrements (a cycle each): more than any timer's grain in use (37
/// cycles on Zen, 26 ticks), where the grain is no finer than this.
const DELAYS: usize = 256;

/// Whom to switch to; made when first needed.
#[derive(Debug, Default)]
pub(crate) struct ShotRunner {
    process: Option<SwitchPartner>,
    thread: Option<SwitchPartner>,
    list: Vec<u64>,
}

/// An act with its addresses.
#[derive(Clone, Copy, Debug)]
enum ShotStep {
    Nothing,
    Load { at: u64, count: u64 },
    Store { list: u64, count: u64 },
    Prefetch { hint: PrefetchHint, list: u64, count: u64 },
    SystemCall,
    SwitchProcess,
    SwitchThread,
    Wait(u64),
}

impl ShotRunner {
    /// Shoots so many times; gives the ticks of each.
    pub(crate) fn shoot(
        &mut self,
        memory: &mut PageReservation,
        shot: &Shot<'_>,
        samples: usize,
    ) -> Result<Vec<f64>, MetalError> {
        let (steps, words) = self.lay(memory, shot)?;
        let (timed, count) = (words[0], words.len() as u64);
        let mut rng = SplitMix64::new(samples as u64);
        let mut ticks = Vec::with_capacity(samples);
        while ticks.len() < samples {
            let mut chunk = [0u64; CHUNK];
            let wanted = CHUNK.min(samples - ticks.len());
            for spent in &mut chunk[..wanted] {
                let delay = rng.index(DELAYS) as u64;
                for step in &steps {
                    // SAFETY: `lay` made chains and lists of mapped, aligned words of our own, which nobody unmaps
                    // meanwhile.
                    unsafe { self.act(step)? };
                }
                // SAFETY: as above.
                *spent = unsafe { asm::time_chain(timed, count, delay) };
            }
            ticks.extend(chunk[..wanted].iter().map(|&spent| spent as f64));
        }
        Ok(ticks)
    }

    /// The same, timed by windows of so many loads, with controls.
    pub(crate) fn windows(
        &mut self,
        memory: &mut PageReservation,
        shot: &Shot<'_>,
        loads: usize,
        samples: usize,
    ) -> Result<Vec<PairedTicks>, MetalError> {
        let (steps, words) = self.lay(memory, shot)?;
        let mut sheet = AddressSheet::new(&words);
        let mut rng = SplitMix64::new(samples as u64);
        let mut one = |touched: bool| -> Result<Vec<f64>, MetalError> {
            for step in &steps {
                // SAFETY: as for `shoot`.
                unsafe { self.act(step)? };
            }
            // SAFETY: `lay` gave words of our own pages.
            unsafe { sheet.time(loads, touched, &mut rng) };
            Ok(sheet.ticks(loads))
        };
        (0..samples).map(|_| Ok(PairedTicks { shot: one(false)?, control: one(true)? })).collect()
    }

    /// Rounds around something that the caller does, with controls.
    ///
    /// # Safety
    /// As for [`super::Metal::rounds`].
    pub(crate) unsafe fn rounds(round: &mut TimedRound<'_>, rounds: usize) -> Vec<PairedTicks> {
        let prime = AddressSheet::new(round.prime);
        let mut sheet = AddressSheet::new(round.timed);
        let mut rng = SplitMix64::new(rounds as u64);
        let mut one = |touched: bool| {
            // SAFETY: the caller's.
            unsafe { asm::load_each(prime.list(), 0) };
            (round.act)();
            // SAFETY: the caller's.
            unsafe { sheet.time(1, touched, &mut rng) };
            sheet.ticks(1)
        };
        (0..rounds).map(|_| PairedTicks { shot: one(false), control: one(true) }).collect()
    }

    /// # Safety
    /// The step's chains and lists are as `acts` needs them.
    #[inline(always)]
    unsafe fn act(&self, step: &ShotStep) -> Result<(), MetalError> {
        let switch = |peer: &Option<SwitchPartner>| match peer {
            Some(peer) if peer.switch() => Ok(()),
            _ => Err(MetalError::Cannot("the process or thread to switch to is gone".into())),
        };
        // SAFETY: the caller's.
        unsafe {
            match *step {
                ShotStep::Nothing => {}
                ShotStep::Load { at, count } => asm::load_chain(at, count),
                ShotStep::Store { list, count } => asm::store_each(list, count),
                ShotStep::Prefetch { hint, list, count } => asm::prefetch_each(hint, list, count),
                ShotStep::SystemCall => {
                    std::hint::black_box(rustix::process::getppid());
                }
                ShotStep::SwitchProcess => switch(&self.process)?,
                ShotStep::SwitchThread => switch(&self.thread)?,
                ShotStep::Wait(ticks) => {
                    let start = clock::now();
                    while clock::now().wrapping_sub(start) < ticks {
                        std::hint::spin_loop();
                    }
                }
            }
        }
        Ok(())
    }

    /// Links the chains, writes the lists, sees to it that there is somebody to switch to; gives the steps and the
    /// words of the timed chain.
    fn lay(
        &mut self,
        memory: &mut PageReservation,
        shot: &Shot<'_>,
    ) -> Result<([ShotStep; MOST_ACTS], Vec<u64>), MetalError> {
        if self.process.is_none() && shot.before.iter().any(|act| matches!(act, Act::SwitchProcess)) {
            self.process = Some(SwitchPartner::process()?);
        }
        if self.thread.is_none() && shot.before.iter().any(|act| matches!(act, Act::SwitchThread)) {
            self.thread = Some(SwitchPartner::thread()?);
        }
        if shot.timed.is_empty() {
            return Err(MetalError::Cannot("a shot times at least one load".into()));
        }
        if shot.before.len() > MOST_ACTS {
            return Err(MetalError::Cannot(format!("{} acts in a shot; {MOST_ACTS} at most", shot.before.len())));
        }
        let mut places = LinkedWords { lines: HashMap::new(), uses: HashMap::new() };
        let linked = shot.before.iter().filter_map(|act| match act {
            Act::Load(pages) | Act::Refill(pages) | Act::Store(pages) => Some(*pages),
            _ => None,
        });
        let count: usize = linked.clone().chain([shot.timed]).map(<[u64]>::len).sum();
        memory.make_room(count)?;
        // The timed ones first: they get lines spread best.
        let timed = places.chain(memory, shot.timed, 0)?;
        let listed = |act: &Act<'_>| match act {
            Act::Store(pages) | Act::Prefetch(_, pages) => pages.len(),
            _ => 0,
        };
        // Filled only up to its capacity, so that it stays where it is.
        self.list = Vec::with_capacity(shot.before.iter().map(listed).sum());
        let mut steps = [ShotStep::Nothing; MOST_ACTS];
        for (step, act) in steps.iter_mut().zip(shot.before) {
            *step = match *act {
                Act::Load([]) | Act::Refill([]) | Act::Store([]) | Act::Prefetch(_, []) => ShotStep::Nothing,
                Act::Load(pages) => {
                    ShotStep::Load { at: places.chain(memory, pages, 0)?[0], count: pages.len() as u64 }
                }
                Act::Refill(pages) => {
                    ShotStep::Load { at: places.chain(memory, pages, REFILL_LINES)?[0], count: pages.len() as u64 }
                }
                Act::Store(pages) => {
                    for &page in pages {
                        let at = places.store_word(memory, page);
                        memory.touch(page);
                        // SAFETY: a word of our own page that holds no link.
                        unsafe { (at as *mut u64).write_volatile(0) };
                    }
                    let list = self.list(pages.iter().map(|&page| places.store_word(memory, page)));
                    ShotStep::Store { list, count: pages.len() as u64 }
                }
                Act::Prefetch(hint, pages) => {
                    let list = self.list(pages.iter().map(|&page| places.store_word(memory, page)));
                    ShotStep::Prefetch { hint, list, count: pages.len() as u64 }
                }
                Act::SystemCall => ShotStep::SystemCall,
                Act::SwitchProcess => ShotStep::SwitchProcess,
                Act::SwitchThread => ShotStep::SwitchThread,
                Act::Wait(ticks) => ShotStep::Wait(ticks),
            };
        }
        Ok((steps, timed))
    }

    /// Appends addresses; gives where they begin.
    fn list(&mut self, addresses: impl Iterator<Item = u64>) -> u64 {
        let start = self.list.len();
        self.list.extend(addresses);
        self.list[start..].as_ptr() as u64
    }
}

/// Which words of the pages are in use.
struct LinkedWords {
    /// Order of pages by first use.
    lines: HashMap<u64, u64>,
    /// Links in a page, by the distance of their line.
    uses: HashMap<(u64, u64), u64>,
}

impl LinkedWords {
    fn order(&mut self, page: u64) -> u64 {
        let next = self.lines.len() as u64;
        *self.lines.entry(page).or_insert(next)
    }

    fn store_word(&mut self, memory: &PageReservation, page: u64) -> u64 {
        let order = self.order(page);
        memory.word(page, order, order, LINKS)
    }

    /// Links pages, one word each of the line that is `away` lines from the timed one; gives the words.
    fn chain(&mut self, memory: &mut PageReservation, pages: &[u64], away: u64) -> Result<Vec<u64>, MetalError> {
        let mut words = Vec::with_capacity(pages.len());
        for &page in pages {
            let order = self.order(page);
            let times = self.uses.entry((page, away)).or_insert(0);
            // Its own line while that has words left, then the next.
            if *times >= LINKS * REFILL_LINES {
                return Err(MetalError::Cannot("a page comes too often in one shot".into()));
            }
            words.push(memory.word(page, order, order + away + *times / LINKS, *times % LINKS));
            *times += 1;
            memory.touch(page);
        }
        for (i, &word) in words.iter().enumerate() {
            let next = words[(i + 1) % words.len()];
            // SAFETY: an aligned word of our own reservation that nothing else in this shot uses.
            unsafe { (word as *mut u64).write_volatile(next) };
        }
        Ok(words)
    }
}

/// Entries of a page.
const ENTRIES: usize = 4096 / size_of::<TimedAddress>();

/// A list of addresses, with the ticks that go with them, in as few pages as it can lie in.
struct AddressSheet {
    entries: Vec<TimedAddress>,
    start: usize,
    count: usize,
}

impl AddressSheet {
    fn new(addresses: &[u64]) -> Self {
        let mut entries = vec![TimedAddress::default(); addresses.len() + ENTRIES - 1];
        let start = entries.as_ptr().align_offset(ENTRIES * size_of::<TimedAddress>()).min(ENTRIES - 1);
        for (entry, &address) in entries[start..].iter_mut().zip(addresses) {
            entry.address = address;
        }
        Self { entries, start, count: addresses.len() }
    }

    fn list(&self) -> &[TimedAddress] {
        &self.entries[self.start..self.start + self.count]
    }

    /// # Safety
    /// The addresses' pages are readable.
    #[inline(always)]
    unsafe fn time(&mut self, loads: usize, touched: bool, rng: &mut SplitMix64) {
        for window in self.entries[self.start..self.start + self.count].chunks_mut(loads.max(1)) {
            let delay = rng.index(DELAYS) as u64;
            // SAFETY: the caller's; a window is not empty.
            let ticks = unsafe {
                if touched {
                    asm::load_each(window, asm::OTHER_LINE);
                }
                asm::time_each(window, delay)
            };
            window[0].ticks = ticks;
        }
    }

    fn ticks(&self, window: usize) -> Vec<f64> {
        self.list().chunks(window.max(1)).map(|window| window[0].ticks as f64).collect()
    }
}
