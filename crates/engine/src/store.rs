//! A set-associative (or fully associative) store of keys: what TLB arrays, walk caches and data caches have in
//! common. Picks the form that suits the policy.

use lookaside_machine::Replacement;
use lookaside_stats::SplitMix64;

use crate::assoc::{ArrayShape, Assoc, EMPTY_KEY};
use crate::lookup::{one_by_one, LookupCounts, LookupKeys, LookupResult, SimdLevel};
use crate::lru::{LruSets, MAX_WAYS};
use crate::plru::{self, TreeSets};
use crate::prefetch::prefetch;
use crate::slot_sets::{self, SlotSets};

/// Keys ahead whose set is fetched.
pub(crate) const AHEAD: usize = 8;

/// Keys in sets of ways. A key is at most as wide as the store was made for, and never all ones.
#[derive(Clone, Debug)]
pub(crate) enum KeyStore {
    /// LRU, keys of 32 bits.
    Narrow(LruSets),
    /// LRU, keys of 64 bits.
    Wide(LruSets),
    /// Tree pseudo-LRU of few ways, keys of 32 bits.
    Tree(TreeSets),
    /// Other policies of few ways, keys of 32 bits.
    Slots(SlotSets),
    /// Any policy, or very many ways.
    Any(Assoc),
}

impl KeyStore {
    /// An empty store of keys of so many bits.
    pub(crate) fn new(shape: ArrayShape, key_bits: u32, rng: SplitMix64) -> Self {
        let is_few = shape.ways <= plru::MAX_WAYS && shape.ways.is_power_of_two();
        if shape.replacement == Replacement::TreePlru && is_few && key_bits <= 32 {
            Self::Tree(TreeSets::new(shape.sets, shape.ways))
        } else if shape.replacement != Replacement::Lru && shape.ways <= slot_sets::MAX_WAYS && key_bits <= 32 {
            Self::Slots(SlotSets::new(shape, rng))
        } else if shape.replacement != Replacement::Lru || shape.ways > MAX_WAYS {
            Self::Any(Assoc::new(shape, rng))
        } else if key_bits <= 32 {
            Self::Narrow(LruSets::new(shape.sets, shape.ways, false))
        } else {
            Self::Wide(LruSets::new(shape.sets, shape.ways, true))
        }
    }

    /// Is this key there? Touches it if so.
    #[inline(always)]
    pub(crate) fn access(&mut self, set: usize, key: u64) -> bool {
        match self {
            Self::Narrow(sets) => sets.access(set, key as u32),
            Self::Wide(sets) => sets.access_wide(set, key as u32, (key >> 32) as u32),
            Self::Tree(sets) => sets.access(set, key as u32),
            Self::Slots(sets) => sets.access(set, key as u32),
            Self::Any(assoc) => assoc.access(set, key),
        }
    }

    /// Is this key there? Touches it if so, else fills it.
    #[inline(always)]
    pub(crate) fn access_or_fill(&mut self, set: usize, key: u64) -> LookupResult {
        match self {
            Self::Narrow(sets) => sets.access_or_fill(set, key as u32),
            Self::Wide(sets) => sets.access_or_fill_wide(set, key as u32, (key >> 32) as u32),
            Self::Tree(sets) => sets.access_or_fill(set, key as u32),
            Self::Slots(sets) => sets.access_or_replace(set, key as u32).0,
            Self::Any(assoc) => assoc.access_or_fill(set, key),
        }
    }

    /// [`Self::access_or_fill`], and the key that was thrown out if one was.
    pub(crate) fn access_or_replace(&mut self, set: usize, key: u64) -> (LookupResult, u64) {
        match self {
            Self::Narrow(sets) | Self::Wide(sets) => {
                let [low, high] = sets.oldest(set);
                (self.access_or_fill(set, key), wide(low, high))
            }
            Self::Tree(sets) => {
                let (result, old) = sets.access_or_replace(set, key as u32);
                (result, old.into())
            }
            Self::Slots(sets) => {
                let (result, old) = sets.access_or_replace(set, key as u32);
                (result, old.into())
            }
            Self::Any(assoc) => assoc.access_or_replace(set, key),
        }
    }

    /// Is this key there? Changes nothing.
    pub(crate) fn holds(&self, set: usize, key: u64) -> bool {
        match self {
            Self::Narrow(sets) | Self::Wide(sets) => sets.holds(set, key as u32, (key >> 32) as u32),
            Self::Tree(sets) => sets.holds(set, key as u32),
            Self::Slots(sets) => sets.holds(set, key as u32),
            Self::Any(assoc) => assoc.find(set, key).is_some(),
        }
    }

    /// Invalidates a key: was it there?
    pub(crate) fn remove(&mut self, set: usize, key: u64) -> bool {
        match self {
            Self::Narrow(sets) | Self::Wide(sets) => sets.remove(set, key as u32, (key >> 32) as u32),
            Self::Tree(sets) => sets.remove(set, key as u32),
            Self::Slots(sets) => sets.remove(set, key as u32),
            Self::Any(assoc) => assoc.remove(set, key),
        }
    }

    /// Brings a set that will be asked soon nearer to the processor; changes nothing.
    pub(crate) fn prefetch(&self, set: usize) {
        match self {
            Self::Narrow(sets) | Self::Wide(sets) => sets.prefetch(set),
            Self::Tree(sets) => prefetch(&sets.tags, set),
            Self::Slots(sets) => sets.prefetch(set),
            Self::Any(assoc) => assoc.prefetch(set),
        }
    }

    /// [`Self::access_or_fill`] of each key of a list.
    pub(crate) fn look_up_list(&mut self, simd: SimdLevel, keys: LookupKeys<'_>, missed: &mut [u16]) -> LookupCounts {
        match self {
            Self::Narrow(sets) => sets.look_up_list(simd, LookupKeys { seconds: &[], ..keys }, missed),
            Self::Wide(sets) => sets.look_up_list(simd, keys, missed),
            Self::Tree(sets) => sets.look_up_list(simd, keys, missed),
            Self::Slots(sets) => sets.look_up_list(keys, missed),
            Self::Any(assoc) => {
                let mut k = 0;
                one_by_one(keys, missed, |set, low, high| {
                    k += 1;
                    if let Some(&set) = keys.sets.get(k + AHEAD) {
                        assoc.prefetch(set as usize);
                    }
                    assoc.access_or_fill(set, wide(low, high))
                })
            }
        }
    }

    /// Invalidates the keys that the predicate picks: how many.
    pub(crate) fn invalidate(&mut self, mut picks: impl FnMut(u64) -> bool) -> u64 {
        match self {
            Self::Narrow(sets) => sets.update(|tag, _| (!picks(tag.into())).then_some(tag)),
            Self::Wide(sets) => sets.update(|low, high| (!picks(wide(low, high))).then_some(low)),
            Self::Tree(sets) => sets.update(|tag| (!picks(tag.into())).then_some(tag)),
            Self::Slots(sets) => sets.update(|tag| (!picks(tag.into())).then_some(tag)),
            Self::Any(assoc) => assoc.invalidate(|_, key| picks(key)),
        }
    }

    /// Calls `f` with each key.
    pub(crate) fn for_each(&self, mut f: impl FnMut(u64)) {
        match self {
            Self::Narrow(sets) => sets.for_each(|tag, _| f(tag.into())),
            Self::Wide(sets) => sets.for_each(|low, high| f(wide(low, high))),
            Self::Tree(sets) => sets.for_each(|tag| f(tag.into())),
            Self::Slots(sets) => sets.for_each(|tag| f(tag.into())),
            Self::Any(assoc) => assoc.keys().iter().filter(|&&key| key != EMPTY_KEY).for_each(|&key| f(key)),
        }
    }

    /// Puts other keys in the place of those that are there, order and all.
    pub(crate) fn rename(&mut self, mut name: impl FnMut(u32) -> u32) {
        match self {
            Self::Narrow(sets) | Self::Wide(sets) => {
                sets.update(|tag, _| Some(name(tag)));
            }
            Self::Tree(sets) => {
                sets.update(|tag| Some(name(tag)));
            }
            Self::Slots(sets) => {
                sets.update(|tag| Some(name(tag)));
            }
            Self::Any(assoc) => assoc.rename(|key| name(key as u32).into()),
        }
    }
}

fn wide(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn keys(store: &KeyStore) -> Vec<u64> {
        let mut all = Vec::new();
        store.for_each(|key| all.push(key));
        all.sort_unstable();
        all
    }

    proptest! {
        /// Of two sets and few keys, whose upper halves differ too where there is room for them.
        #[test]
        fn every_form_throws_out_and_removes_the_same_keys(
            (ways, policy, bits) in (1..=MAX_WAYS, 0..5usize, prop_oneof![Just(32u32), Just(64)]),
            steps in vec((0..2usize, 0..80u64, 0..4u8), 0..400),
        ) {
            let policies = [
                (Replacement::Lru, ways, bits),
                (Replacement::TreePlru, 1 << (ways % 4), 32),
                (Replacement::Fifo, ways % slot_sets::MAX_WAYS + 1, 32),
                (Replacement::Random, ways % slot_sets::MAX_WAYS + 1, 32),
                (Replacement::Srrip, ways % slot_sets::MAX_WAYS + 1, 32),
            ];
            let (replacement, ways, bits) = policies[policy];
            let shape = ArrayShape { sets: 2, ways, replacement, repeated_keys: false };
            let mut fast = KeyStore::new(shape, bits, SplitMix64::new(0));
            let mut slow = KeyStore::Any(Assoc::new(shape, SplitMix64::new(0)));
            prop_assert!(!matches!(fast, KeyStore::Any(_)));
            for (set, number, step) in steps {
                let key = if bits > 32 { ((number % 3) << 40) + number / 3 } else { number };
                let key = 2 * key + set as u64;
                prop_assert_eq!(fast.holds(set, key), slow.holds(set, key));
                let lru = if let KeyStore::Narrow(sets) = &mut fast { Some(sets) } else { None };
                if let (1, true, Some(fast), KeyStore::Any(slow)) = (step, ways > 16, lru, &mut slow) {
                    // Behind so many others; a key twice as often as not is there.
                    fast.set_back(set, key as u32, (number % 70) as usize);
                    slow.set_back(set, key, (number % 70) as usize);
                } else if step == 0 {
                    prop_assert_eq!(fast.remove(set, key), slow.remove(set, key));
                } else {
                    let ((result, old), (expected, expected_old)) =
                        (fast.access_or_replace(set, key), slow.access_or_replace(set, key));
                    prop_assert_eq!(result, expected);
                    if result == LookupResult::Evicted {
                        prop_assert_eq!(old, expected_old);
                    }
                }
                prop_assert_eq!(keys(&fast), keys(&slow));
            }
        }
    }
}
