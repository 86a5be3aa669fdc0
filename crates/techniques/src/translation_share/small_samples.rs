//! The samples in small pages: which pages they are of, and how many of them stay near each other.

use std::collections::BTreeMap;

use lookaside_stats::{quantile, Richness, SplitMix64};

use super::waiting_sample::{MemoryRange, WaitingSample, PAGE_SHIFT, SEED};

/// Bursts below which there is no interval, as rounds of any measurement.
const LEAST_BURSTS: usize = lookaside_stats::LEAST_ROUNDS;
/// Two samples of a thread in one burst are near each other within so many bytes. No core reads faster from memory than
/// some 20 GB/s (docs/results/compare.md), which is 1 MB between two samples 50 µs apart.
const NEAR_BYTES: u64 = 1 << 20;
/// Samples before one that are looked at for one near it: loops over several arrays come back to each.
const BEFORE: usize = 16;
/// Draws of the bootstrap.
const RESAMPLES: usize = 400;

/// A sample in small pages, or in a range that has some.
#[derive(Clone, Copy)]
struct SmallSample {
    thread: u32,
    addr: u64,
    range: usize,
    /// Below 1 where the range is partly in huge pages.
    weight: f64,
}

impl SmallSample {
    fn page(&self) -> u64 {
        self.addr >> PAGE_SHIFT
    }
}

/// Of each page, in how many bursts it was seen.
pub(super) type BurstsOfPages = BTreeMap<u64, u64>;

/// The samples in small pages, by burst.
pub(super) struct SmallSamples {
    bursts: Vec<Vec<SmallSample>>,
}

impl SmallSamples {
    pub(super) fn of(bursts: &[Vec<WaitingSample>], memory: &[MemoryRange]) -> Self {
        let small = |sample: &WaitingSample| {
            let range = memory.partition_point(|range| range.end <= sample.addr);
            let weight = memory.get(range).filter(|range| range.start <= sample.addr)?.small_share();
            (weight > 0.0).then_some(SmallSample { thread: sample.thread, addr: sample.addr, range, weight })
        };
        let bursts: Vec<Vec<SmallSample>> =
            bursts.iter().map(|burst| burst.iter().filter_map(small).collect()).collect();
        Self { bursts }
    }

    /// Of each page, in how many bursts it was seen: what is seen again within a burst may be one visit.
    pub(super) fn bursts_of_pages(&self) -> BurstsOfPages {
        let mut counts = BurstsOfPages::new();
        for burst in &self.bursts {
            let mut pages: Vec<u64> = burst.iter().map(SmallSample::page).collect();
            pages.sort_unstable();
            pages.dedup();
            pages.into_iter().for_each(|page| *counts.entry(page).or_default() += 1);
        }
        counts
    }

    /// Small pages of the ranges that were seen.
    pub(super) fn resident_pages(&self, memory: &[MemoryRange]) -> u64 {
        self.shares_of_ranges(memory.len())
            .iter()
            .zip(memory)
            .filter(|(share, _)| **share > 0.0)
            .map(|(_, range)| range.small_pages())
            .sum()
    }

    pub(super) fn shares_of_ranges(&self, ranges: usize) -> Vec<f64> {
        let mut shares = vec![0.0; ranges];
        self.bursts.iter().flatten().for_each(|sample| shares[sample.range] += sample.weight);
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum.max(f64::MIN_POSITIVE));
        shares
    }

    /// Samples at pages that are seen now and then.
    pub(super) fn rare_weight(&self, counts: &BurstsOfPages) -> f64 {
        self.bursts.iter().fold(0.0, |sum, burst| sum + rare_weight(burst, counts))
    }

    /// The interval of the share of jumping samples, by drawing whole bursts.
    pub(super) fn interval(&self, bursts: &[Vec<WaitingSample>], counts: &BurstsOfPages) -> [f64; 2] {
        if bursts.len() < LEAST_BURSTS {
            return [0.0, 1.0];
        }
        let chance = self.near_by_chance();
        let part = |(burst, small): (&Vec<WaitingSample>, &Vec<SmallSample>)| {
            let [near, tested] = near(small, small);
            [burst.len() as f64, rare_weight(small, counts), near, tested]
        };
        let parts: Vec<[f64; 4]> = bursts.iter().zip(&self.bursts).map(part).collect();
        let mut rng = SplitMix64::new(SEED);
        let drawn = (0..RESAMPLES).filter_map(|_| {
            let mut sums = [0.0; 4];
            for _ in 0..parts.len() {
                let part = parts[rng.index(parts.len())];
                sums.iter_mut().zip(part).for_each(|(sum, of)| *sum += of);
            }
            let [samples, rare, near, tested] = sums;
            (samples > 0.0).then(|| rare / samples * (1.0 - beyond_chance(near, tested, chance)))
        });
        let drawn: Vec<f64> = drawn.collect();
        [0.025, 0.975].map(|share| quantile(drawn.iter().copied(), share).unwrap_or(1.0))
    }

    /// Of the samples, the share that stays near others for a while: beyond what chance brings about.
    pub(super) fn local_share(&self) -> f64 {
        let [mut all_near, mut all_tested] = [0.0; 2];
        for burst in &self.bursts {
            let [near, tested] = near(burst, burst);
            all_near += near;
            all_tested += tested;
        }
        beyond_chance(all_near, all_tested, self.near_by_chance())
    }

    /// The share of samples that have one near them among as many of another burst.
    fn near_by_chance(&self) -> f64 {
        let mut rng = SplitMix64::new(SEED);
        let full: Vec<&Vec<SmallSample>> = self.bursts.iter().filter(|burst| burst.len() > 1).collect();
        let [mut all_near, mut all_tested] = [0.0; 2];
        for (at, burst) in full.iter().enumerate() {
            // Bursts are all alike in that: a few say what all would.
            for _ in 0..4 {
                let other = rng.index(full.len());
                if other != at {
                    let [near, tested] = near(burst, full[other]);
                    all_near += near;
                    all_tested += tested;
                }
            }
        }
        match all_tested > 0.0 {
            true => all_near / all_tested,
            false => 0.0,
        }
    }
}

fn rare_weight(burst: &[SmallSample], counts: &BurstsOfPages) -> f64 {
    let is_rare = |sample: &&SmallSample| counts.get(&sample.page()).is_some_and(|count| Richness::is_rare(*count));
    burst.iter().filter(is_rare).fold(0.0, |sum, sample| sum + sample.weight)
}

/// Of the samples of a burst that have others of their thread before them: how many are near one of those, and how many
/// there are. The others are taken from the same places of `among`: the burst itself, or another one.
fn near(burst: &[SmallSample], among: &[SmallSample]) -> [f64; 2] {
    let same = std::ptr::eq(burst, among);
    let [mut near, mut tested] = [0.0; 2];
    for (at, sample) in burst.iter().enumerate() {
        let before = &burst[at.saturating_sub(BEFORE)..at];
        let others = before.iter().filter(|other| other.thread == sample.thread).count();
        if others == 0 {
            continue;
        }
        let is_near = |other: &SmallSample| other.addr.abs_diff(sample.addr) <= NEAR_BYTES;
        let found = match same {
            true => before.iter().filter(|other| other.thread == sample.thread).any(is_near),
            false => among.len() >= others && among[among.len() - others..].iter().any(is_near),
        };
        tested += sample.weight;
        near += if found { sample.weight } else { 0.0 };
    }
    [near, tested]
}

fn beyond_chance(near: f64, tested: f64, chance: f64) -> f64 {
    if tested <= 0.0 || chance >= 1.0 {
        return 0.0;
    }
    ((near / tested - chance) / (1.0 - chance)).clamp(0.0, 1.0)
}
