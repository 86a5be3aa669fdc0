//! Things of which a core has few, each of use to one access at a time: walkers, miss buffers.

use std::collections::VecDeque;

/// Who has how many of them when.
#[derive(Clone, Debug)]
pub(super) struct CoreSlots {
    count: u32,
    /// How many are taken from a time on until the next one's, ascending; none before the first, none from the last on.
    taken: VecDeque<(f64, u32)>,
}

impl CoreSlots {
    pub(super) fn new(count: u32) -> Self {
        Self { count: count.max(1), taken: VecDeque::new() }
    }

    /// Nothing is asked of times before this one any more.
    pub(super) fn forget_before(&mut self, time: f64) {
        while self.taken.get(1).is_some_and(|next| next.0 <= time) {
            self.taken.pop_front();
        }
    }

    /// Takes one at the first time from `from` on at which one is free for as long as it is needed: that time.
    /// `given_back`: when it is given back if it is taken at a time; no sooner if taken later.
    pub(super) fn take(&mut self, from: f64, given_back: impl Fn(f64) -> f64) -> f64 {
        if given_back(from) <= from {
            return from;
        }
        let (start, end) = self.first_free(from, given_back);
        let (first, last) = (self.cut(start), self.cut(end));
        self.taken.range_mut(first..last).for_each(|step| step.1 += 1);
        start
    }

    /// From when to when one is free. If not from a time on, then from no later one either before all of them are taken.
    fn first_free(&self, from: f64, given_back: impl Fn(f64) -> f64) -> (f64, f64) {
        let (mut start, mut end) = (from, given_back(from));
        let nexts = self.taken.iter().skip(1).map(|next| next.0).chain([f64::INFINITY]);
        for (&(begin, taken), next) in self.taken.iter().zip(nexts) {
            if begin >= end {
                break;
            }
            if taken >= self.count && next > start {
                (start, end) = (next, given_back(next));
            }
        }
        (start, end)
    }

    /// Makes a step begin at this time: its place.
    fn cut(&mut self, time: f64) -> usize {
        let at = self.taken.partition_point(|step| step.0 < time);
        if self.taken.get(at).is_none_or(|step| step.0 > time) {
            let taken = at.checked_sub(1).map_or(0, |before| self.taken[before].1);
            self.taken.insert(at, (time, taken));
        }
        at
    }
}
