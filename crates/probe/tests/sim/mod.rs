//! A made-up machine: the engine's TLBs, timed as the metal is, with noise.

mod recorded;
mod shots;
mod tlbs;

pub use recorded::Recorded;
pub use shots::{Habits, Other};
pub use tlbs::Tlbs;

use lookaside_machine::{PageSize, Replacement};
use lookaside_probe::{
    ChainAccess, CountedMisses, Metal, MetalError, NeighbourWalk, OtherCpu, PageChain, PairedTicks, PmuEvent, Shot,
    TimedRound,
};
use lookaside_stats::SplitMix64;

/// Noise of the times, as shares of them: of the kinds that real machines have, in amounts that are assumed.
/// [`Recorded`] has what a real machine had.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    /// Standard deviation of a sample.
    pub sigma: f64,
    /// What a chain is always off by, up to this much either way (caches, alignment).
    pub bias: f64,
    /// Samples that something long falls into.
    pub outliers: f64,
    /// Chance that an interrupt takes entries during a measurement.
    pub interrupts: f64,
    /// Grain of the timer in ticks.
    pub grain: f64,
}

/// A TLB of the made-up machine.
#[derive(Clone, Debug)]
pub struct Array {
    pub sets: u32,
    pub ways: u32,
    pub masks: Vec<u64>,
    pub replacement: Replacement,
}

impl Array {
    /// One whose sets are chosen by the lowest bits of the page number.
    #[allow(dead_code)] // not every test has such
    pub fn linear(sets_log2: u32, ways: u32, replacement: Replacement) -> Self {
        Self { sets: 1 << sets_log2, ways, masks: (0..sets_log2).map(|bit| 1 << bit).collect(), replacement }
    }
}

/// Costs in ticks.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    pub hit: f64,
    pub second: f64,
    pub walk: f64,
}

/// Ticks that an update takes longer than a load: 4 on the development machine.
const UPDATE: f64 = 4.0;

/// The made-up machine.
pub struct Sim {
    tlbs: Tlbs,
    /// What stores use where they have a first level of their own.
    of_stores: Option<Tlbs>,
    /// As they were at first, and what makes them.
    empty: Tlbs,
    arrays: Vec<Array>,
    seed: u64,
    /// What it does in single shots beside loads.
    pub habits: Habits,
    noise: Noise,
    /// Noise of chains in place of that which is assumed.
    pub recorded: Option<Recorded>,
    costs: Costs,
    rng: SplitMix64,
    bits: u32,
    /// What a thread on another CPU does, the loads that it has done, and page faults.
    walk: Option<NeighbourWalk>,
    walked: u64,
    /// Page of its walk that it is at.
    walker: u64,
    faults: u64,
    /// The chain walked last: the same again is warm.
    last: Vec<u64>,
}

impl Sim {
    pub fn new(arrays: &[Array], bits: u32, costs: Costs, noise: Noise, seed: u64) -> Self {
        let tlbs = Tlbs::new(arrays, seed);
        Self {
            empty: tlbs.clone(),
            of_stores: None,
            arrays: arrays.to_vec(),
            seed,
            tlbs,
            habits: Habits::default(),
            noise,
            recorded: None,
            costs,
            rng: SplitMix64::new(seed),
            bits,
            walk: None,
            walked: 0,
            walker: 0,
            faults: 0,
            last: Vec::new(),
        }
    }

    /// All entries are gone.
    fn forget(&mut self) {
        self.tlbs = self.empty.clone();
    }

    /// So many rounds through these pages, by turns with the thread on the other CPU; gives their misses of the first
    /// level and of all.
    fn beside(&mut self, pages: &[u64], rounds: usize) -> (u64, u64) {
        /// Accesses of a turn.
        const TURN: usize = 16;
        let mut misses = (0, 0);
        let turn = if self.walk.is_some() { TURN } else { pages.len().max(1) };
        for turn in std::iter::repeat_n(pages, rounds).flat_map(|pages| pages.chunks(turn)) {
            let before = self.tlbs.misses();
            self.run(turn.iter().copied());
            let after = self.tlbs.misses();
            misses = (misses.0 + after.0 - before.0, misses.1 + after.1 - before.1);
            self.other(turn.len() as u64);
        }
        misses
    }

    /// So many rounds through these pages, while a neighbour on the same core brings in entries of its own; gives their
    /// misses of the first level and of all.
    fn shared(&mut self, pages: &[u64], rounds: usize) -> (u64, u64) {
        let before = self.tlbs.misses();
        if self.habits.taken_a_kilo_step == 0.0 {
            self.tlbs.walk(pages, rounds);
            let after = self.tlbs.misses();
            return (after.0 - before.0, after.1 - before.1);
        }
        let taken = 2.0 * self.uniform() * self.habits.taken_a_kilo_step * pages.len() as f64 / 1000.0;
        let mut misses = (0, 0);
        for _ in 0..rounds {
            let before = self.tlbs.misses();
            self.run(pages.iter().copied());
            let after = self.tlbs.misses();
            misses = (misses.0 + after.0 - before.0, misses.1 + after.1 - before.1);
            let count = taken as usize + usize::from(self.uniform() < taken.fract());
            let foreign: Vec<u64> = (0..count).map(|_| 1 << 40 | self.rng.next_u64() >> 40).collect();
            self.tlbs.walk_below(&foreign);
        }
        misses
    }

    /// So many loads of the thread on the other CPU.
    fn other(&mut self, loads: u64) {
        let Some(walk) = self.walk else { return };
        self.walked += loads;
        let at = self.walker;
        self.walker += loads;
        let Some(page) = self.habits.other_page(&walk) else { return };
        self.run((at..at + loads).map(|i| page(i % walk.pages as u64)));
    }

    /// The times of a chain of updates, each a load and a store.
    fn update(&mut self, chain: &PageChain<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        let own = self.habits.stores.clone().map(|first| {
            let arrays: Vec<Array> = [first].into_iter().chain(self.arrays[1..].iter().cloned()).collect();
            self.of_stores.take().unwrap_or_else(|| Tlbs::new(&arrays, self.seed))
        });
        let loads = own.map(|own| std::mem::replace(&mut self.tlbs, own));
        self.costs.hit += UPDATE;
        self.last.clear();
        let mut ticks = self.chase(&PageChain { touch: ChainAccess::Load, ..*chain }, rounds, samples)?;
        self.last.clear();
        self.costs.hit -= UPDATE;
        if let Some(loads) = loads {
            self.of_stores = Some(std::mem::replace(&mut self.tlbs, loads));
            // What the load misses in its own first level is waited for too.
            self.tlbs.walk(chain.pages, 4);
            let before = self.tlbs.misses().0;
            self.tlbs.walk(chain.pages, 4);
            let misses = (self.tlbs.misses().0 - before) as f64 / 4.0;
            ticks.iter_mut().for_each(|ticks| *ticks += misses * self.costs.second);
        }
        Ok(ticks)
    }

    fn run(&mut self, pages: impl Iterator<Item = u64>) {
        let pages: Vec<u64> = pages.collect();
        self.tlbs.walk(&pages, 1);
    }

    fn uniform(&mut self) -> f64 {
        self.rng.unit()
    }

    fn interrupt(&mut self) {
        let pages: Vec<u64> = (0..1 + self.rng.index(24)).map(|_| self.rng.next_u64() & 0xffff_ffff).collect();
        self.run(pages.into_iter());
    }

    fn noisy(&mut self, ticks: f64, bias: f64) -> f64 {
        // Twelve uniform numbers make a normal one, nearly.
        let normal = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
        let mut ticks = ticks * (1.0 + bias) * (1.0 + self.noise.sigma * normal);
        if self.uniform() < self.noise.outliers {
            ticks *= 1.0 + 5.0 * self.uniform() * self.uniform();
        }
        ticks
    }
}

impl Metal for Sim {
    fn rest(&mut self, _: std::time::Duration) {}

    fn page_bits(&self, size: PageSize) -> u32 {
        if size == PageSize::K4 {
            self.bits
        } else {
            0
        }
    }

    fn max_pages(&self, _: PageSize) -> usize {
        1 << 15
    }

    fn chase(&mut self, chain: &PageChain<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        if chain.touch == ChainAccess::Update {
            return self.update(chain, rounds, samples);
        }
        if let Some(mut recorded) = self.recorded.take() {
            let ticks = recorded.chase(self, chain.pages, rounds, samples);
            self.recorded = Some(recorded);
            return Ok(ticks);
        }
        let pages = chain.pages;
        if self.last != pages {
            let warm = 256usize.div_ceil(pages.len());
            self.tlbs.walk(pages, warm);
            self.last = pages.to_vec();
        }
        if self.uniform() < self.noise.interrupts {
            self.interrupt();
        }
        // Samples differ by noise; one is really run.
        let timed = 512usize.div_ceil(pages.len()).min(rounds as usize);
        let (first, walks) = self.shared(pages, timed);
        let ticks = (pages.len() * timed) as f64 * self.costs.hit
            + first as f64 * self.costs.second
            + walks as f64 * self.costs.walk;
        let mean = ticks / timed as f64;
        // The same chain is always off by the same.
        let place = pages.iter().fold(1u64, |sum, page| sum.rotate_left(5) ^ page);
        let bias = self.noise.bias * (2.0 * SplitMix64::new(place).unit() - 1.0);
        let grain = self.noise.grain;
        Ok((0..samples)
            .map(|_| {
                let all = self.noisy(mean, bias) * f64::from(rounds);
                (all / grain).round() * grain / f64::from(rounds)
            })
            .collect())
    }

    fn emulator(&self) -> Option<String> {
        self.habits.emulator.clone()
    }

    fn remarks(&self) -> Vec<String> {
        self.habits.remarks.clone()
    }

    fn shot(&mut self, shot: &Shot<'_>, samples: usize) -> Result<Vec<f64>, MetalError> {
        self.habits.can_shoot()?;
        shots::shoot(self, shot, samples)
    }

    fn windows(&mut self, shot: &Shot<'_>, loads: usize, samples: usize) -> Result<Vec<PairedTicks>, MetalError> {
        self.habits.can_shoot()?;
        shots::windows(self, shot, loads, samples)
    }

    fn address(&mut self, _: PageSize, page: u64) -> Result<u64, MetalError> {
        Ok(page << 12)
    }

    unsafe fn rounds(&mut self, round: &mut TimedRound<'_>, rounds: usize) -> Result<Vec<PairedTicks>, MetalError> {
        shots::rounds(self, round, rounds)
    }

    /// A PMU that counts what the event's name says, and nothing else.
    fn count(&mut self, chain: &PageChain<'_>, rounds: u32, event: &PmuEvent) -> Result<u64, MetalError> {
        self.last.clear();
        self.beside(chain.pages, 2);
        let (first, walks) = self.beside(chain.pages, rounds as usize);
        Ok(match event.counts {
            CountedMisses::FirstMisses => first,
            CountedMisses::SecondHits => first - walks,
            CountedMisses::Walks => walks,
        })
    }

    fn counts_walks(&mut self) -> bool {
        self.habits.counts_walks
    }

    fn walks(&mut self, chain: &PageChain<'_>, steps: usize, samples: usize) -> Result<Vec<f64>, MetalError> {
        self.last.clear();
        self.tlbs.walk(chain.pages, 256usize.div_ceil(chain.pages.len()));
        let mut at = chain.pages.iter().copied().cycle();
        let mut sample = || {
            if self.uniform() < self.noise.interrupts {
                self.interrupt();
            }
            let pages: Vec<u64> = at.by_ref().take(steps).collect();
            self.shared(&pages, 1).1 as f64
        };
        Ok((0..samples).map(|_| sample()).collect())
    }

    fn page_faults(&mut self) -> Option<u64> {
        Some(self.faults)
    }

    fn cpus(&mut self) -> Vec<OtherCpu> {
        self.habits.cpus.iter().map(|(cpu, _)| *cpu).collect()
    }

    fn neighbour(&mut self, walk: Option<NeighbourWalk>) -> Result<(), MetalError> {
        let halves =
            |walk: &Option<NeighbourWalk>| walk.is_some_and(|walk| self.habits.other(&walk) == Some(Other::Halves));
        if halves(&walk) != halves(&self.walk) {
            let part = if halves(&walk) { 2 } else { 1 };
            let arrays = self.arrays.iter().map(|array| Array { ways: array.ways / part, ..array.clone() });
            self.empty = Tlbs::new(&arrays.collect::<Vec<_>>(), self.seed);
            self.forget();
        }
        self.walk = walk;
        Ok(())
    }

    fn neighbour_loads(&mut self) -> u64 {
        self.walked
    }

    fn ticks_per_second(&self) -> Option<f64> {
        Some(2.6e9)
    }

    fn cycles_per_tick(&self) -> f64 {
        1.0
    }
}
