//! The coloring paper's Algorithm 3 on the metal: pages that conflict, and the address bits that they have in common.
//!
//! The paper keeps one page and tries all choices of as many others as a set has ways, among as many pages as the TLB
//! has entries, until each access misses: 64 choose 4. Where a set has 6 ways or more that cannot be done. So the same
//! experiment (a circle through some pages and the one that stays) begins with all pages, and leaves out groups of them
//! as long as there are still as many misses.

use std::time::Duration;

use lookaside_harness::metal::{too_few, KnownLevel};
use lookaside_probe::{ChainBench, Halt};

/// Misses of a round from which on pages conflict at all: at least one, less what times vary by.
const ONE: f64 = 0.7;
/// Pages conflict as the whole array does where they have this share of its misses.
const ALIKE: f64 = 0.5;
/// They clearly do not where they have less than this.
const CLEAR: f64 = 0.2;
/// Looks that have to say that they do, or unclearly that they do not.
const YES: u32 = 3;
/// See [`YES`].
const NO: u32 = 2;
/// Looks at the whole array.
const LOOKS: usize = 5;
/// Pauses before each attempt. One choice that was taken wrongly spoils the rest; and a neighbour may hold an entry of
/// a fully associative level for a while, which then has a way less than it should.
const PAUSES_MS: [u64; 5] = [0, 20, 100, 500, 1000];

/// Pages that conflict, as numbers within the array; the page that stays is the one after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    /// As many as a set has ways, ascending.
    pub(super) pages: Vec<u64>,
    /// The page that stays.
    pub(super) stays: u64,
}

impl Conflict {
    /// Bits of a page number, among those in which the array's pages differ, in which all agree.
    pub(super) fn common_bits(&self) -> Vec<u32> {
        let differ = self.pages.iter().fold(0, |all, page| all | (page ^ self.stays));
        let bits = u64::BITS - (self.stays.max(2) - 1).leading_zeros();
        (0..bits).filter(|bit| differ >> bit & 1 == 0).collect()
    }
}

/// Finds pages that conflict in a level; or why there are none.
pub(super) fn find(bench: &mut ChainBench<'_>, array: &KnownLevel) -> Result<Result<Conflict, String>, Halt> {
    let entries = u64::from(array.geometry.entries);
    if entries + 1 > bench.max_pages() as u64 {
        return Ok(Err(too_few(entries as usize + 1, bench)));
    }
    let mut last = String::new();
    for pause in PAUSES_MS {
        bench.pause(Duration::from_millis(pause))?;
        match attempt(bench, array, entries)? {
            Ok(mut pages) => {
                pages.sort_unstable();
                return Ok(Ok(Conflict { pages, stays: entries }));
            }
            Err(reason) => last = reason,
        }
    }
    Ok(Err(format!("{last} (the last of {} attempts)", PAUSES_MS.len())))
}

fn attempt(bench: &mut ChainBench<'_>, array: &KnownLevel, entries: u64) -> Result<Result<Vec<u64>, String>, Halt> {
    let ways = array.geometry.ways as usize;
    // The array begins at a multiple of its size, so that its pages' numbers are the addresses' bits.
    let start = bench.page() & !((entries + 1).next_power_of_two() - 1);
    let mut circle = Circle { array, start, stays: entries, misses: 0.0 };
    let mut set: Vec<u64> = (0..entries).collect();
    if let Err(reason) = circle.begin(bench, &set)? {
        return Ok(Err(reason));
    }
    bench.rng.shuffle(&mut set);
    while set.len() > ways {
        match circle.smaller(bench, &set, ways)? {
            Some(rest) => set = rest,
            None => return Ok(Err(format!("of {} pages that conflict with one, none can be left out", set.len()))),
        }
    }
    circle.needs_all(bench, set)
}

/// The circle through some pages of the array and the one that stays.
struct Circle<'a> {
    array: &'a KnownLevel,
    start: u64,
    stays: u64,
    /// Misses of a round through the whole array and the page that stays.
    misses: f64,
}

impl Circle<'_> {
    fn begin(&mut self, bench: &mut ChainBench<'_>, array: &[u64]) -> Result<Result<(), String>, Halt> {
        let mut seen = Vec::new();
        for _ in 0..LOOKS {
            // The array alone fits.
            seen.push(self.look(bench, array, true)? - self.look(bench, array, false)?);
        }
        seen.sort_by(f64::total_cmp);
        self.misses = seen[LOOKS / 2];
        let sure = self.misses >= ONE && seen[0] > ALIKE * self.misses;
        Ok(if sure {
            Ok(())
        } else {
            Err(format!(
                "one page more than {} makes {:.1} misses a round more ({LOOKS} looks: {:.1} to {:.1}, so much do times of the \
                 whole array vary by): nothing that pages could be left out by",
                array.len(), self.misses, seen[0], seen[LOOKS - 1]
            ))
        })
    }

    /// The pages without one group of them, if they still conflict.
    fn smaller(&self, bench: &mut ChainBench<'_>, set: &[u64], ways: usize) -> Result<Option<Vec<u64>>, Halt> {
        // Of one group more than pages that are needed, one at least holds none of them.
        let border = |group: usize| group * set.len() / (ways + 1);
        for group in 0..=ways {
            let (from, to) = (border(group), border(group + 1));
            let rest: Vec<u64> = set[..from].iter().chain(&set[to..]).copied().collect();
            if self.conflict(bench, &rest)? {
                return Ok(Some(rest));
            }
        }
        Ok(None)
    }

    /// A second look: they conflict, and no longer do without any one of them.
    fn needs_all(&self, bench: &mut ChainBench<'_>, set: Vec<u64>) -> Result<Result<Vec<u64>, String>, Halt> {
        if !self.conflict(bench, &set)? {
            return Ok(Err(format!("{} pages were left, and do not conflict at a second look", set.len())));
        }
        for &without in &set {
            let rest: Vec<u64> = set.iter().copied().filter(|&page| page != without).collect();
            if self.conflict(bench, &rest)? {
                return Ok(Err(format!("{} pages of a set of {} ways conflict with one", rest.len(), set.len())));
            }
        }
        Ok(Ok(set))
    }

    /// Whether the page that stays and these conflict. Whatever disturbs adds misses: a "yes" has to be repeated, one
    /// clear "no" is believed.
    fn conflict(&self, bench: &mut ChainBench<'_>, pages: &[u64]) -> Result<bool, Halt> {
        let (mut yes, mut no) = (0, 0);
        loop {
            let share = self.look(bench, pages, true)? / self.misses;
            if share > ALIKE {
                yes += 1;
            } else {
                no += if share < CLEAR { NO } else { 1 };
            }
            if yes == YES || no >= NO {
                return Ok(no < NO);
            }
        }
    }

    /// Misses of a round through these pages, with the one that stays or without.
    fn look(&self, bench: &mut ChainBench<'_>, pages: &[u64], with: bool) -> Result<f64, Halt> {
        let stays = with.then_some(&self.stays);
        let pages: Vec<u64> = pages.iter().chain(stays).map(|page| self.start + page).collect();
        self.array.level.misses(bench, &pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_in_common_are_those_of_the_papers_example() {
        // 64 entries of 4 ways: pages 0, 16, 32, 48 and the 65th.
        let conflict = Conflict { pages: vec![0, 16, 32, 48], stays: 64 };
        assert_eq!(conflict.common_bits(), [0, 1, 2, 3]);
        let all = Conflict { pages: (0..72).collect(), stays: 72 };
        assert_eq!(all.common_bits(), Vec::<u32>::new());
    }
}
