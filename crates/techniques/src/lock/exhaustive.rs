//! Trying all sets: how far from the best a choice is, where there are few pages.

use super::bench::LockBench;
use super::histogram::LockPage;
use super::select::Objective;
use crate::plan::PlanError;

/// Most pages of which all sets are tried: with 4 entries, 794 sets.
pub const MOST_PAGES: usize = 12;

/// Most pages of a set.
pub(crate) const MOST_ENTRIES: usize = 4;

/// The best of all sets of up to `entries` of these pages: the first of the best, by size and then in the order of the
/// pages.
///
/// # Errors
/// Of the bench.
pub fn best(
    bench: &mut LockBench,
    pages: &[LockPage],
    entries: usize,
    objective: Objective,
) -> Result<Vec<LockPage>, PlanError> {
    let sets = sets(pages, entries);
    bench.try_all(&sets)?;
    let mut best = (Vec::new(), objective.score(bench.stalls(&[])?));
    for set in sets {
        let score = objective.score(bench.stalls(&set)?);
        if score.order(&best.1).is_lt() {
            best = (set, score);
        }
    }
    Ok(best.0)
}

/// All sets of up to `entries` pages (or whatever is chosen from), smaller ones first.
pub fn sets<T: Copy>(pages: &[T], entries: usize) -> Vec<Vec<T>> {
    let mut all: Vec<Vec<T>> = vec![Vec::new()];
    // Each set as positions; a longer one goes on behind its last.
    let mut of_size: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..entries.min(pages.len()) {
        of_size = of_size
            .iter()
            .flat_map(|set| {
                let next = set.last().map_or(0, |last| last + 1);
                (next..pages.len()).map(move |i| [set.as_slice(), &[i]].concat())
            })
            .collect();
        all.extend(of_size.iter().map(|set| set.iter().map(|&i| pages[i]).collect()));
    }
    all
}
