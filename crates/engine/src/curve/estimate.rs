//! A miss curve from samples.

use lookaside_stats::Richness;

use super::miss_curve::{listed_sizes, MissCurve};

/// Pages of a program that samples can't tell the number of: more than any TLB of today has entries.
const MOST_PAGES: f64 = 1e9;

/// Estimates the fully associative curve of a stream in which each access goes to a page with a fixed probability,
/// whatever came before (independent-reference model), from how often each page was sampled.
///
/// Che's approximation (Che, Tung and Wang 2002): a page is still in a TLB of `n` entries if it was accessed within the
/// last `t` accesses, where `t` is such that `n` distinct pages are expected in `t` accesses. Real programs reuse pages
/// sooner than that, so their misses are mostly fewer. `accesses` = the sum of the weights; there are no cold misses,
/// and nothing is said of sets. Pages that were not sampled are estimated from those that were sampled seldom
/// ([`Richness`]). Sizes at which less than one sample would miss are not listed: N samples say nothing below 1 in N.
pub fn estimate_from_samples(weights: impl IntoIterator<Item = u64>) -> MissCurve {
    let weights: Vec<u64> = weights.into_iter().filter(|&w| w > 0).collect();
    let accesses: u64 = weights.iter().sum();
    let classes = classes(&weights);
    let total = accesses as f64;
    let pages: f64 = classes.iter().map(|(_, count)| count).sum();
    let misses = |entries: u64| {
        if entries as f64 >= pages {
            return 0;
        }
        let time = characteristic_time(&classes, entries as f64);
        let missed: f64 = classes.iter().map(|&(p, count)| count * p * (-p * time).exp()).sum();
        (missed * total).round() as u64
    };
    // Rates are of probabilities: the classes hold shares of the total.
    let listed = listed_sizes(pages as u64).into_iter().map(|entries| (entries, misses(entries)));
    let fully_associative = listed.take_while(|(_, misses)| *misses > 0).collect();
    MissCurve { accesses, cold_misses: 0, fully_associative, set_associative: Vec::new(), estimate: true }
}

/// Pages of equal probability together: (probability, pages). Those sampled seldom, and those not sampled that are like
/// them, are one class.
fn classes(weights: &[u64]) -> Vec<(f64, f64)> {
    let total: u64 = weights.iter().sum();
    let mut by_weight = std::collections::BTreeMap::<u64, u64>::new();
    for &weight in weights.iter().filter(|weight| !Richness::is_rare(**weight)) {
        *by_weight.entry(weight).or_default() += 1;
    }
    let rare = Richness::of(weights.iter().copied(), MOST_PAGES);
    let rare = (rare.kinds > 0.0).then(|| (rare.observations / total as f64 / rare.kinds, rare.kinds));
    let abundant = by_weight.into_iter().map(|(weight, count)| (weight as f64 / total as f64, count as f64));
    abundant.chain(rare).collect()
}

/// The number of accesses in which this many distinct pages are expected: the root of an increasing function.
fn characteristic_time(classes: &[(f64, f64)], entries: f64) -> f64 {
    let distinct = |time: f64| classes.iter().map(|&(p, count)| count * -(-p * time).exp_m1()).sum::<f64>();
    let mut high = entries;
    while distinct(high) < entries && high.is_finite() {
        high *= 2.0;
    }
    let mut low = 0.0;
    // Each step halves the interval: 60 leave nothing that a double would see.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if distinct(middle) < entries {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
