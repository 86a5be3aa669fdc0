//! Asking sets in order of use (`lru.rs`) for a list of keys, each filled where it is not there: the loops that most of
//! a run's time goes to. The processor's widest vectors are chosen when the program runs; what comes of it is the same.

use crate::lru::{Access, LruSets};
#[cfg(target_arch = "x86_64")]
use crate::{avx512, avx512_rows};

/// Which instructions the loops are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isa {
    /// What every processor of the architecture has.
    Baseline,
    /// AVX-512 F, BW, VL, with BMI 1 and 2.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// The best that this processor has.
    pub(crate) fn here() -> Self {
        #[cfg(target_arch = "x86_64")]
        if avx512::is_here() {
            return Self::Avx512;
        }
        Self::Baseline
    }
}

/// What asking for a list of keys came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Keys that were not there; their places in the list are in the caller's `missed`.
    pub(crate) missed: usize,
    /// Fills that threw an entry out.
    pub(crate) evicted: usize,
    /// Of the keys that were not there: those whose bits were added to an entry.
    pub(crate) merged: usize,
}

impl Asked {
    /// More was asked.
    #[inline(always)]
    pub(crate) fn add(&mut self, more: Asked) {
        self.missed += more.missed;
        self.evicted += more.evicted;
        self.merged += more.merged;
    }

    /// A key of this place was not there, and is now.
    #[inline(always)]
    pub(crate) fn add_miss(&mut self, place: usize, filled: Access, missed: &mut [u16]) {
        missed[self.missed] = place as u16;
        self.missed += 1;
        self.evicted += usize::from(filled == Access::Evicted);
        self.merged += usize::from(filled == Access::Hit);
    }
}

/// A list of keys: each one's set and words.
#[derive(Clone, Copy)]
pub(crate) struct Keys<'a> {
    pub(crate) sets: &'a [u32],
    pub(crate) words: &'a [u32],
    /// Of keys of two words, the second; else empty.
    pub(crate) seconds: &'a [u32],
}

impl LruSets {
    /// [`LruSets::access_or_fill`] (or [`LruSets::access_or_fill_wide`], if the sets have second words) of each key.
    pub(crate) fn ask(&mut self, isa: Isa, keys: Keys<'_>, missed: &mut [u16]) -> Asked {
        #[cfg(target_arch = "x86_64")]
        if isa == Isa::Avx512 {
            if let Some(asked) = avx512::ask(self, keys, missed) {
                return asked;
            }
        }
        let _ = isa;
        self.ask_plainly(keys, missed)
    }

    /// Of each tag: is it there, with this bit in its second word? If not, these bits are filled.
    pub(crate) fn ask_masked(&mut self, isa: Isa, keys: Keys<'_>, bits: &[u32], missed: &mut [u16]) -> Asked {
        #[cfg(target_arch = "x86_64")]
        if isa == Isa::Avx512 {
            if let Some(asked) = avx512::ask_masked(self, keys, bits, missed) {
                return asked;
            }
        }
        let _ = isa;
        let mut asked = Asked::default();
        for (k, ((&set, &tag), (&bit, &fill))) in
            keys.sets.iter().zip(keys.words).zip(bits.iter().zip(keys.seconds)).enumerate()
        {
            if !self.access_masked(set as usize, tag, bit) {
                asked.add_miss(k, self.fill_masked(set as usize, tag, fill), missed);
            }
        }
        asked
    }
}

/// Asks for each key in turn.
#[inline(always)]
pub(crate) fn one_by_one(keys: Keys<'_>, missed: &mut [u16], mut ask: impl FnMut(usize, u32, u32) -> Access) -> Asked {
    let mut asked = Asked::default();
    for (k, (&set, &word)) in keys.sets.iter().zip(keys.words).enumerate() {
        let answer = ask(set as usize, word, keys.seconds.get(k).copied().unwrap_or(0));
        missed[asked.missed] = k as u16;
        asked.missed += usize::from(answer != Access::Hit);
        asked.evicted += usize::from(answer == Access::Evicted);
    }
    asked
}

/// The items whose byte is this one, in order: how many.
pub(crate) fn collect(isa: Isa, bytes: &[u8], wanted: u8, list: &mut [u16]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Avx512 {
        return avx512_rows::collect(bytes, wanted, list);
    }
    let _ = isa;
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
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// What is asked of sets, in lists.
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
                let keys = Keys { sets: &sets, words: &words, seconds: &seconds };
                let mut missed = vec![0; list.len()];
                let expected = one_by_one(keys, &mut missed, |set, word, second| match wide {
                    true => slow.access_or_fill_wide(set, word, second),
                    false => slow.access_or_fill(set, word),
                });
                missed.truncate(expected.missed);
                for (sets, isa) in fast.iter_mut().zip([Isa::Baseline, Isa::here()]) {
                    let mut its = vec![0; list.len()];
                    prop_assert_eq!(sets.ask(isa, keys, &mut its), expected);
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
                let keys = Keys { sets: &sets, words: &words, seconds: &seconds };
                let came = [Isa::Baseline, Isa::here()].iter().zip(&mut fast).map(|(&isa, sets)| {
                    let mut missed = vec![0; list.len()];
                    let asked = sets.ask_masked(isa, keys, &bits, &mut missed);
                    missed.truncate(asked.missed);
                    (asked, missed, entries(sets))
                }).collect::<Vec<_>>();
                prop_assert_eq!(&came[0], &came[1]);
            }
        }

        #[test]
        fn collecting_finds_all_and_no_more(bytes in vec(0..3u8, 0..100), wanted in 0..3u8) {
            let expected: Vec<u16> =
                (0..bytes.len() as u16).filter(|&i| bytes[i as usize] == wanted).collect();
            for isa in [Isa::Baseline, Isa::here()] {
                let mut list = vec![0; bytes.len()];
                let n = collect(isa, &bytes, wanted, &mut list);
                prop_assert_eq!(&list[..n], &expected[..]);
            }
        }
    }
}
