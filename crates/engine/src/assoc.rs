//! A set-associative (or fully associative) store of 64-bit keys: what TLB arrays, walk caches and
//! data caches have in common.

use lookaside_machine::Replacement;
use lookaside_stats::SplitMix64;

use crate::fasthash::spread;
use crate::lookup::LookupResult;
use crate::prefetch::prefetch;
use crate::replacement::{ReplacementPolicy, SetPolicy};

/// The key of an invalid entry; no caller makes it.
pub(crate) const EMPTY_KEY: u64 = u64::MAX;

/// Keys in sets of ways. A *slot* is `set * ways + way`.
#[derive(Clone, Debug)]
pub(crate) struct Assoc {
    ways: usize,
    keys: Vec<u64>,
    /// A byte of each key's hash, eight ways a word: only keys whose byte fits need to be compared.
    hints: Vec<u64>,
    /// Words of hints in a set; 0 where there is an index.
    hint_words: usize,
    policy: ReplacementPolicy,
    /// Where the slots of keys are, for arrays of many ways.
    index: Option<SlotIndex>,
}

/// Above so many ways (two words of hints) a hash index is faster where most lookups hit.
const SCANNED_WAYS: usize = 16;
/// 1 in every byte.
const BYTES: u64 = 0x0101_0101_0101_0101;

/// Geometry and policy of an [`Assoc`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrayShape {
    pub(crate) sets: usize,
    pub(crate) ways: usize,
    pub(crate) replacement: Replacement,
    /// One key may stand in several ways of its set (coalesced blocks).
    pub(crate) repeated_keys: bool,
}

impl Assoc {
    pub(crate) fn new(shape: ArrayShape, rng: SplitMix64) -> Self {
        let slots = shape.sets * shape.ways;
        let hashed = shape.ways > SCANNED_WAYS && !shape.repeated_keys;
        let hint_words = if hashed { 0 } else { shape.ways.div_ceil(8) };
        Self {
            ways: shape.ways,
            keys: vec![EMPTY_KEY; slots],
            hints: vec![hint_of(EMPTY_KEY) * BYTES; shape.sets * hint_words],
            hint_words,
            policy: ReplacementPolicy::new(shape.replacement, shape.sets, shape.ways as u32, rng),
            index: hashed.then(|| SlotIndex::new(slots)),
        }
    }

    /// Slot of the key, the lowest way first.
    #[inline(always)]
    pub(crate) fn find(&self, set: usize, key: u64) -> Option<usize> {
        match &self.index {
            Some(index) => index.find(key),
            None => self.find_that(set, key, |_| true),
        }
    }

    /// Lowest slot of the set that holds the key and that the predicate takes. For arrays without an index.
    #[inline(always)]
    pub(crate) fn find_that(&self, set: usize, key: u64, takes: impl Fn(usize) -> bool) -> Option<usize> {
        let first = set * self.ways;
        let keys = &self.keys[first..first + self.ways];
        let pattern = hint_of(key) * BYTES;
        let words = &self.hints[set * self.hint_words..(set + 1) * self.hint_words];
        for (group, word) in words.iter().enumerate() {
            let difference = word ^ pattern;
            // High bit of each zero byte, and maybe of some above one: those fail the comparison.
            let mut fitting = difference.wrapping_sub(BYTES) & !difference & (BYTES << 7);
            while fitting != 0 {
                let way = 8 * group + fitting.trailing_zeros() as usize / 8;
                if keys.get(way) == Some(&key) && takes(first + way) {
                    return Some(first + way);
                }
                fitting &= fitting - 1;
            }
        }
        None
    }

    /// All slots' keys, [`EMPTY_KEY`] ones too.
    pub(crate) fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// Brings a set that will be asked soon nearer to the processor; changes nothing.
    #[inline(always)]
    pub(crate) fn prefetch(&self, set: usize) {
        let first = set * self.ways;
        prefetch(&self.hints, set * self.hint_words);
        prefetch(&self.keys, first);
        prefetch(&self.keys, first + self.ways - 1);
        self.policy.prefetch(set);
    }

    /// A hit.
    #[inline(always)]
    pub(crate) fn touch(&mut self, set: usize, slot: usize) {
        self.policy.touch(set, (slot - set * self.ways) as u32);
    }

    /// Finds the key and touches it: was it there?
    #[inline(always)]
    pub(crate) fn access(&mut self, set: usize, key: u64) -> bool {
        match self.find(set, key) {
            Some(slot) => {
                self.touch(set, slot);
                true
            }
            None => false,
        }
    }

    /// Finds the key and touches it, or fills it.
    #[inline(always)]
    pub(crate) fn access_or_fill(&mut self, set: usize, key: u64) -> LookupResult {
        self.access_or_replace(set, key).0
    }

    /// [`Self::access_or_fill`], and the key that was thrown out.
    #[inline(always)]
    pub(crate) fn access_or_replace(&mut self, set: usize, key: u64) -> (LookupResult, u64) {
        if self.access(set, key) {
            return (LookupResult::Hit, EMPTY_KEY);
        }
        let (_, old) = self.fill(set, key);
        (if old == EMPTY_KEY { LookupResult::New } else { LookupResult::Evicted }, old)
    }

    /// Fills the key, which is not there: its slot, and the key thrown out ([`EMPTY_KEY`] = none).
    #[inline(always)]
    pub(crate) fn fill(&mut self, set: usize, key: u64) -> (usize, u64) {
        let first = set * self.ways;
        let row = &self.keys[first..first + self.ways];
        let way = self.policy.replace(set, || row.iter().position(|&k| k == EMPTY_KEY).map(|way| way as u32));
        let slot = first + way as usize;
        let old = std::mem::replace(&mut self.keys[slot], key);
        match &mut self.index {
            Some(index) => {
                if old != EMPTY_KEY {
                    index.remove(old);
                }
                index.insert(key, slot);
            }
            None => self.set_hint(set, way as usize, key),
        }
        (slot, old)
    }

    #[inline(always)]
    fn set_hint(&mut self, set: usize, way: usize, key: u64) {
        let word = &mut self.hints[set * self.hint_words + way / 8];
        let shift = way % 8 * 8;
        *word = *word & !(0xff << shift) | hint_of(key) << shift;
    }

    /// Puts a key that is there behind `depth` others of its set that were used later, or as many as there are, if it
    /// stands before that: under LRU of more than 16 ways.
    pub(crate) fn set_back(&mut self, set: usize, key: u64, depth: usize) {
        let Some(slot) = self.find(set, key) else { return };
        let first = set * self.ways;
        let valid = self.keys[first..first + self.ways].iter().filter(|&&key| key != EMPTY_KEY).count();
        self.policy.set_back(set, (slot - first) as u32, depth as u32, valid as u32);
    }

    /// Puts other keys in the place of those that are there.
    pub(crate) fn rename(&mut self, mut name: impl FnMut(u64) -> u64) {
        for slot in 0..self.keys.len() {
            let old = self.keys[slot];
            if old == EMPTY_KEY {
                continue;
            }
            self.keys[slot] = name(old);
            if self.index.is_none() {
                self.set_hint(slot / self.ways, slot % self.ways, self.keys[slot]);
            }
        }
        if let Some(index) = &mut self.index {
            *index = SlotIndex::new(self.keys.len());
            let valid = self.keys.iter().enumerate().filter(|(_, &key)| key != EMPTY_KEY);
            valid.for_each(|(slot, &key)| index.insert(key, slot));
        }
    }

    /// Invalidates the entries whose (slot, key) the predicate picks: how many.
    pub(crate) fn invalidate(&mut self, mut picks: impl FnMut(usize, u64) -> bool) -> u64 {
        let mut count = 0;
        for slot in 0..self.keys.len() {
            let key = self.keys[slot];
            if key != EMPTY_KEY && picks(slot, key) {
                self.invalidate_slot(slot);
                count += 1;
            }
        }
        count
    }

    /// Invalidates a key: was it there?
    pub(crate) fn remove(&mut self, set: usize, key: u64) -> bool {
        self.find(set, key).map(|slot| self.invalidate_slot(slot)).is_some()
    }

    fn invalidate_slot(&mut self, slot: usize) {
        let set = slot / self.ways;
        let first = set * self.ways;
        let old = std::mem::replace(&mut self.keys[slot], EMPTY_KEY);
        match &mut self.index {
            Some(index) => index.remove(old),
            None => self.set_hint(set, slot - first, EMPTY_KEY),
        }
        let keys = &self.keys;
        self.policy.invalidated(set, (slot - first) as u32, |way| keys[first + way as usize] != EMPTY_KEY);
    }
}

/// Byte of a key's hash.
#[inline(always)]
fn hint_of(key: u64) -> u64 {
    spread(key) >> 56
}

/// Open-addressing table from keys to slots, at most a quarter full, with backward-shift deletion.
#[derive(Clone, Debug)]
struct SlotIndex {
    /// Slots.
    table: Vec<u32>,
    /// Key beside each, so that a probe needs no second place.
    keys: Vec<u64>,
    shift: u32,
}

impl SlotIndex {
    fn new(slots: usize) -> Self {
        let len = (4 * slots).next_power_of_two();
        Self { table: vec![0; len], keys: vec![EMPTY_KEY; len], shift: 64 - len.trailing_zeros() }
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        (spread(key) >> self.shift) as usize
    }

    #[inline]
    fn find(&self, key: u64) -> Option<usize> {
        let mask = self.table.len() - 1;
        let mut at = self.home(key);
        loop {
            let k = self.keys[at];
            if k == key {
                return Some(self.table[at] as usize);
            }
            if k == EMPTY_KEY {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn insert(&mut self, key: u64, slot: usize) {
        let mask = self.table.len() - 1;
        let mut at = self.home(key);
        while self.keys[at] != EMPTY_KEY {
            at = (at + 1) & mask;
        }
        self.keys[at] = key;
        self.table[at] = slot as u32;
    }

    #[inline]
    fn remove(&mut self, key: u64) {
        let mask = self.table.len() - 1;
        let mut at = self.home(key);
        while self.keys[at] != key {
            if self.keys[at] == EMPTY_KEY {
                return;
            }
            at = (at + 1) & mask;
        }
        // Moves back whatever could not be found any more across the gap (Knuth, vol. 3, §6.4, algorithm R).
        let mut gap = at;
        loop {
            at = (at + 1) & mask;
            let k = self.keys[at];
            if k == EMPTY_KEY {
                break;
            }
            let home = self.home(k);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(gap) & mask) {
                self.keys[gap] = k;
                self.table[gap] = self.table[at];
                gap = at;
            }
        }
        self.keys[gap] = EMPTY_KEY;
    }
}
