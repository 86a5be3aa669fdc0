//! LRU of more than 16 ways: the order of use in a list a set. Invalid ways are at the old end, the lowest-numbered last.

use super::set_policy::SetPolicy;

/// Doubly linked recency lists, one a set, each closed through a sentinel at index `ways`.
#[derive(Clone, Debug)]
pub(crate) struct UseList {
    /// (newer, older) of each way and of the sentinel, whose `older` is the newest and `newer` the oldest.
    links: Vec<(u32, u32)>,
    stride: usize,
    sentinel: u32,
}

impl UseList {
    /// No way is valid: the highest-numbered is in front, way 0 goes first.
    pub(super) fn new(sets: usize, ways: u32) -> Self {
        let mut one = Vec::with_capacity(ways as usize + 1);
        // Newest = the highest-numbered way: sentinel, ways-1, …, 0, sentinel.
        for way in 0..ways {
            one.push((way + 1, if way == 0 { ways } else { way - 1 }));
        }
        one.push((0, ways - 1));
        Self { links: one.repeat(sets), stride: ways as usize + 1, sentinel: ways }
    }

    /// The links of a set.
    #[inline(always)]
    fn of(&mut self, set: usize) -> &mut [(u32, u32)] {
        &mut self.links[set * self.stride..(set + 1) * self.stride]
    }
}

impl SetPolicy for UseList {
    #[inline]
    fn touch(&mut self, set: usize, way: u32) {
        let sentinel = self.sentinel;
        let links = self.of(set);
        unlink(links, way);
        insert_after(links, sentinel, way);
    }

    #[inline]
    fn replace(&mut self, set: usize, _: impl FnOnce() -> Option<u32>) -> u32 {
        let way = self.links[set * self.stride + self.sentinel as usize].0;
        self.touch(set, way);
        way
    }

    /// It goes behind all valid ones, and behind the invalid ones of higher numbers.
    fn invalidated(&mut self, set: usize, way: u32, is_valid: impl Fn(u32) -> bool) {
        let sentinel = self.sentinel;
        let links = self.of(set);
        unlink(links, way);
        let mut newer = links[sentinel as usize].0;
        while newer != sentinel && !is_valid(newer) && newer < way {
            newer = links[newer as usize].0;
        }
        insert_after(links, newer, way);
    }

    fn set_back(&mut self, set: usize, way: u32, depth: u32, valid: u32) {
        let sentinel = self.sentinel;
        let to = depth.min(valid.saturating_sub(1));
        let links = self.of(set);
        // The way that stands there, from the nearer end of the list.
        let mut at = sentinel;
        if to < sentinel / 2 {
            let mut is_before = false;
            for _ in 0..=to {
                at = links[at as usize].1;
                is_before |= at == way;
            }
            if !is_before || at == way {
                return;
            }
        } else {
            for _ in to..sentinel {
                at = links[at as usize].0;
                if at == way {
                    return;
                }
            }
        }
        unlink(links, way);
        insert_after(links, at, way);
    }
}

#[inline]
fn unlink(links: &mut [(u32, u32)], way: u32) {
    let (newer, older) = links[way as usize];
    links[newer as usize].1 = older;
    links[older as usize].0 = newer;
}

#[inline]
fn insert_after(links: &mut [(u32, u32)], newer: u32, way: u32) {
    let older = links[newer as usize].1;
    links[way as usize] = (newer, older);
    links[newer as usize].1 = way;
    links[older as usize].0 = way;
}
