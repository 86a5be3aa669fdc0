//! What is asked of a store of keys, one key or a list of them, and what comes back. The loops over lists:
//! `list_lookup.rs`.

/// Tag of an invalid way; no caller makes it (with second words: none whose second word is all ones too).
pub(crate) const EMPTY_TAG: u32 = u32::MAX;

/// What a lookup that fills did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookupResult {
    /// It was there.
    Hit,
    /// It is now, in an invalid way.
    New,
    /// It is now, in place of another.
    Evicted,
}

/// Counts of a list of lookups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LookupCounts {
    /// Keys that were not there; their positions in the list are in the caller's `missed`.
    pub(crate) missed: usize,
    /// Fills that threw an entry out.
    pub(crate) evicted: usize,
    /// Of the keys that were not there: those whose bits were added to an entry.
    pub(crate) merged: usize,
}

impl LookupCounts {
    /// Adds the counts of more lookups.
    #[inline(always)]
    pub(crate) fn add(&mut self, more: LookupCounts) {
        self.missed += more.missed;
        self.evicted += more.evicted;
        self.merged += more.merged;
    }

    /// Counts a key at this position of the list, which was not there and is now.
    #[inline(always)]
    pub(crate) fn add_miss(&mut self, position: usize, filled: LookupResult, missed: &mut [u16]) {
        missed[self.missed] = position as u16;
        self.missed += 1;
        self.evicted += usize::from(filled == LookupResult::Evicted);
        self.merged += usize::from(filled == LookupResult::Hit);
    }
}

/// A list of keys: each one's set and words.
#[derive(Clone, Copy)]
pub(crate) struct LookupKeys<'a> {
    pub(crate) sets: &'a [u32],
    pub(crate) words: &'a [u32],
    /// Of keys of two words, the second; else empty.
    pub(crate) seconds: &'a [u32],
}

/// Looks up each key in turn.
#[inline(always)]
pub(crate) fn one_by_one(
    keys: LookupKeys<'_>,
    missed: &mut [u16],
    mut ask: impl FnMut(usize, u32, u32) -> LookupResult,
) -> LookupCounts {
    let mut lookups = LookupCounts::default();
    for (k, (&set, &word)) in keys.sets.iter().zip(keys.words).enumerate() {
        let answer = ask(set as usize, word, keys.seconds.get(k).copied().unwrap_or(0));
        missed[lookups.missed] = k as u16;
        lookups.missed += usize::from(answer != LookupResult::Hit);
        lookups.evicted += usize::from(answer == LookupResult::Evicted);
    }
    lookups
}

/// The vector instructions that the loops use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimdLevel {
    /// What every processor of the architecture has.
    Baseline,
    /// AVX-512 F, BW, VL, with BMI 1 and 2 and POPCNT.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl SimdLevel {
    /// The best that this processor has.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt")
        {
            return Self::Avx512;
        }
        Self::Baseline
    }
}
