//! Sets of up to eight ways under tree pseudo-LRU: the tags of a set in two vectors, the tree in a byte, and its
//! victims in a table.

use crate::lanes::{Lanes, LANES};
use crate::lookup::{LookupResult, EMPTY_TAG};

/// Most ways of a set.
pub(crate) const MAX_WAYS: usize = 8;

/// Sets of a power of two of at most [`MAX_WAYS`] ways. Nodes in heap order from 1; a bit that is set = the victim is
/// on the right.
#[derive(Clone, Debug)]
pub(crate) struct TreeSets {
    pub(crate) tags: Vec<[Lanes; MAX_WAYS / LANES]>,
    pub(crate) bits: Vec<u8>,
    pub(crate) tree: TreeTables,
}

/// What trees of so many ways say.
#[derive(Clone, Debug)]
pub(crate) struct TreeTables {
    /// Ways, a bit each.
    pub(crate) ways: u32,
    /// By the tree's bits: the way that they point at, a bit.
    pub(crate) victims: [u8; 256],
    /// By way: the bits on its path, and those of them that point away from it.
    pub(crate) paths: [(u8, u8); MAX_WAYS],
}

impl TreeTables {
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
        let tags = vec![[Lanes::splat(EMPTY_TAG); MAX_WAYS / LANES]; sets];
        Self { tags, bits: vec![0; sets], tree: TreeTables::new(ways as u32) }
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
    pub(crate) fn access_or_fill(&mut self, set: usize, tag: u32) -> LookupResult {
        self.access_or_replace(set, tag).0
    }

    /// [`Self::access_or_fill`], and the tag that was thrown out.
    #[inline(always)]
    pub(crate) fn access_or_replace(&mut self, set: usize, tag: u32) -> (LookupResult, u32) {
        if self.access(set, tag) {
            return (LookupResult::Hit, EMPTY_TAG);
        }
        let invalid = self.bearing(set, EMPTY_TAG);
        let victim = u32::from(self.tree.victims[usize::from(self.bits[set])]);
        let way = (if invalid == 0 { victim } else { invalid }).trailing_zeros() as usize;
        let old = self.tags[set][way / LANES].to_array()[way % LANES];
        self.put(set, way, tag);
        self.bits[set] = self.tree.touched(self.bits[set], way);
        (if invalid == 0 { LookupResult::Evicted } else { LookupResult::New }, old)
    }

    /// Is the tag there? Changes nothing.
    pub(crate) fn holds(&self, set: usize, tag: u32) -> bool {
        self.bearing(set, tag) != 0
    }

    /// Invalidates a tag: was it there?
    pub(crate) fn remove(&mut self, set: usize, tag: u32) -> bool {
        let found = self.bearing(set, tag);
        if found != 0 {
            self.put(set, found.trailing_zeros() as usize, EMPTY_TAG);
        }
        found != 0
    }

    fn put(&mut self, set: usize, way: usize, tag: u32) {
        let lanes = &mut self.tags[set][way / LANES];
        let mut words = lanes.to_array();
        words[way % LANES] = tag;
        *lanes = Lanes::new(words);
    }

    /// Calls `keep` with each tag, and puts in its place what it answers; `None` = invalid from now on. How many became
    /// so.
    pub(crate) fn update(&mut self, mut keep: impl FnMut(u32) -> Option<u32>) -> u64 {
        let mut gone = 0;
        for set in 0..self.tags.len() {
            for way in 0..self.tree.ways.count_ones() as usize {
                let tag = self.tags[set][way / LANES].to_array()[way % LANES];
                if tag != EMPTY_TAG {
                    let new = keep(tag);
                    gone += u64::from(new.is_none());
                    self.put(set, way, new.unwrap_or(EMPTY_TAG));
                }
            }
        }
        gone
    }

    /// Calls `f` with each tag.
    pub(crate) fn for_each(&self, mut f: impl FnMut(u32)) {
        let words = self.tags.iter().flatten().flat_map(|lanes| lanes.to_array());
        words.filter(|&tag| tag != EMPTY_TAG).for_each(&mut f);
    }
}
