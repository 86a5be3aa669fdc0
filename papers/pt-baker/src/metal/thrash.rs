//! PT-Baker's Algorithm 5 on the metal: a circle through the pages of an array in order, and how long an access takes.

use std::ops::Range;

use lookaside_harness::metal::{estimate, interleaved, Estimate};
use lookaside_probe::{gf2, ChainBench, Geometry, Halt};

/// Arrays around a capacity: from a quarter of it to twice it, so many steps a capacity.
const STEPS: u64 = 16;
/// Steps a capacity from three quarters of it to half as much again, where rises begin and end.
const FINE: u64 = 32;
/// Sizes right at a capacity, one by one.
const CLOSE: u64 = 2;
/// Sizes of a curve that is shown for comparison only.
const FEW: usize = 16;
/// The rise begins where this share of its height is reached, and is complete at the other.
const BEGINS: f64 = 0.1;
/// See [`BEGINS`].
const COMPLETE: f64 = 0.9;
/// A rise is seen where it is more than this share of the time before it.
const SEEN: f64 = 0.2;
/// It is also more than this many times what the time varies by before it: going on as steeply would give 3.5 times
/// that.
const STEEPER: f64 = 5.0;
/// Plateaus before and after a rise, in capacities.
const BEFORE: Range<f64> = 0.3..0.7;
/// See [`BEFORE`].
const AFTER: Range<f64> = 1.7..2.1;

/// A size of the array and ticks an access.
pub(super) type ArrayTime = (u64, Estimate);

/// Where the time of an access rises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Knee {
    /// Ticks an access before and after.
    pub(super) before: f64,
    pub(super) after: f64,
    /// Pages at which the rise begins, and from which on it is complete.
    pub(super) begins: u64,
    pub(super) complete: u64,
}

/// Sizes of an array around a capacity, ascending.
pub(super) fn sizes(capacity: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (STEPS / 4..=2 * STEPS).map(|i| (i * capacity / STEPS).max(2)).collect();
    all.extend((FINE * 3 / 4..=FINE * 3 / 2).map(|i| (i * capacity / FINE).max(2)));
    all.extend((capacity.saturating_sub(CLOSE)..=capacity + CLOSE).filter(|&n| n >= 2));
    all.sort_unstable();
    all.dedup();
    all
}

/// A few of these, evenly.
pub(super) fn few(sizes: &[u64]) -> Vec<u64> {
    sizes.iter().copied().step_by(sizes.len().div_ceil(FEW).max(1)).collect()
}

/// Order of the accesses to an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrayOrder {
    /// As the paper has it. A processor may see it coming and translate ahead.
    Ascending,
    /// One random order, the same every round.
    Random,
}

/// Ticks an access in the steady state. The array begins at a multiple of its largest size, another one in each
/// repetition.
pub(super) fn curve(bench: &mut ChainBench<'_>, sizes: &[u64], order: ArrayOrder) -> Result<Vec<ArrayTime>, Halt> {
    let most = sizes.iter().max().map_or(1, |n| n.next_power_of_two());
    let mut start = (usize::MAX, 0);
    let estimates = interleaved(sizes, |repetition, &pages| {
        if start.0 != repetition {
            start = (repetition, bench.page() & !(most - 1));
        }
        let array: Vec<u64> = (start.1..start.1 + pages).collect();
        let ticks = match order {
            ArrayOrder::Ascending => bench.sequence(&array)?,
            ArrayOrder::Random => bench.pages(&array)?,
        };
        Ok(ticks / pages as f64)
    })?;
    Ok(sizes.iter().copied().zip(estimates).collect())
}

/// The rise around a capacity; `None` = there is none.
pub(super) fn knee(curve: &[ArrayTime], capacity: u64) -> Option<Knee> {
    let plateau = |range: Range<f64>| {
        let within = |pages: u64| range.contains(&(pages as f64 / capacity as f64));
        let values: Vec<f64> = curve.iter().filter(|(n, _)| within(*n)).map(|(_, y)| y.median).collect();
        estimate(values)
    };
    let (before, after) = (plateau(BEFORE), plateau(AFTER));
    let height = after.median - before.median;
    if height.is_nan() || height < SEEN * before.median || height < STEEPER * (before.high - before.low) {
        return None;
    }
    let begin = before.median + BEGINS * height;
    let complete = before.median + COMPLETE * height;
    // Two sizes running: one may be disturbed in most of its repetitions.
    let first = |bar: f64| curve.windows(2).find(|w| w.iter().all(|(_, y)| y.median >= bar)).map(|w| w[0].0);
    Some(Knee { before: before.median, after: after.median, begins: first(begin)?, complete: first(complete)? })
}

/// Where the rise begins and is complete if the set index is as known, all entries take one page each, and a set
/// forgets the page used longest ago: then all pages of a set that has too many miss, and no others do.
pub(super) fn predicted(geometry: &Geometry) -> (u64, u64) {
    let mut load = vec![0u64; geometry.sets as usize];
    let (mut begins, mut missing) = (None, 0);
    for page in 0..4 * u64::from(geometry.entries) {
        let set = &mut load[gf2::apply(&geometry.masks, page) as usize];
        *set += 1;
        missing += match *set - 1 {
            before if before == u64::from(geometry.ways) => before + 1,
            before if before > u64::from(geometry.ways) => 1,
            _ => 0,
        };
        let share = missing as f64 / (page + 1) as f64;
        if share >= BEGINS {
            begins.get_or_insert(page + 1);
        }
        if share >= COMPLETE {
            return (begins.unwrap_or(page + 1), page + 1);
        }
    }
    let never = u64::from(geometry.entries) * 4;
    (begins.unwrap_or(never), never)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(sets: u32, ways: u32, masks: Vec<u64>) -> Geometry {
        Geometry { entries: sets * ways, ways, sets, masks }
    }

    #[test]
    fn predictions_are_those_worked_out_by_hand() {
        // One page too many: all miss.
        assert_eq!(predicted(&geometry(1, 64, vec![])), (65, 65));
        // 16 sets of 4: k sets with 5 pages, 5k of 64 + k. A tenth: k = 2 (10 of 66). Nine tenths: k = 14 (70 of 78 is
        // 0.897), k = 15 (75 of 79).
        assert_eq!(predicted(&geometry(16, 4, (0..4).map(|bit| 1 << bit).collect())), (66, 79));
        // Index from bit 2 on, as with blocks of four pages: 128 sets of 16 overflow four pages at a time.
        let (begins, complete) = predicted(&geometry(128, 16, (2..9).map(|bit| 1 << bit).collect()));
        assert!((2049..2110).contains(&begins) && (2490..=2560).contains(&complete), "{begins} {complete}");
    }

    #[test]
    fn knees_are_found_and_slopes_are_none() {
        let at = |f: &dyn Fn(u64) -> f64| -> Vec<ArrayTime> {
            let exact = |y| Estimate { median: y, low: y, high: y };
            sizes(64).into_iter().map(|n| (n, exact(f(n)))).collect()
        };
        let step = at(&|n| if n > 64 { 12.0 } else { 4.0 });
        assert_eq!(knee(&step, 64), Some(Knee { before: 4.0, after: 12.0, begins: 65, complete: 65 }));
        assert_eq!(knee(&at(&|_| 4.0), 64), None);
        assert_eq!(knee(&at(&|n| 4.0 + n as f64 / 16.0), 64), None);
    }
}
