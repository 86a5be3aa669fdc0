//! 2 MiB pages with entries of a kind of their own, as many or as few as can be had: found as they are, or not
//! determined.

use crate::sim::{Array, Costs, Noise, Sim};
use lookaside_machine::{PageSize, Replacement};
use lookaside_probe::{
    first_level, second_level, until_two_agree, ChainBench, Finding, Geometry, Metal, MetalError, PageChain,
};
use lookaside_stats::SplitMix64;

/// A machine whose pages are of 2 MiB, and so few.
struct Large {
    sim: Sim,
    bits: u32,
    pages: usize,
}

impl Metal for Large {
    fn page_bits(&self, size: PageSize) -> u32 {
        if size == PageSize::M2 {
            self.bits
        } else {
            0
        }
    }

    fn max_pages(&self, _: PageSize) -> usize {
        self.pages
    }

    fn chase(&mut self, chain: &PageChain<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        let distinct: std::collections::BTreeSet<u64> = chain.pages.iter().copied().collect();
        if distinct.len() > self.pages || chain.size != PageSize::M2 {
            let reason = format!("{} pages of {}", distinct.len(), chain.size);
            return Err(MetalError::Memory { pages: distinct.len(), size: chain.size, reason });
        }
        self.sim.chase(chain, rounds, samples)
    }

    fn cycles_per_tick(&self) -> f64 {
        1.0
    }
}

/// Whether it is confirmed, and then right.
fn is_right(found: &Finding<Geometry>, array: &Array) -> Option<bool> {
    let found = found.value()?;
    Some((found.sets, found.ways, &found.masks) == (array.sets, array.ways, &array.masks))
}

/// Levels found, and all, of machines that have so many pages.
fn found(pages: usize) -> (usize, usize) {
    let costs = Costs { hit: 4.0, second: 6.0, walk: 35.0 };
    let noise = Noise { sigma: 0.005, bias: 0.002, outliers: 0.03, interrupts: 0.01, grain: 26.0 };
    let (mut right, mut all) = (0, 0);
    for seed in 0..6 {
        let mut rng = SplitMix64::new(seed);
        let bits = 24;
        let (sets, ways) = [(0, 32), (3, 4), (0, 16), (4, 4), (2, 8), (0, 64)][seed as usize];
        let policy = [Replacement::Lru, Replacement::Fifo, Replacement::Random][rng.index(3)];
        let arrays = [Array::linear(sets, ways, policy), Array::linear(7, 8 + 4 * (seed as u32 % 2), policy)];
        let mut metal = Large { sim: Sim::new(&arrays, bits, costs, noise, seed), bits, pages };
        let mut bench = ChainBench::new(&mut metal, PageSize::M2, seed, &|| None);
        // What is refused for want of pages is not determined.
        let Ok((first, _)) = until_two_agree(&mut bench, first_level) else { continue };
        let mut levels = vec![is_right(&first.geometry, &arrays[0])];
        if let (Some(geometry), Some(level)) = (first.geometry.value(), &first.level) {
            if let Ok(second) = second_level(&mut bench, geometry, level) {
                levels.push(is_right(&second.geometry, &arrays[1]));
            }
        }
        assert!(!levels.contains(&Some(false)), "seed {seed}, {pages} pages: {arrays:x?} is taken for another");
        all += 2;
        right += levels.iter().filter(|right| **right == Some(true)).count();
    }
    println!("{pages} pages: {right} of {all} levels");
    (right, all)
}

#[test]
fn where_there_are_enough_pages_both_levels_are_found() {
    let (right, all) = found(1 << 14);
    assert!(4 * right >= 3 * all, "{right} of {all}");
}

#[test]
fn where_there_are_few_pages_nothing_wrong_is_said() {
    // 256 MiB of them.
    found(128);
    found(16);
}
