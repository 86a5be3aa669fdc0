//! Noise as it was recorded on a real machine (`tests/noise`, made by the example `record_noise`).

use lookaside_stats::SplitMix64;

use super::Sim;

/// The recordings: the machine otherwise idle, and disturbed in several ways.
const RECORDINGS: [&str; 4] = [
    include_str!("../noise/quiet.txt"),
    include_str!("../noise/builds.txt"),
    include_str!("../noise/stream.txt"),
    include_str!("../noise/thrash.txt"),
];

/// Which chains are off by how much: those that mostly hit the first level, the second, none, and the longest.
#[derive(Clone, Copy, Debug)]
enum Kind {
    First,
    Second,
    Set,
    Many,
}

/// Steps walked before each sample, as on the metal.
const WARM_STEPS: usize = 1024;
/// Steps that are really run for the samples of a measurement, at least a round; they differ by noise.
const TIMED_STEPS: usize = 1024;
/// Most entries that an interruption is said to take: what it slowed down else is counted as entries too.
const MOST_LOST: usize = 4096;
/// What interrupts uses pages from here on, near each other.
const FOREIGN: u64 = 1 << 34;
/// Chains of more different pages are noisy as the longest are: what they read is far more than a first-level data
/// cache holds, and so in reach of others. How often the pages come makes no such difference: with the other CPU
/// streaming, chains of 448 pages in six orders were off by 3 % at most, as those of 192 in one order are, chains of
/// 8192 pages by 17 to 400 %.
const MANY: usize = 2048;

const KINDS: [&str; 4] = ["first", "second", "set", "many"];

/// One machine's noise: a recording, gone through from a random place on.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Ticks of the timer at once.
    grain: f64,
    /// Chance that something interrupts in a tick.
    interruptions: f64,
    /// Entries that interruptions take.
    lost: Vec<f64>,
    /// By kind: shares that chains are always off by, and samples in the order of time.
    chains: [Vec<f64>; 4],
    samples: [Vec<f64>; 4],
    at: usize,
}

impl Recorded {
    /// One of the recordings, from some place on.
    #[allow(dead_code)] // not every test that makes up machines asks for it
    pub fn draw(rng: &mut SplitMix64) -> Self {
        let mut noise = Self::read(RECORDINGS[rng.index(RECORDINGS.len())]);
        noise.at = rng.index(1 << 20);
        noise
    }

    fn read(text: &str) -> Self {
        let lines = |name: &str| {
            let numbers = |line: &str| line.split(' ').map(|n| n.parse().expect("a number")).collect::<Vec<f64>>();
            let of = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(numbers));
            of.flatten().collect::<Vec<f64>>()
        };
        let one = |name: &str| lines(name)[0];
        let shares = |name: String| lines(&name).iter().map(|share| share / 1e4).collect::<Vec<f64>>();
        Self {
            grain: one("grain"),
            interruptions: one("interruptions_per_second") / one("ticks_per_second"),
            lost: lines("lost"),
            chains: KINDS.map(|kind| shares(format!("chains {kind}"))),
            samples: KINDS.map(|kind| shares(format!("times {kind}"))),
            at: 0,
        }
    }

    /// Samples of a chain on this machine, as `Metal::chase` gives them.
    pub fn chase(&mut self, sim: &mut Sim, pages: &[u64], rounds: u32, samples: usize) -> Vec<f64> {
        let step = sim.costs.hit + sim.costs.second;
        let ticks = (samples * (pages.len() * rounds as usize + WARM_STEPS)) as f64 * step;
        let lost = self.lost(ticks, &mut sim.rng).min(MOST_LOST);
        let foreign: Vec<u64> = (0..lost).map(|_| FOREIGN | sim.rng.next_u64() & 0x3fff).collect();
        sim.run(foreign.into_iter());
        sim.tlbs.walk(pages, WARM_STEPS.div_ceil(pages.len()));
        let timed = TIMED_STEPS.div_ceil(pages.len()).min(rounds as usize);
        let before = sim.tlbs.misses();
        sim.tlbs.walk(pages, timed);
        let after = sim.tlbs.misses();
        let parts = [
            (pages.len() * timed) as f64 * sim.costs.hit,
            (after.0 - before.0) as f64 * sim.costs.second,
            (after.1 - before.1) as f64 * sim.costs.walk,
        ];
        let kind = match parts {
            _ if sim.tlbs.distinct() > MANY => Kind::Many,
            [hits, seconds, walks] if walks > hits + seconds => Kind::Set,
            [hits, seconds, _] if seconds > 0.5 * hits => Kind::Second,
            _ => Kind::First,
        };
        let mean = parts.iter().sum::<f64>() / timed as f64 * (1.0 + self.chain(kind, pages));
        let grain = self.grain / f64::from(rounds);
        (0..samples).map(|_| (mean * (1.0 + self.sample(kind)) / grain).round() * grain).collect()
    }

    /// What these pages are always off by.
    fn chain(&self, kind: Kind, pages: &[u64]) -> f64 {
        let place = pages.iter().fold(1u64, |sum, page| sum.rotate_left(5) ^ page);
        let list = &self.chains[kind as usize];
        list[SplitMix64::new(place).index(list.len())]
    }

    /// What the next sample is off by: samples that follow each other here did so when they were recorded.
    fn sample(&mut self, kind: Kind) -> f64 {
        let list = &self.samples[kind as usize];
        self.at += 1;
        list[self.at % list.len()]
    }

    /// Entries that are lost in so many ticks.
    fn lost(&self, ticks: f64, rng: &mut SplitMix64) -> usize {
        let chance = rng.unit();
        if chance < self.interruptions * ticks {
            self.lost[rng.index(self.lost.len())] as usize
        } else {
            0
        }
    }
}
