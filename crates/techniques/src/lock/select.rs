//! Which pages to lock: the paper's way and three others, behind one enum.
//!
//! No way but trying all sets is sure to find the best. Greedy choice would come near it (a factor of 1 - 1/e) if
//! locking were submodular: if a page never gained more after others were locked than before. Under LRU, FIFO and
//! random replacement it is not: two pages that put each other out may gain nothing one by one and much together.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::bench::LockBench;
use super::histogram::{LockPage, PageCounts};
use super::stall::StallCycles;
use crate::plan::PlanError;

/// A way to choose pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PageSelector {
    /// The most data accesses (Song et al. 2022, Section IV).
    Accesses,
    /// The most misses of the array's level, of both sides.
    Misses,
    /// Page after page, the one whose lock removes most stall cycles in the mean over all seeds, given those locked
    /// already.
    Gain,
    /// As `Gain`, for the worst seed in place of the mean; of equal ones the better mean.
    Worst,
}

impl PageSelector {
    /// All, the paper's first.
    pub const ALL: [Self; 4] = [Self::Accesses, Self::Misses, Self::Gain, Self::Worst];

    /// What model runs are to make small; `None`: pages are ranked by counts.
    pub(super) fn objective(self) -> Option<Objective> {
        match self {
            Self::Accesses | Self::Misses => None,
            Self::Gain => Some(Objective::Mean),
            Self::Worst => Some(Objective::Worst),
        }
    }
}

/// How far `Gain` and `Worst` look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchLimits {
    /// Pages that are tried: those with most misses.
    pub candidates: usize,
    /// Take a page's gain of an earlier round as a bound of its gain now, and try only pages that this bound leaves in
    /// the lead, and the first six in any case. Fewer runs; what it may lose is a page further behind that gains more
    /// than before because another was locked.
    pub lazy: bool,
}

/// Pages in the lead that lazy search tries anew in each round, whatever the bounds say: on random programs with a
/// dozen pages that are always in each other's way it then chooses as plain search does 35 times of 40, with the lead
/// alone 12 times.
const ALWAYS_TRIED: usize = 6;

impl Default for SearchLimits {
    /// 24 pages, lazily.
    fn default() -> Self {
        // Six times a Cortex-A9's entries: with more the first round alone, which tries all, takes most of the time.
        Self { candidates: 24, lazy: true }
    }
}

/// Up to `most` pages, those to lock first in front: the first n are the choice for n entries. `Gain` and `Worst` end
/// where no page gains anything. Equal pages: the lower process and page number first.
///
/// # Errors
/// Of the bench, which `Gain` and `Worst` ask.
pub fn select(
    selector: PageSelector,
    counts: &[PageCounts],
    bench: &mut LockBench,
    most: usize,
    search: SearchLimits,
) -> Result<Vec<LockPage>, PlanError> {
    match selector.objective() {
        Some(objective) => greedy(bench, &candidates(counts, search.candidates), most, objective, search.lazy),
        None if selector == PageSelector::Accesses => Ok(ranked(counts, |c| c.data_accesses, most)),
        None => Ok(ranked(counts, PageCounts::misses, most)),
    }
}

/// Of pages that were chosen by what they gain, the shortest beginning that leaves the fewest stall cycles. Pages may be
/// chosen by runs over misses alone: in the whole runs of this bench one of them may cost cycles.
///
/// # Errors
/// Of the bench.
pub fn worth_locking(
    objective: Objective,
    bench: &mut LockBench,
    chosen: &[LockPage],
) -> Result<Vec<LockPage>, PlanError> {
    let beginnings: Vec<Vec<LockPage>> = (0..=chosen.len()).map(|n| chosen[..n].to_vec()).collect();
    bench.try_all(&beginnings)?;
    let mut best = (objective.score(bench.stalls(&[])?), 0);
    for beginning in &beginnings[1..] {
        let score = objective.score(bench.stalls(beginning)?);
        if score.order(&best.0) == Ordering::Less {
            best = (score, beginning.len());
        }
    }
    Ok(chosen[..best.1].to_vec())
}

/// The pages with most misses.
pub fn candidates(counts: &[PageCounts], most: usize) -> Vec<LockPage> {
    ranked(counts, PageCounts::misses, most)
}

/// The pages that have most of something, without those that have none of it.
fn ranked(counts: &[PageCounts], of: impl Fn(&PageCounts) -> u64, most: usize) -> Vec<LockPage> {
    let mut rows: Vec<(u64, LockPage)> = counts.iter().map(|c| (of(c), c.page)).filter(|row| row.0 > 0).collect();
    rows.sort_unstable_by_key(|row| (std::cmp::Reverse(row.0), row.1));
    rows.into_iter().map(|row| row.1).take(most).collect()
}

/// What is to be small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// The mean over the seeds.
    Mean,
    /// The worst seed; of equal ones the mean.
    Worst,
}

/// Stall cycles by an objective: what counts first, then what tells equal ones apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score(f64, f64);

impl Score {
    fn saved(self, with: Self) -> Self {
        Self(self.0 - with.0, self.1 - with.1)
    }

    /// Smaller is better.
    pub fn order(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.total_cmp(&other.1))
    }
}

impl Objective {
    /// Of the stalls of all seeds.
    pub fn score(self, stalls: &[StallCycles]) -> Score {
        let mean = StallCycles::mean(stalls).cycles();
        match self {
            Self::Mean => Score(mean, 0.0),
            Self::Worst => Score(worst_cycles(stalls), mean),
        }
    }
}

/// Stall cycles of the worst seed.
pub fn worst_cycles(stalls: &[StallCycles]) -> f64 {
    stalls.iter().map(StallCycles::cycles).fold(0.0, f64::max)
}

/// A page, and what it gained when last tried.
struct TriedPage {
    page: LockPage,
    gain: Score,
    fresh: bool,
}

fn greedy(
    bench: &mut LockBench,
    candidates: &[LockPage],
    most: usize,
    objective: Objective,
    lazy: bool,
) -> Result<Vec<LockPage>, PlanError> {
    let mut chosen: Vec<LockPage> = Vec::new();
    let unknown = Score(f64::INFINITY, 0.0);
    let mut left: Vec<TriedPage> =
        candidates.iter().map(|page| TriedPage { page: *page, gain: unknown, fresh: false }).collect();
    while chosen.len() < most && !left.is_empty() {
        let now = objective.score(bench.stalls(&chosen)?);
        left.iter_mut().for_each(|tried| tried.fresh = false);
        loop {
            left.sort_by(|a, b| b.gain.order(&a.gain).then(a.page.cmp(&b.page)));
            // All that were never tried share the lead in the first round, and are tried side by side.
            let in_lead = |i: usize| !lazy || i < ALWAYS_TRIED || left[i].gain == left[0].gain;
            let stale: Vec<usize> = (0..left.len()).filter(|&i| !left[i].fresh && in_lead(i)).collect();
            if stale.is_empty() {
                break;
            }
            let with = |page: LockPage| [chosen.as_slice(), &[page]].concat();
            let sets: Vec<Vec<LockPage>> = stale.iter().map(|&i| with(left[i].page)).collect();
            bench.try_all(&sets)?;
            for (&i, set) in stale.iter().zip(&sets) {
                left[i].gain = now.saved(objective.score(bench.stalls(set)?));
                left[i].fresh = true;
            }
        }
        if left[0].gain.order(&Score(0.0, 0.0)) != Ordering::Greater {
            break;
        }
        chosen.push(left.remove(0).page);
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_the_difference_part_by_part() {
        assert_eq!(Score(5.0, 3.0).saved(Score(2.0, 1.0)), Score(3.0, 2.0));
        assert_eq!(Score(5.0, 3.0).saved(Score(5.0, 4.0)), Score(0.0, -1.0));
    }
}
