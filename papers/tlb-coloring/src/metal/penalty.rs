//! The coloring paper's section 6.0.7 on the metal: what a miss costs, by dual loop timing.

use lookaside_harness::metal::{estimate, Estimate, KnownLevel, REPETITIONS};
use lookaside_probe::{gf2, Act, ChainBench, Halt};

/// Pages of one set that surely all miss in a circle, whatever the policy, in ways.
pub(super) const FLOOD: u64 = 4;

/// Pages that put out every entry of the second level, in entries.
const OTHERS: usize = 2;
/// Pages whose first accesses are timed together: as few as a first level surely holds.
pub(super) const COLD: usize = 8;
/// Their distance in pages: a line holds 8 table entries.
const APART: u64 = 9;
/// Rounds timed in each repetition.
const ROUNDS: usize = 11;

/// What a miss costs, in ticks, over repetitions.
#[derive(Clone, Debug)]
pub(super) struct Penalty {
    /// Ticks an access of a circle through one page more than a set has ways, beyond the control loop's.
    pub(super) one_more: Vec<f64>,
    /// The same for so many pages of the set that surely all miss.
    pub(super) flooded: Vec<f64>,
}

/// First level: a circle through pages of one set, less a loop of as many accesses that hit.
pub(super) fn first_level(bench: &mut ChainBench<'_>, array: &KnownLevel) -> Result<Penalty, Halt> {
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

/// Pages that put out every entry of a level.
pub(super) fn others(array: &KnownLevel) -> usize {
    OTHERS * array.geometry.entries as usize
}

/// Second level: the first access to some pages of different sets after others have put out every entry, less the same
/// with the pages' translations used again before (at another line, so that the data are where they were): ticks a
/// miss, over repetitions.
pub(super) fn second_level(bench: &mut ChainBench<'_>, array: &KnownLevel) -> Result<Vec<f64>, Halt> {
    let mut ticks = Vec::new();
    let count = others(array) as u64;
    for _ in 0..REPETITIONS {
        let start = bench.page() & !(count.next_power_of_two() - 1);
        let mut others: Vec<u64> = (0..count).map(|page| start + page).collect();
        bench.rng.shuffle(&mut others);
        // In different sets of every index that is known, each with a line of the table of its own.
        let far = bench.page();
        let mut cold: Vec<u64> = (0..COLD as u64).map(|page| far.wrapping_add(page * APART)).collect();
        bench.rng.shuffle(&mut cold);
        let walked = bench.shot(&[Act::Load(&others)], &cold, ROUNDS)?;
        let control = bench.shot(&[Act::Load(&others), Act::Refill(&cold)], &cold, ROUNDS)?;
        ticks.push((estimate(walked).median - estimate(control).median) / COLD as f64);
    }
    Ok(ticks)
}

/// Pages of one set, the nearest to each other, at a random place.
fn of_one_set(bench: &mut ChainBench<'_>, array: &KnownLevel, pages: u64) -> Vec<u64> {
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
