//! LRU distances within sets, for every number of sets at once.
//!
//! For each number of sets there is one short list of pages a set, latest first. The position at which a page is
//! found is its distance; it then moves to the front. A set among 2S is a part of one among S, so a page that
//! is the latest of its set stays so for more sets: such visits leave the batch.

use super::miss_curve::{SetCurve, MAX_WAYS};

/// Most sets.
pub const MAX_SETS: u32 = 1 << SHIFTS.1;

/// log2 of the least and of the most sets here; one set is the fully associative case.
const SHIFTS: (u32, u32) = (1, 12);

/// Numbers of sets that are asked together.
const TOGETHER: usize = 4;

/// No page.
const FREE: u32 = u32::MAX;

/// A page that is not the last one again, on its way through the stages.
#[derive(Clone, Copy, Default)]
pub(super) struct Visit {
    /// Dense number of the page.
    pub(super) page: u32,
    /// Low bits of its page number, at least log2 of [`MAX_SETS`].
    pub(super) index: u32,
}

/// Pages of one set, latest first.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct LruStack([u32; MAX_WAYS]);

/// All sets of one number of sets.
struct SetCount {
    stacks: Vec<LruStack>,
    /// Visits by position; the last: not found.
    found: [u64; MAX_WAYS + 1],
}

/// Stacks for each number of sets from 2 to [`MAX_SETS`].
pub struct SetStacks {
    levels: Vec<SetCount>,
}

impl Default for SetStacks {
    fn default() -> Self {
        let level =
            |shift: u32| SetCount { stacks: vec![LruStack([FREE; MAX_WAYS]); 1 << shift], found: [0; MAX_WAYS + 1] };
        Self { levels: (SHIFTS.0..=SHIFTS.1).map(level).collect() }
    }
}

impl SetStacks {
    /// Notes visits in their order. None may be of the page of the one before. Uses the list up.
    ///
    /// `WIDE`: by the functions of `wide`, which must be available.
    #[inline(always)]
    pub fn visit<const WIDE: bool>(&mut self, visits: &mut Vec<Visit>) {
        for levels in self.levels.chunks_mut(TOGETHER) {
            visit_some::<WIDE>(levels, visits);
        }
    }

    /// Misses by sets and ways.
    pub fn curves(&self) -> Vec<SetCurve> {
        let mut curves = Vec::new();
        for level in &self.levels {
            // Visits that had left the batch at fewer sets are hits at the first position.
            let seen: u64 = level.found.iter().sum();
            let mut misses = seen;
            let by_ways = level.found[..MAX_WAYS].iter().map(|&found| {
                misses -= found;
                misses
            });
            curves.push(SetCurve { sets: level.stacks.len() as u32, misses_by_ways: by_ways.collect() });
        }
        curves
    }
}

/// Notes visits at some levels; those that are the latest of their set at the last of these leave the list.
///
/// One after the other at a level, visits to the same few sets wait for each other; those of another level do not wait.
#[inline(always)]
fn visit_some<const WIDE: bool>(levels: &mut [SetCount], visits: &mut Vec<Visit>) {
    let mut stay = 0;
    for i in 0..visits.len() {
        let visit = visits[i];
        let mut position = 0;
        for level in &mut *levels {
            position = level.visit::<WIDE>(visit);
        }
        visits[stay] = visit;
        stay += usize::from(position > 0);
    }
    visits.truncate(stay);
}

impl SetCount {
    #[inline(always)]
    fn visit<const WIDE: bool>(&mut self, visit: Visit) -> usize {
        let mask = self.stacks.len() - 1;
        let position = self.stacks[visit.index as usize & mask].touch::<WIDE>(visit.page);
        self.found[position] += 1;
        position
    }
}

impl LruStack {
    /// Moves a page to the front; where it was found, `MAX_WAYS` = nowhere.
    #[inline(always)]
    fn touch<const WIDE: bool>(&mut self, page: u32) -> usize {
        #[cfg(target_arch = "x86_64")]
        if WIDE {
            // SAFETY: whoever says WIDE has made sure of it.
            return unsafe { super::wide::to_front(&mut self.0, page) };
        }
        let old = self.0;
        let mut found = 0u32;
        for (i, &other) in old.iter().enumerate() {
            found |= u32::from(other == page) << i;
        }
        let position = (found | 1 << MAX_WAYS).trailing_zeros();
        for i in 0..MAX_WAYS {
            let shifted = if i == 0 { page } else { old[i - 1] };
            self.0[i] = if i as u32 <= position { shifted } else { old[i] };
        }
        position as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lookaside_stats::SplitMix64;

    /// The portable form; `wide` tests its own, and the whole curve is tested against brute force.
    #[test]
    fn a_stack_is_a_list() {
        let mut rng = SplitMix64::new(6);
        let mut stack = LruStack([FREE; MAX_WAYS]);
        let mut list = stack.0.to_vec();
        for _ in 0..10_000 {
            let page = (rng.next_u64() % 24) as u32;
            let expected = list.iter().position(|&other| other == page).unwrap_or(MAX_WAYS);
            list.insert(0, page);
            list.remove((expected + 1).min(MAX_WAYS));
            assert_eq!(stack.touch::<false>(page), expected);
            assert_eq!(stack.0, list[..]);
        }
    }
}
