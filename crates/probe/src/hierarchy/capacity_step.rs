//! Finds the step in a curve of costs over a growing number of things: how many fit, and how many do not.

use lookaside_stats::median;
use serde::Serialize;

use crate::bench::Halt;
use crate::report::walk_caches::CountCost;

/// From a number to the next one tried.
const RATIO: f64 = 1.25;
/// Cycles that a step has at least.
const LEAST_CYCLES: f64 = 2.0;
/// And so many times what two measurements of one number differ by.
const LEAST_NOISE: f64 = 3.0;
/// So many fit if that costs at most this part of the step.
const FITS: f64 = 0.15;
/// So many do not fit if that costs at least this part of it.
const MISSES: f64 = 0.5;

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct CapacityStep {
    /// The most that fit; 0 = fewer than the fewest that were tried.
    pub fit: u32,
    /// The fewest that clearly do not.
    pub miss: u32,
    /// What it costs in core cycles where there are many more.
    pub cycles: f64,
}

/// The numbers that are tried from `least` to `most`, before what is between is looked at.
pub(super) fn grid(least: u32, most: u32) -> Vec<u32> {
    let mut numbers = vec![least];
    while let Some(&last) = numbers.last() {
        let next = ((f64::from(last) * RATIO) as u32).max(last + 1);
        if next > most {
            break;
        }
        numbers.push(next);
    }
    numbers
}

/// What a step has at least, with these costs.
fn least(costs: &[CountCost]) -> f64 {
    let spread = median(costs.iter().map(|cost| cost.spread)).unwrap_or_default();
    LEAST_CYCLES.max(LEAST_NOISE * spread)
}

/// The step in these costs (in ascending order of numbers), if there is a clear one: from one number on all do not fit,
/// up to another all do.
pub(super) fn rise(costs: &[CountCost]) -> Option<CapacityStep> {
    let last = &costs[costs.len() - (costs.len() / 4).max(3).min(costs.len())..];
    let cycles = median(last.iter().map(|cost| cost.cycles))?;
    if cycles < least(costs) {
        return None;
    }
    let fitting = costs.iter().take_while(|cost| cost.cycles <= FITS * cycles).count();
    let missing = costs.iter().rev().take_while(|cost| cost.cycles >= MISSES * cycles).count();
    let miss = costs[costs.len() - missing..].first()?.count;
    let fit = costs[..fitting].last().map_or(0, |cost| cost.count);
    // Between the two they rise, or go up and down.
    Some(CapacityStep { fit, miss, cycles })
}

/// The most that a number costs in these, where no step is seen: with what measurements differ by.
pub(super) fn bound(costs: &[CountCost]) -> f64 {
    costs.iter().map(|cost| cost.cycles + cost.spread).fold(0.0, f64::max).max(least(costs))
}

/// Looks for a step from `least` to `most`, and closer where it is. What cannot be measured is left out.
pub(super) fn search(
    least: u32,
    most: u32,
    mut cost: impl FnMut(u32) -> Result<Option<CountCost>, Halt>,
) -> Result<(Option<CapacityStep>, Vec<CountCost>), Halt> {
    let mut costs = Vec::new();
    for count in grid(least, most) {
        costs.extend(cost(count)?);
    }
    let mut found = rise(&costs);
    // Halve what is between, on both sides.
    while let Some(now) = found {
        let at = |count: u32| costs.iter().position(|cost| cost.count == count);
        let above = at(now.fit).map_or(0, |i| i + 1);
        let gaps = [
            (now.fit, costs.get(above)),
            (
                at(now.miss).and_then(|i| i.checked_sub(1)).map_or(0, |i| costs[i].count),
                costs.get(at(now.miss).unwrap_or(0)),
            ),
        ];
        let gap = gaps.iter().find_map(|(low, high)| {
            high.filter(|high| *low > 0 && high.count > low + 1).map(|high| (*low, high.count))
        });
        let Some((low, high)) = gap else { break };
        let Some(new) = cost(low + (high - low) / 2)? else { break };
        costs.push(new);
        costs.sort_by_key(|cost| cost.count);
        found = rise(&costs);
    }
    Ok((found, costs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(of: impl Fn(u32) -> f64) -> (Option<CapacityStep>, Vec<CountCost>) {
        search(6, 200, |count| Ok(Some(CountCost { count, cycles: of(count), spread: 0.3 }))).expect("nobody halts")
    }

    #[test]
    fn a_step_is_found_to_one_entry() {
        let (found, costs) = costs(|count| if count > 57 { 30.0 } else { 0.2 });
        assert_eq!(found, Some(CapacityStep { fit: 57, miss: 58, cycles: 30.0 }));
        assert!(costs.len() < 30, "{}", costs.len());
        // All of the numbers tried are too many.
        assert_eq!(
            super::rise(&[(6, 9.0), (7, 9.0), (8, 9.0)].map(|(count, cycles)| CountCost {
                count,
                cycles,
                spread: 0.1
            })),
            Some(CapacityStep { fit: 0, miss: 6, cycles: 9.0 })
        );
    }

    #[test]
    fn a_slope_has_both_ends() {
        let (found, _) = costs(|count| 20.0 * (f64::from(count.saturating_sub(32)) / 16.0).min(1.0));
        assert_eq!(found.map(|rise| (rise.fit, rise.miss)), Some((34, 40)));
    }

    #[test]
    fn what_is_flat_or_jagged_has_no_step() {
        let (found, flat) = costs(|count| f64::from(count % 3) * 0.3);
        assert_eq!(found, None);
        assert!((1.9..2.1).contains(&bound(&flat)));
        assert_eq!(costs(|count| if count % 2 == 0 { 20.0 } else { 0.0 }).0, None);
        // Nor what is no more than measurements differ by.
        let (found, _) = search(6, 200, |count| {
            Ok(Some(CountCost { count, cycles: if count > 50 { 9.0 } else { 0.0 }, spread: 4.0 }))
        })
        .expect("nobody halts");
        assert_eq!(found, None);
    }
}
