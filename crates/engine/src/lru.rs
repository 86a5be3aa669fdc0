//! Sets of ways under LRU, kept in the order of their use: the most recent first, invalid ways last.
//!
//! Which way a page stands in makes no difference under LRU, so there are no way numbers and no state of a policy
//! beside the tags: a hit moves the lanes before it back by one, a fill moves all of them.

use crate::lanes::{Lanes, LANES};
use crate::lookup::{one_by_one, LookupCounts, LookupKeys, LookupResult, EMPTY_TAG};
use crate::lru_set::{few, few_wide, first, many, up_to, Ends};
use crate::prefetch::prefetch;

/// Most ways of a set: beyond, moving them costs more than a list would.
pub(crate) const MAX_WAYS: usize = 64;

/// Sets of at most [`MAX_WAYS`] ways.
#[derive(Clone, Debug)]
pub(crate) struct LruSets {
    lines: Vec<LruLine>,
    sets: usize,
    shape: LruShape,
}

/// As much as a cache line and the widest vectors hold; sets never lie across two without need.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct LruLine([Lanes; LINE]);

/// Vectors in a [`LruLine`].
const LINE: usize = 4;

/// What all sets have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LruShape {
    /// Vectors that hold the tags of a set, and vectors from the first of them to what lies behind them.
    vectors: usize,
    pub(crate) stride: usize,
    /// 1, or 2 with second words, which lie behind the tags of their set.
    pub(crate) planes: usize,
    pub(crate) last_way: u32,
    /// All bits of the last vector's lanes that are no ways.
    beyond: Lanes,
}

impl LruSets {
    /// Empty sets; `second_words` beside the tags or not.
    pub(crate) fn new(sets: usize, ways: usize, second_words: bool) -> Self {
        let vectors = ways.div_ceil(LANES);
        let stride = if vectors <= LINE { vectors.next_power_of_two() } else { vectors.next_multiple_of(LINE) };
        let planes = 1 + usize::from(second_words);
        let ways_of_last = (ways - 1) % LANES + 1;
        let beyond = Lanes::new(std::array::from_fn(|lane| if lane < ways_of_last { 0 } else { u32::MAX }));
        let lines = vec![LruLine([Lanes::splat(EMPTY_TAG); LINE]); (sets * planes * stride).div_ceil(LINE)];
        Self { lines, sets, shape: LruShape { vectors, stride, planes, last_way: (ways - 1) as u32, beyond } }
    }

    fn lanes(&self) -> &[Lanes] {
        // SAFETY: a line is an array of so many `Lanes` and nothing else.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len() * LINE) }
    }

    #[inline(always)]
    fn lanes_mut(&mut self) -> &mut [Lanes] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.lines.len() * LINE) }
    }

    /// All sets' words, their number and shape: for lookups of lists of keys (`list_lookup.rs`).
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn parts(&mut self) -> (&mut [Lanes], usize, LruShape) {
        let (sets, shape) = (self.sets, self.shape);
        (self.lanes_mut(), sets, shape)
    }

    /// Asks a set for a tag, and fills it if it is not there. For sets without second words.
    #[inline(always)]
    pub(crate) fn access_or_fill(&mut self, set: usize, tag: u32) -> LookupResult {
        let LruShape { vectors, stride, .. } = self.shape;
        let ends = self.ends();
        let set = &mut self.lanes_mut()[set * stride..][..vectors];
        match vectors {
            1 => few::<1>(first(set), tag, ends),
            2 => few::<2>(first(set), tag, ends),
            3 => few::<3>(first(set), tag, ends),
            4 => few::<4>(first(set), tag, ends),
            _ => many(set, tag, ends),
        }
    }

    /// [`Self::access_or_fill`] (or [`Self::access_or_fill_wide`], if there are second words) of each key of a list.
    pub(crate) fn look_up_list_portably(&mut self, keys: LookupKeys<'_>, missed: &mut [u16]) -> LookupCounts {
        let LruShape { vectors, stride, planes, .. } = self.shape;
        let ends = self.ends();
        if planes == 2 {
            return one_by_one(keys, missed, |set, tag, second| self.access_or_fill_wide(set, tag, second));
        }
        let lanes = self.lanes_mut();
        match vectors {
            1 => list(lanes, stride, keys, missed, |set, tag| few::<1>(first(set), tag, ends)),
            2 => list(lanes, stride, keys, missed, |set, tag| few::<2>(first(set), tag, ends)),
            3 => list(lanes, stride, keys, missed, |set, tag| few::<3>(first(set), tag, ends)),
            4 => list(lanes, stride, keys, missed, |set, tag| few::<4>(first(set), tag, ends)),
            _ => list(lanes, stride, keys, missed, |set, tag| many(&mut set[..vectors], tag, ends)),
        }
    }

    /// As [`Self::access_or_fill`], by tag and second word together. For sets with second words.
    #[inline(always)]
    pub(crate) fn access_or_fill_wide(&mut self, set: usize, tag: u32, second: u32) -> LookupResult {
        let LruShape { vectors, stride, .. } = self.shape;
        let words = [tag, second];
        if vectors > LINE {
            return self.access_or_fill_many_wide(set, tag, second);
        }
        let ends = self.ends();
        let (tags, seconds) = self.lanes_mut()[2 * set * stride..][..2 * stride].split_at_mut(stride);
        match vectors {
            1 => few_wide::<1>([first(tags), first(seconds)], words, ends),
            2 => few_wide::<2>([first(tags), first(seconds)], words, ends),
            3 => few_wide::<3>([first(tags), first(seconds)], words, ends),
            _ => few_wide::<4>([first(tags), first(seconds)], words, ends),
        }
    }

    #[inline(never)]
    fn access_or_fill_many_wide(&mut self, set: usize, tag: u32, second: u32) -> LookupResult {
        if self.access_wide(set, tag, second) {
            return LookupResult::Hit;
        }
        let last_way = self.shape.last_way;
        let last = [0, 1].map(|plane| self.word(plane, set, last_way));
        self.put(set, last_way, [tag, second]);
        if last == [EMPTY_TAG; 2] {
            LookupResult::New
        } else {
            LookupResult::Evicted
        }
    }

    /// Asks a set for a tag.
    #[inline]
    pub(crate) fn access(&mut self, set: usize, tag: u32) -> bool {
        let position = self.position(set, tag, |_, _| true);
        if let Some(position) = position.filter(|&position| position > 0) {
            self.put(set, position, [tag, 0]);
        }
        position.is_some()
    }

    /// As [`Self::access`], by tag and second word together.
    #[inline]
    pub(crate) fn access_wide(&mut self, set: usize, tag: u32, second: u32) -> bool {
        let position = self.position(set, tag, |sets, position| sets.word(1, set, position) == second);
        if let Some(position) = position.filter(|&position| position > 0) {
            self.put(set, position, [tag, second]);
        }
        position.is_some()
    }

    /// Asks for a tag whose second word has this bit.
    #[inline]
    pub(crate) fn access_masked(&mut self, set: usize, tag: u32, bit: u32) -> bool {
        let Some(position) = self.position(set, tag, |_, _| true) else { return false };
        let mask = self.word(1, set, position);
        if mask & bit != 0 && position > 0 {
            self.put(set, position, [tag, mask]);
        }
        mask & bit != 0
    }

    /// Adds bits to the second word of a tag that is there, and moves it to the front: `Hit`; or fills it.
    #[inline]
    pub(crate) fn fill_masked(&mut self, set: usize, tag: u32, bits: u32) -> LookupResult {
        let (position, bits, result) = match self.position(set, tag, |_, _| true) {
            Some(position) => (position, bits | self.word(1, set, position), LookupResult::Hit),
            None if self.word(0, set, self.shape.last_way) == EMPTY_TAG => {
                (self.shape.last_way, bits, LookupResult::New)
            }
            None => (self.shape.last_way, bits, LookupResult::Evicted),
        };
        self.put(set, position, [tag, bits]);
        result
    }

    /// First way of the set that bears the tag and that the predicate takes.
    #[inline(always)]
    fn position(&self, set: usize, tag: u32, takes: impl Fn(&Self, u32) -> bool) -> Option<u32> {
        let wanted = Lanes::splat(tag);
        for (i, lanes) in self.plane(0, set).iter().enumerate() {
            let mut found = lanes.equal(wanted);
            while found != 0 {
                let position = (LANES * i) as u32 + found.trailing_zeros();
                if takes(self, position) {
                    return Some(position);
                }
                found &= found - 1;
            }
        }
        None
    }

    /// Moves the ways before `position` back by one over it, and puts these words in front.
    #[inline(always)]
    fn put(&mut self, set: usize, position: u32, words: [u32; 2]) {
        for (plane, &word) in words.iter().enumerate().take(self.shape.planes) {
            let mut before = Lanes::splat(word);
            for (i, lanes) in self.plane_mut(plane, set).iter_mut().enumerate() {
                let old = *lanes;
                *lanes = Lanes::select(up_to(position, i), old.moved_up(before), old);
                before = old;
            }
        }
    }

    #[inline(always)]
    fn ends(&self) -> Ends {
        Ends { last_way: self.shape.last_way, beyond: self.shape.beyond }
    }

    /// The tags (0) or second words (1) of a set.
    #[inline(always)]
    fn plane(&self, plane: usize, set: usize) -> &[Lanes] {
        let LruShape { vectors, stride, planes, .. } = self.shape;
        &self.lanes()[(planes * set + plane) * stride..][..vectors]
    }

    #[inline(always)]
    fn plane_mut(&mut self, plane: usize, set: usize) -> &mut [Lanes] {
        let LruShape { vectors, stride, planes, .. } = self.shape;
        &mut self.lanes_mut()[(planes * set + plane) * stride..][..vectors]
    }

    /// The tags (0) or second words (1) of a set, one by one.
    #[inline(always)]
    fn words_mut(&mut self, plane: usize, set: usize) -> &mut [u32] {
        let lanes = self.plane_mut(plane, set);
        // SAFETY: each of them is four such words, lane 0 first, and may be aligned as they are.
        unsafe { std::slice::from_raw_parts_mut(lanes.as_mut_ptr().cast(), lanes.len() * LANES) }
    }

    #[inline(always)]
    fn word(&self, plane: usize, set: usize, way: u32) -> u32 {
        self.plane(plane, set)[way as usize / LANES].to_array()[way as usize % LANES]
    }

    /// Puts a tag that is there behind `depth` others, or as many as there are, if it stands before that.
    pub(crate) fn set_back(&mut self, set: usize, tag: u32, depth: usize) {
        let Some(from) = self.position(set, tag, |_, _| true) else { return };
        let (from, mut to) = (from as usize, depth.min(self.shape.last_way as usize));
        while to > from && self.word(0, set, to as u32) == EMPTY_TAG {
            to -= 1;
        }
        for plane in 0..if from < to { self.shape.planes } else { 0 } {
            let sets = self.plane_mut(plane, set);
            let mut words = [0; MAX_WAYS];
            let (near, far) = (from / LANES, to / LANES);
            for (lanes, words) in sets[near..=far].iter().zip(words.chunks_exact_mut(LANES)) {
                words.copy_from_slice(&lanes.to_array());
            }
            words[from - near * LANES..=to - near * LANES].rotate_left(1);
            for (lanes, words) in sets[near..=far].iter_mut().zip(words.chunks_exact(LANES)) {
                *lanes = Lanes::new(std::array::from_fn(|lane| words[lane]));
            }
        }
    }

    /// The words of a set's last way, which the next fill throws out.
    #[inline(always)]
    pub(crate) fn oldest(&self, set: usize) -> [u32; 2] {
        let last = self.shape.last_way;
        [self.word(0, set, last), if self.shape.planes == 2 { self.word(1, set, last) } else { 0 }]
    }

    /// Invalidates a key, by tag and (in sets that have them) second word: was it there?
    pub(crate) fn remove(&mut self, set: usize, tag: u32, second: u32) -> bool {
        let Some(position) = self.position_of(set, tag, second) else { return false };
        let (position, end) = (position as usize, self.shape.last_way as usize);
        for plane in 0..self.shape.planes {
            let words = self.words_mut(plane, set);
            words.copy_within(position + 1..=end, position);
            words[end] = EMPTY_TAG;
        }
        true
    }

    /// Is a key there, by tag and (in sets that have them) second word? Changes nothing.
    pub(crate) fn holds(&self, set: usize, tag: u32, second: u32) -> bool {
        self.position_of(set, tag, second).is_some()
    }

    fn position_of(&self, set: usize, tag: u32, second: u32) -> Option<u32> {
        let is_wide = self.shape.planes == 2;
        self.position(set, tag, |sets, position| !is_wide || sets.word(1, set, position) == second)
    }

    /// Brings a set that will be asked soon nearer to the processor; changes nothing.
    #[inline(always)]
    pub(crate) fn prefetch(&self, set: usize) {
        prefetch(self.lanes(), self.shape.planes * set * self.shape.stride);
    }

    /// Calls `keep` with tag and second word (0 in sets without) of each valid way, set by set and the most recent
    /// first, and puts in its place the tag that it answers; `None` = invalid from now on. How many became so.
    pub(crate) fn update(&mut self, mut keep: impl FnMut(u32, u32) -> Option<u32>) -> u64 {
        let mut gone = 0;
        let mut kept: [Vec<u32>; 2] = Default::default();
        for set in 0..self.sets {
            kept.iter_mut().for_each(Vec::clear);
            self.for_each_of(set, |tag, second| match keep(tag, second) {
                Some(tag) => {
                    kept[0].push(tag);
                    kept[1].push(second);
                }
                None => gone += 1,
            });
            for (plane, words) in kept.iter().enumerate().take(self.shape.planes) {
                for (i, lanes) in self.plane_mut(plane, set).iter_mut().enumerate() {
                    *lanes =
                        Lanes::new(std::array::from_fn(|j| words.get(LANES * i + j).copied().unwrap_or(EMPTY_TAG)));
                }
            }
        }
        gone
    }

    /// Calls `f` with tag and second word (0 in sets without) of each valid way, set by set and the most recent first.
    pub(crate) fn for_each(&self, mut f: impl FnMut(u32, u32)) {
        for set in 0..self.sets {
            self.for_each_of(set, &mut f);
        }
    }

    fn for_each_of(&self, set: usize, mut f: impl FnMut(u32, u32)) {
        let is_wide = self.shape.planes == 2;
        for way in 0..=self.shape.last_way {
            let tag = self.word(0, set, way);
            let second = if is_wide { self.word(1, set, way) } else { 0 };
            if tag != EMPTY_TAG || is_wide && second != EMPTY_TAG {
                f(tag, second);
            }
        }
    }
}

/// Keys ahead whose set is fetched.
const AHEAD: usize = 12;

/// Asks for each key in turn, in sets of `stride` vectors.
#[inline(always)]
fn list(
    lanes: &mut [Lanes],
    stride: usize,
    keys: LookupKeys<'_>,
    missed: &mut [u16],
    ask: impl Fn(&mut [Lanes], u32) -> LookupResult,
) -> LookupCounts {
    let mut ahead = keys.sets.iter().skip(AHEAD);
    one_by_one(keys, missed, |set, tag, _| {
        if let Some(&set) = ahead.next() {
            prefetch(lanes, set as usize * stride);
        }
        ask(&mut lanes[set * stride..][..stride], tag)
    })
}

#[cfg(test)]
mod tests;
