//! The coloring paper's section 6.0.7 on the metal: what a miss costs, by dual loop timing.

use lookaside_probe::{gf2, Bench, Halt};

use super::estimate::{estimate, Estimate, REPETITIONS};
use super::known::Array;

/// Pages of one set that surely all miss in a circle, whatever the policy, in ways.
const FLOOD: u64 = 4;

/// What a miss costs, in ticks, over repetitions.
#[derive(Clone, Debug)]
pub(super) struct Penalty {
    /// Ticks an access of a circle through one page more than a set has ways, beyond the control loop's.
    pub(super) one_more: Vec<f64>,
    /// The same for so many pages of the set that surely all miss.
    pub(super) flooded: Vec<f64>,
}

impl Penalty {
    /// Part of the accesses of the circle that miss.
    pub(super) fn missing(&self) -> f64 {
        estimate(self.one_more.clone()).median / estimate(self.flooded.clone()).median
    }
}

/// First level: a circle through pages of one set, less a loop of as many accesses that hit.
pub(super) fn first_level(bench: &mut Bench<'_>, array: &Array) -> Result<Penalty, Halt> {
    let mut penalty = Penalty { one_more: Vec::new(), flooded: Vec::new() };
    let ways = u64::from(array.geometry.ways);
    for _ in 0..REPETITIONS {
        for (pages, ticks) in [(ways + 1, &mut penalty.one_more), (FLOOD * ways, &mut penalty.flooded)] {
            let circle = of_one_set(bench, array, pages);
            // The control loop: as many accesses, to two of the pages.
            let control: Vec<u64> = (0..circle.len()).map(|i| circle[i % 2]).collect();
            ticks.push((bench.pages(&circle)? - bench.sequence(&control)?) / circle.len() as f64);
        }
    }
    Ok(penalty)
}

/// Pages of one set, the nearest to each other, at a random place.
fn of_one_set(bench: &mut Bench<'_>, array: &Array, pages: u64) -> Vec<u64> {
    let mut basis = gf2::near_first(&gf2::null_space(&array.geometry.masks, bench.bits()));
    basis.truncate(pages.next_power_of_two().ilog2() as usize);
    let start = bench.page();
    gf2::span(&basis).into_iter().take(pages as usize).map(|v| v ^ start).collect()
}

/// Mean and standard deviation, as the paper gives them.
pub(super) fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0)).sqrt())
}

/// Values times `by`.
pub(super) fn scaled(values: &[f64], by: f64) -> Estimate {
    estimate(values.iter().map(|v| v * by).collect())
}
