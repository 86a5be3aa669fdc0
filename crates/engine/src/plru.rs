//! Sets of up to eight ways under tree pseudo-LRU: the tags of a set in two vectors, the tree in a byte, and what the tree
//! says looked up in tables.

use crate::ask::{one_by_one, Asked, Isa, Keys};
#[cfg(target_arch = "x86_64")]
use crate::avx512;
use crate::lanes::{Lanes, LANES};
use crate::lru::{Access, EMPTY};

/// Most ways of a set.
pub(crate) const MAX_WAYS: usize = 8;

/// Sets of a power of two of at most [`MAX_WAYS`] ways. Nodes in heap order from 1; a bit that is set = the victim is on
/// the right.
#[derive(Clone, Debug)]
pub(crate) struct TreeSets {
    pub(crate) tags: Vec<[Lanes; MAX_WAYS / LANES]>,
    pub(crate) bits: Vec<u8>,
    pub(crate) tree: Tree,
}

/// What trees of so many ways say.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// Ways, a bit each.
    pub(crate) ways: u32,
    /// By the tree's bits: the way that they point at, a bit.
    pub(crate) victims: [u8; 256],
    /// By way: the bits on its path, and those of them that point away from it.
    pub(crate) paths: [(u8, u8); MAX_WAYS],
}

impl Tree {
    fn new(ways: u32) -> Self {
        let victim = |bits: usize| {
            let mut node = 1;
            while node < ways {
                node = 2 * node + (bits as u32 >> node & 1);
            }
            1 << (node - ways)
        };
        let path = |way: u32| {
            let (mut on_path, mut away, mut node) = (0, 0, 1);
            for level in (0..ways.trailing_zeros()).rev() {
                let right = way >> level & 1;
                on_path |= 1 << node;
                away |= u8::from(right == 0) << node;
                node = 2 * node + right;
            }
            (on_path, away)
        };
        Self {
            ways: (1 << ways) - 1,
            victims: std::array::from_fn(victim),
            paths: std::array::from_fn(|way| if (way as u32) < ways { path(way as u32) } else { (0, 0) }),
        }
    }

    /// The tree after a hit in, or a fill of, a way.
    #[inline(always)]
    pub(crate) fn touched(&self, bits: u8, way: usize) -> u8 {
        let (on_path, away) = self.paths[way % MAX_WAYS];
        bits & !on_path | away
    }
}

impl TreeSets {
    /// Empty sets.
    pub(crate) fn new(sets: usize, ways: usize) -> Self {
        let tags = vec![[Lanes::splat(EMPTY); MAX_WAYS / LANES]; sets];
        Self { tags, bits: vec![0; sets], tree: Tree::new(ways as u32) }
    }

    /// Ways of a set that bear a tag, a bit each.
    #[inline(always)]
    fn bearing(&self, set: usize, tag: u32) -> u32 {
        let [low, high] = self.tags[set];
        let tag = Lanes::splat(tag);
        (low.equal(tag) | high.equal(tag) << LANES) & self.tree.ways
    }

    /// Is the tag there? Touches it if so.
    #[inline]
    pub(crate) fn access(&mut self, set: usize, tag: u32) -> bool {
        let found = self.bearing(set, tag);
        if found != 0 {
            self.bits[set] = self.tree.touched(self.bits[set], found.trailing_zeros() as usize);
        }
        found != 0
    }

    /// Is the tag there? Touches it if so, else fills it.
    #[inline]
    pub(crate) fn access_or_fill(&mut self, set: usize, tag: u32) -> Access {
        if self.access(set, tag) {
            return Access::Hit;
        }
        let invalid = self.bearing(set, EMPTY);
        let victim = u32::from(self.tree.victims[usize::from(self.bits[set])]);
        let way = (if invalid == 0 { victim } else { invalid }).trailing_zeros() as usize;
        self.put(set, way, tag);
        self.bits[set] = self.tree.touched(self.bits[set], way);
        if invalid == 0 {
            Access::Evicted
        } else {
            Access::New
        }
    }

    fn put(&mut self, set: usize, way: usize, tag: u32) {
        let lanes = &mut self.tags[set][way / LANES];
        let mut words = lanes.to_array();
        words[way % LANES] = tag;
        *lanes = Lanes::new(words);
    }

    /// [`Self::access_or_fill`] of each tag of a list.
    pub(crate) fn ask(&mut self, isa: Isa, keys: Keys<'_>, missed: &mut [u16]) -> Asked {
        #[cfg(target_arch = "x86_64")]
        if isa == Isa::Avx512 {
            return avx512::ask_trees(self, keys, missed);
        }
        let _ = isa;
        one_by_one(keys, missed, |set, tag, _| self.access_or_fill(set, tag))
    }

    /// Calls `keep` with each tag, and puts in its place what it answers; `None` = invalid from now on. How many became
    /// so.
    pub(crate) fn update(&mut self, mut keep: impl FnMut(u32) -> Option<u32>) -> u64 {
        let mut gone = 0;
        for set in 0..self.tags.len() {
            for way in 0..self.tree.ways.count_ones() as usize {
                let tag = self.tags[set][way / LANES].to_array()[way % LANES];
                if tag != EMPTY {
                    let new = keep(tag);
                    gone += u64::from(new.is_none());
                    self.put(set, way, new.unwrap_or(EMPTY));
                }
            }
        }
        gone
    }

    /// Calls `f` with each tag.
    pub(crate) fn for_each(&self, mut f: impl FnMut(u32)) {
        let words = self.tags.iter().flatten().flat_map(|lanes| lanes.to_array());
        words.filter(|&tag| tag != EMPTY).for_each(&mut f);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assoc::{Assoc, Shape};
    use lookaside_machine::Replacement;
    use lookaside_stats::SplitMix64;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn trees_in_bytes_are_trees(ways in 0..=3u32, lists in vec((vec((0..2u32, 0..14u32), 0..40), 0..9u32), 0..12)) {
            let ways = 1 << ways;
            let shape = Shape { sets: 2, ways, replacement: Replacement::TreePlru, repeated_keys: false };
            let mut slow = Assoc::new(shape, SplitMix64::new(0));
            let mut fast = [TreeSets::new(2, ways), TreeSets::new(2, ways)];
            for (list, gone) in lists {
                let sets: Vec<u32> = list.iter().map(|key| key.0).collect();
                let words: Vec<u32> = list.iter().map(|key| key.1).collect();
                let keys = Keys { sets: &sets, words: &words, seconds: &[] };
                let mut missed = vec![0; list.len()];
                let expected = one_by_one(keys, &mut missed, |set, tag, _| {
                    slow.access_or_fill(set, tag.into())
                });
                let invalidated = slow.invalidate(|_, key| key == u64::from(gone));
                for (sets, isa) in fast.iter_mut().zip([Isa::Baseline, Isa::here()]) {
                    let mut its = vec![0; list.len()];
                    prop_assert_eq!(sets.ask(isa, keys, &mut its), expected);
                    prop_assert_eq!(&its[..expected.missed], &missed[..expected.missed]);
                    prop_assert_eq!(sets.update(|tag| (tag != gone).then_some(tag)), invalidated);
                    let mut tags = Vec::new();
                    sets.for_each(|tag| tags.push(u64::from(tag)));
                    let valid = slow.keys().iter().copied().filter(|&key| key != crate::assoc::EMPTY);
                    prop_assert_eq!(tags, valid.collect::<Vec<_>>());
                }
            }
        }
    }
}
