//! How many kinds there are, by how often each was seen in a sample.

/// Kinds that were seen more often are told apart by their own counts; ACE's usual threshold.
const RARE: u64 = 10;

/// The kinds that were seen now and then, and those like them that were not seen: how many there are, by the
/// abundance-based coverage estimator (Chao and Lee, Estimating the number of classes via sample coverage, Journal of the
/// American Statistical Association 87, 1992). Those seen once tell which share of the rare ones was not seen, and how
/// the counts spread tells how unequal they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Richness {
    /// Observations of the rare kinds.
    pub observations: f64,
    /// Rare kinds, those that were not seen too.
    pub kinds: f64,
    /// At least so many, as far as so few observations can tell.
    pub least: f64,
    /// At most.
    pub most: f64,
}

impl Richness {
    /// By how often each kind was seen; there are `most` rare kinds at most.
    pub fn of(counts: impl IntoIterator<Item = u64>, most: f64) -> Self {
        let mut by_count = [0u64; RARE as usize + 1];
        for count in counts.into_iter().filter(|count| Self::is_rare(*count)) {
            by_count[count as usize] += 1;
        }
        let sum =
            |of: &dyn Fn(u64) -> u64| (1..=RARE).map(|count| of(count) * by_count[count as usize]).sum::<u64>() as f64;
        let (seen, observations) = (sum(&|_| 1), sum(&|count| count));
        // Pairs of observations of one kind, in both orders.
        let pairs = sum(&|count| count * (count - 1));
        let once = by_count[1] as f64;
        let coverage = 1.0 - once / observations.max(1.0);
        let most = most.max(seen);
        let kinds = if seen == 0.0 {
            0.0
        } else if coverage <= 0.0 {
            most
        } else {
            let spread = seen / coverage * pairs / (observations * (observations - 1.0)) - 1.0;
            (seen / coverage + once / coverage * spread.max(0.0)).clamp(seen, most)
        };
        // The number of kinds goes as one over that of pairs, which are counted: two deviations of a Poisson count.
        let pairs = pairs / 2.0;
        let off = 2.0 * pairs.max(1.0).sqrt();
        // Where there is no pair, three would have been missed once in twenty times: observations² / 2 / 3 kinds.
        let least = match pairs > 0.0 {
            true => kinds * pairs / (pairs + off),
            false => observations * observations / 6.0,
        };
        let upper = if pairs > off { kinds * pairs / (pairs - off) } else { most };
        let upper = if seen == 0.0 { 0.0 } else { upper };
        Self { observations, kinds, least: least.max(seen).min(kinds), most: upper.min(most).max(kinds) }
    }

    /// Whether a kind that was seen so often is one of them.
    pub fn is_rare(count: u64) -> bool {
        (1..=RARE).contains(&count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    /// Counts of so many draws from so many kinds, all alike.
    fn drawn(kinds: usize, draws: usize, seed: u64) -> Vec<u64> {
        let mut rng = SplitMix64::new(seed);
        let mut counts = vec![0; kinds];
        (0..draws).for_each(|_| counts[rng.index(kinds)] += 1);
        counts
    }

    /// Three pages seen twice and six once: 12 observations, coverage 1/2, no spread (9 / 0.5 · 6 / 132 < 1).
    #[test]
    fn a_case_by_hand() {
        let found = Richness::of([2, 2, 2, 1, 1, 1, 1, 1, 1, 0, 50], 1e6);
        assert_eq!((found.observations, found.kinds), (12.0, 18.0));
        // Three pairs, give or take 2 · √3: 8 at least, and 9 were seen.
        assert_eq!((found.least, found.most), (9.0, 1e6));
    }

    #[test]
    fn the_number_is_found_from_few_draws_and_lies_in_its_interval() {
        let mut inside = 0;
        for seed in 1..=40 {
            let found = Richness::of(drawn(5000, 800, seed), 1e9);
            assert!(found.least <= found.kinds && found.kinds <= found.most, "{found:?}");
            inside += usize::from((found.least..=found.most).contains(&5000.0));
        }
        assert!(inside >= 36, "{inside} of 40");
    }

    #[test]
    fn what_was_never_seen_twice_has_no_upper_end_but_what_is_given() {
        let found = Richness::of([1; 60], 1e5);
        assert_eq!((found.kinds, found.least, found.most), (1e5, 600.0, 1e5));
        let nothing = Richness::of([0, 70], 9.0);
        assert_eq!([nothing.observations, nothing.kinds, nothing.least, nothing.most], [0.0; 4]);
    }
}
