//! Looks up lists of keys in sets, and fills each key that is not there: the loops that most of a run's time goes to.
//! Which vector instructions they use is chosen when the program runs; the result is the same.

use crate::lookup::{one_by_one, LookupCounts, LookupKeys, SimdLevel};
use crate::lru::LruSets;
use crate::plru::TreeSets;

#[cfg(target_arch = "x86_64")]
use crate::{avx512, avx512_rows};

/// To prepare the wide loops takes longer than to ask for fewer keys.
#[cfg(target_arch = "x86_64")]
const LEAST_KEYS: usize = 4;

impl LruSets {
    /// [`LruSets::access_or_fill`] (or [`LruSets::access_or_fill_wide`], if the sets have second words) of each key.
    pub(crate) fn look_up_list(&mut self, simd: SimdLevel, keys: LookupKeys<'_>, missed: &mut [u16]) -> LookupCounts {
        #[cfg(target_arch = "x86_64")]
        if simd == SimdLevel::Avx512 && keys.sets.len() >= LEAST_KEYS {
            if let Some(lookups) = avx512::look_up(self, keys, missed) {
                return lookups;
            }
        }
        let _ = simd;
        self.look_up_list_portably(keys, missed)
    }

    /// Of each tag: is it there, with this bit in its second word? If not, these bits are filled.
    pub(crate) fn look_up_masked_list(
        &mut self,
        simd: SimdLevel,
        keys: LookupKeys<'_>,
        bits: &[u32],
        missed: &mut [u16],
    ) -> LookupCounts {
        #[cfg(target_arch = "x86_64")]
        if simd == SimdLevel::Avx512 {
            if let Some(lookups) = avx512::look_up_masked(self, keys, bits, missed) {
                return lookups;
            }
        }
        let _ = simd;
        let mut lookups = LookupCounts::default();
        for (k, ((&set, &tag), (&bit, &fill))) in
            keys.sets.iter().zip(keys.words).zip(bits.iter().zip(keys.seconds)).enumerate()
        {
            if !self.access_masked(set as usize, tag, bit) {
                lookups.add_miss(k, self.fill_masked(set as usize, tag, fill), missed);
            }
        }
        lookups
    }
}

impl TreeSets {
    /// [`Self::access_or_fill`] of each tag of a list.
    pub(crate) fn look_up_list(&mut self, simd: SimdLevel, keys: LookupKeys<'_>, missed: &mut [u16]) -> LookupCounts {
        #[cfg(target_arch = "x86_64")]
        if simd == SimdLevel::Avx512 && keys.sets.len() >= LEAST_KEYS {
            return avx512::look_up_trees(self, keys, missed);
        }
        let _ = simd;
        one_by_one(keys, missed, |set, tag, _| self.access_or_fill(set, tag))
    }
}

/// Lists the items whose byte is `wanted`, in order; returns how many.
pub(crate) fn collect(simd: SimdLevel, bytes: &[u8], wanted: u8, list: &mut [u16]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if simd == SimdLevel::Avx512 {
        return avx512_rows::collect(bytes, wanted, list);
    }
    let _ = simd;
    const ONES: u64 = 0x0101_0101_0101_0101;
    let list = &mut list[..bytes.len()];
    let mut n = 0;
    let mut add = |i: usize, byte: u8| {
        list[n] = i as u16;
        n += usize::from(byte == wanted);
    };
    let (words, rest) = bytes.as_chunks::<8>();
    for (word, its) in words.iter().enumerate() {
        // Has it a byte that is the wanted one?
        let difference = u64::from_le_bytes(*its) ^ (ONES * u64::from(wanted));
        if difference.wrapping_sub(ONES) & !difference & (ONES << 7) != 0 {
            its.iter().enumerate().for_each(|(i, &byte)| add(8 * word + i, byte));
        }
    }
    rest.iter().enumerate().for_each(|(i, &byte)| add(8 * words.len() + i, byte));
    n
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assoc::{ArrayShape, Assoc, EMPTY_KEY};
    use lookaside_machine::Replacement;
    use lookaside_stats::SplitMix64;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Lists of keys to look up.
    fn lists() -> impl Strategy<Value = Vec<Vec<(u32, u32, u32)>>> {
        vec(vec((0..4u32, 0..90u32, 0..3u32), 0..70), 0..12)
    }

    fn entries(sets: &LruSets) -> Vec<(u32, u32)> {
        let mut all = Vec::new();
        sets.for_each(|tag, second| all.push((tag, second)));
        all
    }

    proptest! {
        #[test]
        fn every_form_of_a_list_is_one_key_after_the_other(
            (number, ways, wide, few) in (1..=4usize, 1..=crate::lru::MAX_WAYS, any::<bool>(), any::<bool>()),
            lists in lists(),
        ) {
            let number = if number == 3 { 1 } else { number };
            let ways = if few { (ways - 1) % 16 + 1 } else { ways };
            let mut slow = LruSets::new(number, ways, wide);
            let mut fast = [slow.clone(), slow.clone()];
            for list in lists {
                let sets: Vec<u32> = list.iter().map(|key| key.0 % number as u32).collect();
                let words: Vec<u32> = list.iter().map(|key| key.1).collect();
                // All ones in either word is a key like others.
                let second = |c: u32| if c == 2 { u32::MAX } else { c };
                let seconds: Vec<u32> = list.iter().filter(|_| wide).map(|key| second(key.2)).collect();
                let keys = LookupKeys { sets: &sets, words: &words, seconds: &seconds };
                let mut missed = vec![0; list.len()];
                let expected = one_by_one(keys, &mut missed, |set, word, second| match wide {
                    true => slow.access_or_fill_wide(set, word, second),
                    false => slow.access_or_fill(set, word),
                });
                missed.truncate(expected.missed);
                for (sets, simd) in fast.iter_mut().zip([SimdLevel::Baseline, SimdLevel::detect()]) {
                    let mut its = vec![0; list.len()];
                    prop_assert_eq!(sets.look_up_list(simd, keys, &mut its), expected);
                    prop_assert_eq!(&its[..expected.missed], &missed[..]);
                    prop_assert_eq!(entries(sets), entries(&slow));
                }
            }
        }

        #[test]
        fn every_form_of_a_masked_list_is_the_same(
            (number, ways) in (1..=2usize, 1..=20usize),
            lists in vec(vec((0..2u32, 0..24u32, 0..4u32, 0..16u32), 0..70), 0..12),
        ) {
            let mut fast = [LruSets::new(number, ways, true), LruSets::new(number, ways, true)];
            for list in lists {
                let sets: Vec<u32> = list.iter().map(|key| key.0 % number as u32).collect();
                let words: Vec<u32> = list.iter().map(|key| key.1).collect();
                let bits: Vec<u32> = list.iter().map(|key| 1 << key.2).collect();
                let seconds: Vec<u32> = list.iter().map(|key| 1 << key.2 | key.3).collect();
                let keys = LookupKeys { sets: &sets, words: &words, seconds: &seconds };
                let came = [SimdLevel::Baseline, SimdLevel::detect()].iter().zip(&mut fast).map(|(&simd, sets)| {
                    let mut missed = vec![0; list.len()];
                    let lookups = sets.look_up_masked_list(simd, keys, &bits, &mut missed);
                    missed.truncate(lookups.missed);
                    (lookups, missed, entries(sets))
                }).collect::<Vec<_>>();
                prop_assert_eq!(&came[0], &came[1]);
            }
        }

        #[test]
        fn trees_in_bytes_are_trees(ways in 0..=3u32, lists in vec((vec((0..2u32, 0..14u32), 0..40), 0..9u32), 0..12)) {
            let ways = 1 << ways;
            let shape = ArrayShape { sets: 2, ways, replacement: Replacement::TreePlru, repeated_keys: false };
            let mut slow = Assoc::new(shape, SplitMix64::new(0));
            let mut fast = [TreeSets::new(2, ways), TreeSets::new(2, ways)];
            for (list, gone) in lists {
                let sets: Vec<u32> = list.iter().map(|key| key.0).collect();
                let words: Vec<u32> = list.iter().map(|key| key.1).collect();
                let keys = LookupKeys { sets: &sets, words: &words, seconds: &[] };
                let mut missed = vec![0; list.len()];
                let expected = one_by_one(keys, &mut missed, |set, tag, _| {
                    slow.access_or_fill(set, tag.into())
                });
                let invalidated = slow.invalidate(|_, key| key == u64::from(gone));
                for (sets, simd) in fast.iter_mut().zip([SimdLevel::Baseline, SimdLevel::detect()]) {
                    let mut its = vec![0; list.len()];
                    prop_assert_eq!(sets.look_up_list(simd, keys, &mut its), expected);
                    prop_assert_eq!(&its[..expected.missed], &missed[..expected.missed]);
                    prop_assert_eq!(sets.update(|tag| (tag != gone).then_some(tag)), invalidated);
                    let mut tags = Vec::new();
                    sets.for_each(|tag| tags.push(u64::from(tag)));
                    let valid = slow.keys().iter().copied().filter(|&key| key != EMPTY_KEY);
                    prop_assert_eq!(tags, valid.collect::<Vec<_>>());
                }
            }
        }

        #[test]
        fn collecting_finds_all_and_no_more(bytes in vec(0..3u8, 0..100), wanted in 0..3u8) {
            let expected: Vec<u16> =
                (0..bytes.len() as u16).filter(|&i| bytes[i as usize] == wanted).collect();
            for simd in [SimdLevel::Baseline, SimdLevel::detect()] {
                let mut list = vec![0; bytes.len()];
                let n = collect(simd, &bytes, wanted, &mut list);
                prop_assert_eq!(&list[..n], &expected[..]);
            }
        }
    }
}
