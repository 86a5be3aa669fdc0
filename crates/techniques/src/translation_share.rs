//! The share of a process's CPU time that goes to page-table walks, from samples of what it waits for.
//!
//! Clock samples are of time, not of accesses: a sample says "it waits here". Of the time that it waits at jumps into
//! memory in small pages, the model says which part is the walk: it runs accesses to as many pages as the samples tell
//! of ([`Richness`]), at random, on the machine. Time at accesses that stay near each other for a while costs next
//! to no walk. `docs/explanation/sampling.md` works one case out by hand.

use std::collections::BTreeMap;

use lookaside_engine::{Detail, Engine, Setup, SetupError};
use lookaside_stats::{quantile, Richness, SplitMix64};
use lookaside_trace::{Block, Kind};
use serde::{Deserialize, Serialize};

/// Samples below which nothing is said: a share of 10 % would have an interval of 10 points and more.
pub const LEAST_SAMPLES: usize = 100;
/// Bursts below which there is no interval, as rounds of any measurement (`lookaside_stats::LEAST_ROUNDS`).
const LEAST_BURSTS: usize = lookaside_stats::LEAST_ROUNDS;
/// Two samples of a thread in one burst are near each other within so many bytes. No core reads faster from memory than
/// some 20 GB/s (docs/results/compare.md), which is 1 MB between two samples 50 µs apart.
const NEAR_BYTES: u64 = 1 << 20;
/// Samples before one that are looked at for one near it: loops over several arrays come back to each.
const BEFORE: usize = 16;
/// Accesses of a run of the model, of which the later half counts: the first fills the TLBs and caches.
const ACCESSES: u64 = 400_000;
/// Draws of the bootstrap.
const RESAMPLES: usize = 400;
/// Of all that is drawn.
const SEED: u64 = 1;
const PAGE_SHIFT: u32 = 12;
const LINES: u64 = 64;
const LINE_SHIFT: u32 = 6;

/// A sample of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingSample {
    /// Its thread.
    pub thread: u32,
    /// The data address that it waited for; 0 = none, or not known.
    pub addr: u64,
}

/// A range of a process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRange {
    /// First byte.
    pub start: u64,
    /// First byte after.
    pub end: u64,
    /// Bytes of it in memory.
    pub resident_bytes: u64,
    /// Of those, bytes that huge pages map.
    pub huge_bytes: u64,
}

impl MemoryRange {
    fn small_pages(&self) -> u64 {
        self.resident_bytes.saturating_sub(self.huge_bytes) >> PAGE_SHIFT
    }

    /// The part of its memory in small pages.
    fn small_share(&self) -> f64 {
        match self.resident_bytes {
            0 => 1.0,
            all => 1.0 - (self.huge_bytes as f64 / all as f64).min(1.0),
        }
    }
}

/// What samples say of a process's time in page-table walks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct TranslationShare {
    /// Of its CPU time in user code, the share in walks for data; 1 = all.
    pub share: f64,
    /// Lower end of its interval of 95 %.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Samples.
    pub samples: u64,
    /// Of those, samples that wait for data whose address is known.
    pub resolved: u64,
    /// Of all samples, the share at jumps into small pages.
    pub jumping_share: f64,
    /// Distinct small pages that the jumps go to, estimated.
    pub pages: u64,
    /// Of the time of such a jump, the share in its walk, in the model.
    pub translation_share_of_jump: f64,
}

impl TranslationShare {
    /// Of several processes together: each counts by the CPUs that it uses, beside which some use CPUs that nothing is
    /// known of. Their errors have nothing to do with each other. `None`: nothing is known of any.
    pub fn of_several(shares: &[(f64, Self)]) -> Option<Self> {
        let cpus: f64 = shares.iter().map(|(cpus, _)| cpus).sum();
        let mean = |of: &dyn Fn(&Self) -> f64| shares.iter().map(|(at, share)| at * of(share)).sum::<f64>() / cpus;
        let off = |of: &dyn Fn(&Self) -> f64| {
            shares.iter().map(|(at, share)| (at * of(share)).powi(2)).sum::<f64>().sqrt() / cpus
        };
        if cpus <= 0.0 {
            return None;
        }
        let share = mean(&|one| one.share);
        Some(Self {
            share,
            low: (share - off(&|one| one.share - one.low)).max(0.0),
            high: (share + off(&|one| one.high - one.share)).min(1.0),
            samples: shares.iter().map(|(_, one)| one.samples).sum(),
            resolved: shares.iter().map(|(_, one)| one.resolved).sum(),
            jumping_share: mean(&|one| one.jumping_share),
            pages: shares.iter().map(|(_, one)| one.pages).sum(),
            translation_share_of_jump: mean(&|one| one.translation_share_of_jump),
        })
    }
}

/// Estimates it from bursts of samples: each list in the order in which the samples of a thread were taken. `None`: too
/// few of them.
///
/// # Errors
/// The model can't run the setup.
pub fn translation_share(
    bursts: &[Vec<WaitingSample>],
    memory: &[MemoryRange],
    setup: &Setup,
) -> Result<Option<TranslationShare>, SetupError> {
    let samples: usize = bursts.iter().map(Vec::len).sum();
    if samples < LEAST_SAMPLES {
        return Ok(None);
    }
    let resolved = bursts.iter().flatten().filter(|sample| sample.addr != 0).count();
    let seen = SmallSamples::of(bursts, memory);
    let counts = seen.bursts_of_pages();
    let pages = Richness::of(counts.values().copied(), seen.resident_pages(memory) as f64);
    let jumping_share = seen.rare_weight(&counts) / samples as f64 * (1.0 - seen.local_share());
    let model = |pages: f64| model_share(&seen, memory, pages.round() as u64, setup);
    let at = model(pages.kinds)?;
    let (low, high) = (model(pages.least)?.min(at), model(pages.most)?.max(at));
    let [least, most] = seen.interval(bursts, &counts);
    Ok(Some(TranslationShare {
        share: jumping_share * at,
        low: least * low,
        high: (most * high).min(1.0),
        samples: samples as u64,
        resolved: resolved as u64,
        jumping_share,
        pages: pages.kinds.round() as u64,
        translation_share_of_jump: at,
    }))
}

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
type PageCounts = BTreeMap<u64, u64>;

/// The samples in small pages, by burst.
struct SmallSamples {
    bursts: Vec<Vec<SmallSample>>,
}

impl SmallSamples {
    fn of(bursts: &[Vec<WaitingSample>], memory: &[MemoryRange]) -> Self {
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
    fn bursts_of_pages(&self) -> PageCounts {
        let mut counts = PageCounts::new();
        for burst in &self.bursts {
            let mut pages: Vec<u64> = burst.iter().map(SmallSample::page).collect();
            pages.sort_unstable();
            pages.dedup();
            pages.into_iter().for_each(|page| *counts.entry(page).or_default() += 1);
        }
        counts
    }

    /// Small pages of the ranges that were seen.
    fn resident_pages(&self, memory: &[MemoryRange]) -> u64 {
        self.shares_of_ranges(memory.len())
            .iter()
            .zip(memory)
            .filter(|(share, _)| **share > 0.0)
            .map(|(_, range)| range.small_pages())
            .sum()
    }

    fn shares_of_ranges(&self, ranges: usize) -> Vec<f64> {
        let mut shares = vec![0.0; ranges];
        self.bursts.iter().flatten().for_each(|sample| shares[sample.range] += sample.weight);
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum.max(f64::MIN_POSITIVE));
        shares
    }

    /// Samples at pages that are seen now and then.
    fn rare_weight(&self, counts: &PageCounts) -> f64 {
        self.bursts.iter().fold(0.0, |sum, burst| sum + rare_weight(burst, counts))
    }

    /// The interval of the share of jumping samples, by drawing whole bursts.
    fn interval(&self, bursts: &[Vec<WaitingSample>], counts: &PageCounts) -> [f64; 2] {
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
    fn local_share(&self) -> f64 {
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

fn rare_weight(burst: &[SmallSample], counts: &PageCounts) -> f64 {
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

/// The share of walks in the modelled cycles of reads at random lines of so many pages, spread over the ranges as the
/// samples are.
fn model_share(seen: &SmallSamples, memory: &[MemoryRange], pages: u64, setup: &Setup) -> Result<f64, SetupError> {
    if pages == 0 {
        return Ok(0.0);
    }
    let mut setup = setup.clone();
    setup.detail = Detail::Totals;
    let mut engine = Engine::new(setup)?;
    let mut until = 0.0;
    let areas: Vec<(f64, u64, u64, u64)> = seen
        .shares_of_ranges(memory.len())
        .into_iter()
        .zip(memory)
        .filter(|(share, _)| *share > 0.0)
        .map(|(share, range)| {
            until += share;
            let in_range = (range.end - range.start) >> PAGE_SHIFT;
            let pages = ((pages as f64 * share).round() as u64).clamp(1, in_range.max(1));
            (until, range.start >> PAGE_SHIFT, pages, in_range / pages)
        })
        .collect();
    let mut rng = SplitMix64::new(SEED);
    let mut part = |engine: &mut Engine| {
        let mut block = Block { process: 1, thread: 1, ..Block::default() };
        for _ in 0..ACCESSES / 2 {
            let at = rng.unit();
            let area = areas.partition_point(|area| area.0 <= at).min(areas.len().saturating_sub(1));
            let Some(&(_, first, pages, step)) = areas.get(area) else { break };
            let page = first + rng.below(pages) * step;
            block.push(Kind::Load, page << PAGE_SHIFT | rng.below(LINES) << LINE_SHIFT);
        }
        engine.run(&block);
        let outcome = engine.outcome();
        (outcome.translation_cycles(), outcome.modelled_cycles())
    };
    let (warm, all) = (part(&mut engine), part(&mut engine));
    let (translation, cycles) = (all.0 - warm.0, all.1 - warm.1);
    Ok(if cycles > 0.0 { translation / cycles } else { 0.0 })
}
