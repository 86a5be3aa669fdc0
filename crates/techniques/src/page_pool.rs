//! How many pages samples were drawn from: species richness, of pages.

use std::collections::BTreeMap;

/// Pages that were seen more often are told apart by their own counts; ACE's usual threshold (Chao and Lee, Estimating
/// the number of classes via sample coverage, JASA 87, 1992).
const RARE: u64 = 10;

/// The pages that are seen now and then: those that a TLB may have lost by the next time.
pub struct PagePool {
    /// How many there are, those that were not seen too.
    pub pages: u64,
    /// At least, as far as so many samples can tell.
    pub least_pages: u64,
    /// At most.
    pub most_pages: u64,
    abundant: Vec<u64>,
}

impl PagePool {
    /// By how often each page was seen; there are `most` pages at most.
    ///
    /// The abundance-based coverage estimator: of the pages seen at most ten times, those seen once tell which share was
    /// not seen, and their spread how unequal they are.
    pub fn of(counts: &BTreeMap<u64, u64>, most: u64) -> Self {
        let abundant: Vec<u64> = counts.iter().filter(|(_, count)| **count > RARE).map(|(page, _)| *page).collect();
        let mut by_count = [0u64; RARE as usize + 1];
        for &count in counts.values().filter(|count| **count <= RARE) {
            by_count[count as usize] += 1;
        }
        let sum = |of: &dyn Fn(u64) -> u64| (1..=RARE).map(|count| of(count) * by_count[count as usize]).sum::<u64>() as f64;
        let (seen, samples, pairs) = (sum(&|_| 1), sum(&|count| count), sum(&|count| count * (count - 1)));
        let once = by_count[1] as f64;
        let coverage = 1.0 - once / samples.max(1.0);
        let most = (most as f64).max(seen);
        let spread = match coverage > 0.0 && samples > 1.0 {
            true => (seen / coverage * pairs / (samples * (samples - 1.0)) - 1.0).max(0.0),
            false => 0.0,
        };
        let pages = match coverage > 0.0 {
            true => (seen / coverage + once / coverage * spread).min(most),
            false => most,
        };
        // The number of pages goes as one over that of pairs, which are counted: two deviations of a Poisson count.
        let pairs = pairs / 2.0;
        let off = 2.0 * pairs.max(1.0).sqrt();
        let least = (pages * pairs.max(1.0) / (pairs.max(1.0) + off)).max(seen);
        let upper = if pairs > off { pages * pairs / (pairs - off) } else { most };
        Self {
            pages: pages.round() as u64,
            least_pages: least.min(pages).round() as u64,
            most_pages: upper.min(most).max(pages).round() as u64,
            abundant,
        }
    }

    /// Whether a page is one of them.
    pub fn has(&self, page: u64) -> bool {
        self.abundant.binary_search(&page).is_err()
    }
}
