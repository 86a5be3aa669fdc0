//! Times a round through a chain of pages: samples are repeated until they agree, in spite of interrupts and
//! neighbours.

use std::time::Duration;

use lookaside_machine::PageSize;
use lookaside_stats::{quantile_sample, SplitMix64};

use crate::metal::single_shot::{Act, PairedTicks, Shot};
use crate::metal::{ChainAccess, Metal, MetalError, OtherCpu, PageChain};
use crate::pmu::events::PmuEvent;

/// Steps a sample has at least: so many that neither the timer's own cost nor its grain (26 ticks on Zen) shows.
const STEPS_A_SAMPLE: usize = 4096;
/// Samples of one measurement: at first, and at most where they do not agree.
const SAMPLES: usize = 4;
/// See [`SAMPLES`].
const MOST_SAMPLES: usize = 40;
/// Samples agree where the one at the lower quartile lies within this share of the one at the median, and within root
/// two of it more for each doubling of their number: a quartile of more samples is surer. Whatever disturbs makes them
/// longer, so the lower quartile is taken.
const AGREE: f64 = 0.01;

/// A chain is walked again as long as it gets faster than this share of the last time, so many times at most: under
/// random replacement it takes a while until all pages that fit are in.
const SETTLED: f64 = 0.97;
/// See [`SETTLED`].
const SETTLE: u32 = 8;

/// Counts of walks of which the lower quartile is taken.
const COUNTED: usize = 6;

/// Longest sleep without asking whether to go on.
const NAP: Duration = Duration::from_millis(20);

/// Why a measurement ends early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Halt {
    /// The user wants it to end.
    #[error("interrupted")]
    Interrupted,
    /// The time that was given is used up.
    #[error("no time left")]
    TimeUp,
    /// The share of it that this step has is used up; the others go on.
    #[error("stopped at its time limit, {:.1} s", .0.as_secs_f64())]
    ShareUp(Duration),
    /// There is no machine behind the times.
    #[error("an emulator: {0}; times there are not those of a TLB")]
    Emulated(String),
    /// The machine refuses.
    #[error(transparent)]
    Metal(#[from] MetalError),
}

/// A machine at one page size, with a generator of page numbers.
pub struct ChainBench<'m> {
    metal: &'m mut dyn Metal,
    size: PageSize,
    touch: ChainAccess,
    halt: &'m dyn Fn() -> Option<Halt>,
    /// Chooses pages and orders.
    pub rng: SplitMix64,
    measurements: u64,
}

impl<'m> ChainBench<'m> {
    /// A bench. `halt` is asked before all samples.
    pub fn new(metal: &'m mut dyn Metal, size: PageSize, seed: u64, halt: &'m dyn Fn() -> Option<Halt>) -> Self {
        Self { metal, size, touch: ChainAccess::Load, halt, rng: SplitMix64::new(seed), measurements: 0 }
    }

    /// Bits of a page number that may be chosen.
    pub fn bits(&self) -> u32 {
        self.metal.page_bits(self.size).min(63)
    }

    /// Most pages in a chain.
    pub fn max_pages(&self) -> usize {
        self.metal.max_pages(self.size)
    }

    /// Size of the pages.
    pub fn size(&self) -> PageSize {
        self.size
    }

    /// Core cycles in a tick.
    pub fn cycles_per_tick(&self) -> f64 {
        self.metal.cycles_per_tick()
    }

    /// Measurements so far.
    pub fn measurements(&self) -> u64 {
        self.measurements
    }

    /// A random page number.
    pub fn page(&mut self) -> u64 {
        self.rng.next_u64() & ((1 << self.bits()) - 1)
    }

    /// Other CPUs that a thread could be put on.
    pub fn cpus(&mut self) -> Vec<OtherCpu> {
        self.metal.cpus()
    }

    /// Says what the next measurements are for.
    pub fn note(&mut self, text: &str) {
        self.metal.note(text);
    }

    /// Ends the work if it is to end.
    pub fn check(&self) -> Result<(), Halt> {
        (self.halt)().map_or(Ok(()), Err)
    }

    /// Waits.
    pub fn pause(&mut self, time: Duration) -> Result<(), Halt> {
        let mut left = time;
        while !left.is_zero() {
            self.check()?;
            let nap = NAP.min(left);
            self.metal.rest(nap);
            left -= nap;
        }
        Ok(())
    }

    /// Has chains update what they read meanwhile.
    pub(crate) fn updating<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        self.touch = ChainAccess::Update;
        let done = work(self);
        self.touch = ChainAccess::Load;
        done
    }

    /// The machine itself, for what is no chain of pages.
    pub(crate) fn metal(&mut self) -> &mut dyn Metal {
        self.metal
    }

    /// Ticks of the windows of a shot and its control, `samples` times.
    pub(crate) fn windows(
        &mut self,
        before: &[Act<'_>],
        timed: &[u64],
        loads: usize,
        samples: usize,
    ) -> Result<Vec<PairedTicks>, Halt> {
        self.check()?;
        self.measurements += 1;
        Ok(self.metal.windows(&Shot { size: self.size, before, timed }, loads, samples)?)
    }

    /// Ticks of a round through these pages, in a random order (the same each round).
    pub fn pages(&mut self, pages: &[u64]) -> Result<f64, Halt> {
        let mut order = pages.to_vec();
        self.rng.shuffle(&mut order);
        self.sequence(&order)
    }

    /// Ticks of a round through this sequence as it is.
    pub fn sequence(&mut self, pages: &[u64]) -> Result<f64, Halt> {
        self.measurements += 1;
        let chain = PageChain { size: self.size, touch: self.touch, pages };
        let rounds = STEPS_A_SAMPLE.div_ceil(pages.len()).max(1) as u32;
        let mut last = self.steady(&chain, rounds)?;
        for _ in 0..SETTLE {
            let next = self.steady(&chain, rounds)?;
            let settled = next > SETTLED * last;
            last = last.min(next);
            if settled {
                break;
            }
        }
        Ok(last)
    }

    /// Whether walks are counted, exactly.
    pub(crate) fn counts_walks(&mut self) -> bool {
        self.metal.counts_walks()
    }

    /// Pages that are walked for in so many steps of this sequence, once it has settled: the lower quartile, since
    /// whatever disturbs makes them more.
    pub(crate) fn walks(&mut self, pages: &[u64], steps: usize) -> Result<f64, Halt> {
        self.measurements += 1;
        let chain = PageChain { size: self.size, touch: self.touch, pages };
        let mut last = f64::INFINITY;
        for _ in 0..=SETTLE {
            self.check()?;
            let next = quantile_sample(self.metal.walks(&chain, steps, COUNTED)?, 0.25).unwrap_or_default();
            let settled = next == 0.0 || next > SETTLED * last;
            last = last.min(next);
            if settled {
                break;
            }
        }
        Ok(last)
    }

    /// Walks through this sequence, for what it leaves in the levels.
    pub fn walk(&mut self, pages: &[u64]) -> Result<(), Halt> {
        self.check()?;
        self.measurements += 1;
        let chain = PageChain { size: self.size, touch: self.touch, pages };
        Ok(self.metal.chase(&chain, 1, 1).map(drop)?)
    }

    /// Counts an event while a chain of these pages is walked so many rounds, once it is warm.
    pub(crate) fn count(&mut self, event: &PmuEvent, pages: &[u64], rounds: u32) -> Result<u64, MetalError> {
        let chain = PageChain { size: self.size, touch: self.touch, pages };
        self.metal.count(&chain, rounds, event)
    }

    /// Ticks of the timed loads of a single shot, so many times; see [`Metal::shot`].
    ///
    /// # Errors
    /// It is to end, or the machine refuses.
    pub fn shot(&mut self, before: &[Act<'_>], timed: &[u64], samples: usize) -> Result<Vec<f64>, Halt> {
        self.check()?;
        self.measurements += 1;
        Ok(self.metal.shot(&Shot { size: self.size, before, timed }, samples)?)
    }

    /// Ticks of a round, by samples that agree.
    fn steady(&mut self, chain: &PageChain<'_>, rounds: u32) -> Result<f64, Halt> {
        let mut ticks = Vec::new();
        loop {
            self.check()?;
            ticks.extend(self.metal.chase(chain, rounds, SAMPLES.max(ticks.len()))?);
            let [low, middle] = [0.25, 0.5].map(|share| quantile_sample(&ticks, share).unwrap_or_default());
            let surer = (ticks.len() as f64 / SAMPLES as f64).sqrt();
            if middle - low <= AGREE * surer * middle || ticks.len() >= MOST_SAMPLES {
                return Ok(low);
            }
        }
    }
}
