//! Measures the misses of an access sequence: in many sets at once, so that they add up, and behind a flooded first
//! level.

use crate::bench::{ChainBench, Halt};
use crate::gf2;
use crate::tlb::geometry::Geometry;
use crate::tlb::level_meter::LevelMeter;
use crate::tlb::policy::sequence::TrialSequence;
use lookaside_stats::{median, quantiles};

/// Lines of data that a measurement uses at most: four fifths of the smallest first-level data cache (32 KiB: 512),
/// which also holds table entries. Where a hit in it turns to a miss, it is taken for a miss of the TLB.
const LINES: usize = 400;
/// Sets tested at once where the pages that flood the level above alone take so much of the data cache that nothing
/// else stays in it: then hits and misses of the TLB miss it alike.
const LANES: usize = 32;

/// One set in each of several lanes, all in one set of the level above (if there is one), and pages that flood that.
#[derive(Debug)]
pub struct SetMeter<'a> {
    level: &'a LevelMeter,
    /// Vectors from a page to others of its set, in both levels.
    same: Vec<u64>,
    /// Sums of these lead to all the sets that can be had without leaving the set above.
    across: Vec<u64>,
    /// Sets tested at once, at most.
    lanes: usize,
    /// Pages that flood the set above.
    flood: usize,
    /// Pages that a set of no lane has room for.
    roomy: usize,
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub struct SequenceMisses {
    /// Misses of the sequence's looks, in one set: the median of several measurements, with other pages each.
    pub misses: f64,
    /// Between the quartiles of these.
    pub spread: f64,
    /// What misses may be off by for each hundredth that times are off by.
    pub misses_a_percent: f64,
    /// Ticks that a miss added.
    pub miss_ticks: f64,
}

impl<'a> SetMeter<'a> {
    /// An instrument for a level; `None` where the level above cannot be kept from hiding what it does, or where page
    /// numbers have too few bits.
    pub fn new(bench: &ChainBench<'_>, level: &'a LevelMeter, geometry: &Geometry) -> Option<Self> {
        let bits = bench.bits();
        let wanted = TrialSequence::most_pages(geometry.ways as usize).next_power_of_two().ilog2() as usize;
        let enough = |same: Vec<u64>| (same.len() >= wanted).then(|| gf2::near_first(&same));
        let Some(above) = &level.above else {
            let same = enough(gf2::null_space(&geometry.masks, bits))?;
            let across = pivots(&geometry.masks);
            return Some(Self { level, same, across, lanes: geometry.sets as usize, flood: 0, roomy: 0 });
        };
        let both: Vec<u64> = above.masks.iter().chain(&geometry.masks).copied().collect();
        let same = enough(gf2::null_space(&both, bits))?;
        // Of the vectors that stay in a set above, the nearest whose sets here are independent.
        let mut across: Vec<u64> = Vec::new();
        for vector in gf2::near_first(&gf2::null_space(&above.masks, bits)) {
            let images = across.iter().chain([&vector]).map(|&v| gf2::apply(&geometry.masks, v)).collect::<Vec<u64>>();
            if gf2::reduce(&images).len() == images.len() {
                across.push(vector);
            }
        }
        let sets = 1usize << across.len();
        let roomy = (geometry.ways as usize / 2).max(1);
        let flood = above.flood_pages() >> above.masks.len();
        let fits = |&lanes: &usize| (sets - lanes) * roomy >= flood.saturating_sub(lanes);
        let lanes = (1..sets.min(LANES + 1)).rev().find(fits)?;
        Some(Self { level, same, across, lanes, flood, roomy })
    }

    /// Misses that a sequence may be off by for each hundredth that its times are off by, before it is measured.
    pub fn misses_a_percent(&self, sequence: &TrialSequence) -> f64 {
        let lanes = self.lanes(sequence);
        let step = lanes.max(self.flood) as f64 * (self.level.hit_ticks + self.level.above_ticks);
        0.01 * sequence.chain().len() as f64 * (1.0 + step / (lanes as f64 * self.level.miss_ticks))
    }

    fn lanes(&self, sequence: &TrialSequence) -> usize {
        if 2 * self.flood > LINES {
            return self.lanes;
        }
        ((LINES - self.flood) / sequence.distinct()).clamp(1, self.lanes)
    }

    /// Misses of a sequence, by so many measurements; `near` = 0: of the nearest pages.
    pub fn measure(
        &self,
        bench: &mut ChainBench<'_>,
        sequence: &TrialSequence,
        times: usize,
        near: usize,
    ) -> Result<SequenceMisses, Halt> {
        let lanes = self.lanes(sequence);
        let (mut none, mut some, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..times {
            let pages = TrialPages::new(bench, self, lanes, sequence.distinct(), near);
            let base = bench.sequence(&pages.chain(&sequence.all_hitting()))?;
            none.push(base);
            some.push(bench.sequence(&pages.chain(&sequence.chain()))? - base);
            all.push(bench.sequence(&pages.chain(&sequence.all_missing()))? - base);
        }
        let base = median(none).unwrap_or_default();
        let [low, middle, high] = quantiles(some, [0.25, 0.5, 0.75]).unwrap_or_default();
        let miss = median(all).unwrap_or_default() / sequence.looks as f64;
        Ok(SequenceMisses {
            misses: middle / miss,
            spread: (high - low) / miss,
            misses_a_percent: 0.01 * (base + middle) / miss,
            miss_ticks: miss / lanes as f64,
        })
    }
}

/// The pages of one measurement.
struct TrialPages {
    /// From the first page of a set to the others.
    same: Vec<u64>,
    /// First pages.
    lanes: Vec<u64>,
    /// Pages after the lanes'.
    fillers: Vec<u64>,
}

impl TrialPages {
    fn new(bench: &mut ChainBench<'_>, instrument: &SetMeter<'_>, lanes: usize, pages: usize, near: usize) -> Self {
        let start = bench.page();
        // A near subspace that is just large enough: its pages are shared out evenly over the sets below. Not always
        // the same, since one may meet in a few sets there.
        let dimension = pages.max(instrument.roomy).next_power_of_two().ilog2() as usize;
        let skip = near.min(instrument.same.len() - dimension);
        let mut same = gf2::span(&instrument.same[skip..skip + dimension]);
        bench.rng.shuffle(&mut same);
        let mut sets = gf2::span(&instrument.across);
        bench.rng.shuffle(&mut sets);
        let (tested, others) = sets.split_at(lanes);
        let mut fillers: Vec<u64> = Vec::new();
        for vector in &same[..instrument.roomy] {
            fillers.extend(others.iter().map(|set| set ^ start ^ vector));
        }
        fillers.truncate(instrument.flood.saturating_sub(lanes));
        Self { same, lanes: tested.iter().map(|set| set ^ start).collect(), fillers }
    }

    fn chain(&self, numbers: &[usize]) -> Vec<u64> {
        let mut chain = Vec::with_capacity(numbers.len() * (self.lanes.len() + self.fillers.len()));
        for &number in numbers {
            chain.extend(self.lanes.iter().map(|lane| lane ^ self.same[number]));
            chain.extend(&self.fillers);
        }
        chain
    }
}

/// One vector for each mask (in reduced form) that it alone sees.
fn pivots(masks: &[u64]) -> Vec<u64> {
    gf2::reduce(masks).iter().map(|row| row & row.wrapping_neg()).collect()
}
