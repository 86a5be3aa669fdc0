//! The share of a process's CPU time that goes to page-table walks, from samples of what it waits for.
//!
//! Clock samples are of time, not of accesses: a sample says "it waits here". Of the time that it waits at jumps into
//! memory in small pages, the model says which part is the walk: it runs accesses to as many pages as the samples tell
//! of ([`Richness`]), at random, on the machine. Time at accesses that stay near each other for a while costs next
//! to no walk. `docs/explanation/sampling.md` works one case out by hand.

use lookaside_engine::{Detail, Engine, Setup, SetupError};
use lookaside_machine::Machine;
use lookaside_stats::{Richness, SplitMix64};
use lookaside_trace::{Block, Kind};
use serde::{Deserialize, Serialize};

use small_samples::SmallSamples;
pub use waiting_sample::{MemoryRange, WaitingSample};
use waiting_sample::{PAGE_SHIFT, SEED};

mod small_samples;
mod waiting_sample;

/// Samples below which nothing is said: a share of 10 % would have an interval of 10 points and more.
pub const LEAST_SAMPLES: usize = 100;
/// Accesses of a run of the model that count.
const ACCESSES: u64 = 100_000;
/// Accesses before those, which fill the TLBs and caches: so many, or as many as the last cache needs ([`warm_up`]).
const WARM_UP: (u64, u64) = (150_000, 1_000_000);
const LINES: u64 = 64;
const LINE_SHIFT: u32 = 6;

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
    // A few pages more or less change nothing.
    let off = |pages_off: f64| match (pages_off / pages.kinds.max(1.0) - 1.0).abs() < 0.02 {
        true => Ok(at),
        false => model(pages_off),
    };
    // More pages miss the TLB more often; but data that outgrows the last cache waits longer, beside which a walk is less.
    let (fewer, more) = (off(pages.least)?, off(pages.most)?);
    let (low, high) = (at.min(fewer).min(more), at.max(fewer).max(more));
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

/// The share of walks in the modelled cycles of reads at random lines of so many pages, spread over the ranges as the
/// samples are.
fn model_share(seen: &SmallSamples, memory: &[MemoryRange], pages: u64, setup: &Setup) -> Result<f64, SetupError> {
    if pages == 0 {
        return Ok(0.0);
    }
    let mut setup = setup.clone();
    setup.detail = Detail::Totals;
    let warm_up = warm_up(&setup.machine, pages);
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
    let mut part = |engine: &mut Engine, accesses: u64| {
        let mut block = Block { process: 1, thread: 1, ..Block::default() };
        for _ in 0..accesses {
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
    let (warm, all) = (part(&mut engine, warm_up), part(&mut engine, ACCESSES));
    let (translation, cycles) = (all.0 - warm.0, all.1 - warm.1);
    Ok(if cycles > 0.0 { translation / cycles } else { 0.0 })
}

/// Accesses that fill the caches with lines of so many pages. Where these are far more than the last cache holds, hardly
/// any of them hits there, filled or not; else three times as many accesses as it has lines leave 5 % of it empty.
fn warm_up(machine: &Machine, pages: u64) -> u64 {
    let lines = machine.caches.iter().map(|cache| u64::from(cache.lines())).max().unwrap_or(0);
    match pages.saturating_mul(LINES) < 8 * lines {
        true => (3 * lines).clamp(WARM_UP.0, WARM_UP.1),
        false => WARM_UP.0,
    }
}

#[cfg(test)]
mod tests;
