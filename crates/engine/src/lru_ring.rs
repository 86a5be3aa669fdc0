//! The order of use of many ways: a list a set.

/// Doubly linked recency lists, one a set, each closed through a sentinel at index `ways`.
#[derive(Clone, Debug)]
pub(crate) struct LruRing {
    /// (newer, older) of each way and of the sentinel, whose `older` is the newest and `newer` the oldest.
    links: Vec<(u32, u32)>,
    stride: usize,
    sentinel: u32,
}

impl LruRing {
    /// No way is valid: the highest-numbered is in front, way 0 goes first.
    pub(crate) fn new(sets: usize, ways: u32) -> Self {
        let mut one = Vec::with_capacity(ways as usize + 1);
        // Newest = the highest-numbered way: sentinel, ways-1, …, 0, sentinel.
        for way in 0..ways {
            one.push((way + 1, if way == 0 { ways } else { way - 1 }));
        }
        one.push((0, ways - 1));
        Self { links: one.repeat(sets), stride: ways as usize + 1, sentinel: ways }
    }

    /// The least recent way.
    #[inline]
    pub(crate) fn last(&self, set: usize) -> u32 {
        self.links[set * self.stride + self.sentinel as usize].0
    }

    /// A use of a way.
    #[inline]
    pub(crate) fn move_to_front(&mut self, set: usize, way: u32) {
        let sentinel = self.sentinel;
        let links = &mut self.links[set * self.stride..(set + 1) * self.stride];
        unlink(links, way);
        insert_after(links, sentinel, way);
    }

    /// Puts a way where the one stands that `to` others were used after, if it stands before that.
    pub(crate) fn set_back(&mut self, set: usize, way: u32, to: u32) {
        let sentinel = self.sentinel;
        let links = &mut self.links[set * self.stride..(set + 1) * self.stride];
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

    /// A way is invalid now: it goes behind all valid ones, and behind the invalid ones of higher numbers.
    pub(crate) fn move_to_back(&mut self, set: usize, way: u32, is_valid: impl Fn(u32) -> bool) {
        let sentinel = self.sentinel;
        let links = &mut self.links[set * self.stride..(set + 1) * self.stride];
        unlink(links, way);
        let mut newer = links[sentinel as usize].0;
        while newer != sentinel && !is_valid(newer) && newer < way {
            newer = links[newer as usize].0;
        }
        insert_after(links, newer, way);
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
