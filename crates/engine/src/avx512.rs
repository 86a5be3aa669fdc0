//! The loops of `list_lookup.rs` in AVX-512: a set of up to 16 ways is one vector, and no branch depends on what is
//! found.
//!
//! Compare all ways with the tag; the lowest bit found, or the last way's, ends the range of lanes that move back by
//! one; the tag comes in at the front.

use std::arch::asm;
use std::arch::x86_64::*;

use crate::lookup::{LookupCounts, LookupKeys, EMPTY_TAG};
use crate::lru::{LruSets, LruShape};
use crate::plru::TreeSets;

/// Keys ahead whose set is fetched, where sets take long to come.
const AHEAD: usize = 12;

/// Sets in so many words lie beyond half of a usual first-level cache.
const FAR_WORDS: usize = 4 << 10;

/// The words of sets, to be had by number of set.
struct SetWords {
    words: *mut u32,
    /// Words from set to set, and from a set's tags to its second words.
    stride: usize,
    seconds: usize,
    last_way: u32,
}

/// [`LruSets::look_up_list`], where there is a loop for such sets. Only where the processor has [`SimdLevel::Avx512`].
pub(crate) fn look_up(sets: &mut LruSets, keys: LookupKeys<'_>, missed: &mut [u16]) -> Option<LookupCounts> {
    let (lanes, number, shape) = sets.parts();
    let is_far = lanes.len() * 4 > FAR_WORDS;
    let of = checked(lanes.as_mut_ptr().cast(), lanes.len() * 4, number, shape, keys, missed);
    let is_wide = shape.planes == 2;
    assert!(!is_wide || keys.seconds.len() == keys.sets.len(), "a second word to each key");
    // SAFETY: the caller has seen that the processor has the instructions; `checked` has checked the rest.
    Some(unsafe {
        match (shape.stride, is_wide, is_far) {
            (..=4, false, _) if number == 1 => one_set::<1>(&of, keys, missed),
            (1, false, _) => x::narrow::<false>(&of, keys, missed),
            (2, false, false) => y::narrow::<false>(&of, keys, missed),
            (2, false, true) => y::narrow::<true>(&of, keys, missed),
            (4, false, false) => z::narrow::<false>(&of, keys, missed),
            (4, false, true) => z::narrow::<true>(&of, keys, missed),
            (1, true, _) => x::wide::<false>(&of, keys, missed),
            (2, true, _) => y::wide::<false>(&of, keys, missed),
            (4, true, _) => z::wide::<false>(&of, keys, missed),
            (8, false, _) if number == 1 => one_set::<2>(&of, keys, missed),
            (12, false, _) if number == 1 => one_set::<3>(&of, keys, missed),
            (16, false, _) if number == 1 => one_set::<4>(&of, keys, missed),
            _ => return None,
        }
    })
}

/// [`LruSets::look_up_masked_list`], where there is a loop for such sets. Only where the processor has
/// [`SimdLevel::Avx512`].
pub(crate) fn look_up_masked(
    sets: &mut LruSets,
    keys: LookupKeys<'_>,
    bits: &[u32],
    missed: &mut [u16],
) -> Option<LookupCounts> {
    let (lanes, number, shape) = sets.parts();
    let of = checked(lanes.as_mut_ptr().cast(), lanes.len() * 4, number, shape, keys, missed);
    assert!(shape.planes == 2 && keys.seconds.len() == keys.sets.len() && bits.len() == keys.sets.len());
    // SAFETY: the caller has seen that the processor has the instructions; `checked` has checked the rest.
    Some(unsafe {
        match shape.stride {
            1 => x::masked(&of, keys, bits, missed),
            2 => y::masked(&of, keys, bits, missed),
            4 => z::masked(&of, keys, bits, missed),
            _ => return None,
        }
    })
}

/// [`TreeSets::look_up_list`]. Only where the processor has [`SimdLevel::Avx512`].
pub(crate) fn look_up_trees(sets: &mut TreeSets, keys: LookupKeys<'_>, missed: &mut [u16]) -> LookupCounts {
    assert!(missed.len() >= keys.sets.len(), "room for each key");
    // SAFETY: the caller has seen that the processor has the instructions.
    unsafe { trees(sets, keys, missed) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
fn trees(sets: &mut TreeSets, keys: LookupKeys<'_>, missed: &mut [u16]) -> LookupCounts {
    let TreeSets { tags, bits, tree } = sets;
    let empty = _mm256_set1_epi32(EMPTY_TAG as i32);
    let (mut n, mut new) = (0, 0);
    for (k, (&set, &word)) in keys.sets.iter().zip(keys.words).enumerate() {
        let (tags, bits) = (&mut tags[set as usize], &mut bits[set as usize]);
        // SAFETY: a set's tags are eight words.
        let old = unsafe { _mm256_loadu_si256(tags.as_ptr().cast()) };
        let front = _mm256_set1_epi32(word as i32);
        let found = u32::from(_mm256_cmpeq_epi32_mask(old, front)) & tree.ways;
        let invalid = u32::from(_mm256_cmpeq_epi32_mask(old, empty)) & tree.ways;
        let victim = u32::from(tree.victims[usize::from(*bits)]);
        let filled = if invalid == 0 { victim } else { invalid };
        let at = if found == 0 { filled } else { found };
        let at = at & at.wrapping_neg();
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(tags.as_mut_ptr().cast(), y::whole(_mm256_mask_mov_epi32(old, at as u8, front))) };
        *bits = tree.touched(*bits, at.trailing_zeros() as usize);
        // SAFETY: `look_up_trees`: there is room for each key, and there are no more misses than keys.
        unsafe { *missed.get_unchecked_mut(n) = k as u16 };
        n += usize::from(found == 0);
        new += usize::from((found == 0) & (invalid != 0));
    }
    LookupCounts { missed: n, evicted: n - new, merged: 0 }
}

/// Checks what the loops rely on: every key's set lies within the words, a set's vectors too, and there is room for all
/// misses.
fn checked(
    words: *mut u32,
    len: usize,
    number: usize,
    shape: LruShape,
    keys: LookupKeys<'_>,
    missed: &[u16],
) -> SetWords {
    let seconds = 4 * shape.stride;
    let stride = seconds * shape.planes;
    assert!(number * stride <= len && (shape.last_way as usize) < seconds, "sets lie within their words");
    assert!(keys.words.len() == keys.sets.len() && missed.len() >= keys.sets.len(), "a word and room for each key");
    // SAFETY: the callers have seen that the processor has the instructions.
    assert!((unsafe { greatest(keys.sets) } as usize) < number, "each key's set is there");
    SetWords { words, stride, seconds, last_way: shape.last_way }
}

/// Found in vectors: without the feature there is no instruction for a greatest u32.
#[target_feature(enable = "avx512f,avx512vl")]
fn greatest(sets: &[u32]) -> u32 {
    sets.iter().fold(0, |greatest, &set| greatest.max(set))
}

/// The loops for sets of one vector.
macro_rules! of_one_vector {
    ($name:ident, $vector:ident, $register:ident, $mask:ty, $load:ident, $store:ident, $splat:ident, $equal:ident, $push:ident, $last:literal) => {
        mod $name {
            use super::*;

            /// The same, which the compiler can't see: it would store only the lanes that move, and a load of all lanes
            /// would have to wait until such a store is through.
            #[inline]
            #[target_feature(enable = "avx512f,avx512vl")]
            pub(super) fn whole(mut lanes: $vector) -> $vector {
                // SAFETY: it is no instruction.
                unsafe { asm!("/* {0} */", inout($register) lanes, options(pure, nomem, nostack, preserves_flags)) };
                lanes
            }

            /// Ways that a vector has room for.
            const LANES: usize = $last + 1;

            /// One word a key.
            ///
            /// # Safety
            /// The processor has [`SimdLevel::Avx512`]; [`checked`] sets of vectors of this width.
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
            pub(super) unsafe fn narrow<const FAR: bool>(of: &SetWords, keys: LookupKeys<'_>, missed: &mut [u16]) -> LookupCounts {
                assert!(of.seconds == LANES && of.stride == LANES, "a set is one vector");
                let end = 1u32 << of.last_way;
                let (mut n, mut new) = (0, 0);
                if FAR {
                    keys.sets.iter().take(AHEAD).for_each(|&set| fetch(of, set));
                }
                for (k, (&set, &word)) in keys.sets.iter().zip(keys.words).enumerate() {
                    if FAR {
                        if let Some(&set) = keys.sets.get(k + AHEAD) {
                            fetch(of, set);
                        }
                    }
                    // SAFETY: `checked`: the set is there, and there are no more misses than keys.
                    unsafe {
                        let set = of.words.add(set as usize * LANES);
                        let old = $load(set.cast());
                        let front = $splat(word as i32);
                        let found = u32::from($equal(old, front));
                        let last = *set.add(of.last_way as usize);
                        $store(set.cast(), whole($push::<$last>(old, up_to(found | end) as $mask, old, front)));
                        *missed.get_unchecked_mut(n) = k as u16;
                        n += usize::from(found == 0);
                        new += usize::from((found == 0) & (last == EMPTY_TAG));
                    }
                }
                LookupCounts { missed: n, evicted: n - new, merged: 0 }
            }

            /// Two words a key.
            ///
            /// # Safety
            /// As above; there are second words.
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
            pub(super) unsafe fn wide<const FAR: bool>(of: &SetWords, keys: LookupKeys<'_>, missed: &mut [u16]) -> LookupCounts {
                assert!(of.seconds == LANES && of.stride == 2 * LANES, "a set is two vectors");
                let end = 1u32 << of.last_way;
                let (mut n, mut new) = (0, 0);
                for (k, ((&set, &word), &second)) in keys.sets.iter().zip(keys.words).zip(keys.seconds).enumerate() {
                    // SAFETY: as above.
                    unsafe {
                        let set = of.words.add(set as usize * 2 * LANES);
                        let behind = set.add(LANES);
                        let old = [$load(set.cast()), $load(behind.cast())];
                        let front = [$splat(word as i32), $splat(second as i32)];
                        let found = u32::from($equal(old[0], front[0]) & $equal(old[1], front[1]));
                        let last = *set.add(of.last_way as usize) & *behind.add(of.last_way as usize);
                        let moved = up_to(found | end) as $mask;
                        $store(set.cast(), whole($push::<$last>(old[0], moved, old[0], front[0])));
                        $store(behind.cast(), whole($push::<$last>(old[1], moved, old[1], front[1])));
                        *missed.get_unchecked_mut(n) = k as u16;
                        n += usize::from(found == 0);
                        new += usize::from((found == 0) & (last == EMPTY_TAG));
                    }
                }
                LookupCounts { missed: n, evicted: n - new, merged: 0 }
            }

            /// One word a key, and bits beside it.
            ///
            /// # Safety
            /// As above; there are bits to each key.
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
            pub(super) unsafe fn masked(of: &SetWords, keys: LookupKeys<'_>, bits: &[u32], missed: &mut [u16]) -> LookupCounts {
                assert!(of.seconds == LANES && of.stride == 2 * LANES, "a set is two vectors");
                let end = 1u32 << of.last_way;
                let (mut n, mut new, mut merged) = (0, 0, 0);
                let keys = keys.sets.iter().zip(keys.words).zip(keys.seconds).zip(bits);
                for (k, (((&set, &word), &fill), &bit)) in keys.enumerate() {
                    // SAFETY: as above; the lowest bit of `found | end` is of a way.
                    unsafe {
                        let set = of.words.add(set as usize * 2 * LANES);
                        let behind = set.add(LANES);
                        let old = [$load(set.cast()), $load(behind.cast())];
                        let front = $splat(word as i32);
                        let found = u32::from($equal(old[0], front));
                        let last = *set.add(of.last_way as usize);
                        let at = (found | end).trailing_zeros();
                        let its = if found == 0 { 0 } else { *behind.add(at as usize) };
                        let is_hit = its & bit != 0;
                        let bits = if is_hit { its } else { its | fill };
                        let moved = up_to(found | end) as $mask;
                        $store(set.cast(), whole($push::<$last>(old[0], moved, old[0], front)));
                        $store(behind.cast(), whole($push::<$last>(old[1], moved, old[1], $splat(bits as i32))));
                        *missed.get_unchecked_mut(n) = k as u16;
                        n += usize::from(!is_hit);
                        merged += usize::from(!is_hit & (found != 0));
                        new += usize::from((found == 0) & (last == EMPTY_TAG));
                    }
                }
                LookupCounts { missed: n, evicted: n - new - merged, merged }
            }
        }
    };
}

of_one_vector!(
    x,
    __m128i,
    xmm_reg,
    __mmask8,
    _mm_loadu_si128,
    _mm_storeu_si128,
    _mm_set1_epi32,
    _mm_cmpeq_epi32_mask,
    _mm_mask_alignr_epi32,
    3
);
of_one_vector!(
    y,
    __m256i,
    ymm_reg,
    __mmask8,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_set1_epi32,
    _mm256_cmpeq_epi32_mask,
    _mm256_mask_alignr_epi32,
    7
);
of_one_vector!(
    z,
    __m512i,
    zmm_reg,
    __mmask16,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_set1_epi32,
    _mm512_cmpeq_epi32_mask,
    _mm512_mask_alignr_epi32,
    15
);

/// Bits up to the lowest that is set, and that.
#[inline]
#[target_feature(enable = "bmi1")]
fn up_to(bits: u32) -> u32 {
    bits ^ bits.wrapping_sub(1)
}

/// Brings a set nearer.
#[inline]
#[target_feature(enable = "avx512f")]
fn fetch(of: &SetWords, set: u32) {
    _mm_prefetch::<_MM_HINT_T0>(of.words.wrapping_add(set as usize * of.stride).cast());
}

/// Keys that are compared with the one set at once: what the first of them move is reckoned with afterwards, so that
/// the way from set to set is shorter than one key after the other.
const TOGETHER: usize = 4;

/// The one set of at most `16 * V` lanes, which stays in registers.
///
/// # Safety
/// The processor has [`SimdLevel::Avx512`]; [`checked`] sets, one, of so many lanes, all but the last vector whole.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
unsafe fn one_set<const V: usize>(of: &SetWords, keys: LookupKeys<'_>, missed: &mut [u16]) -> LookupCounts {
    let empty = _mm512_set1_epi32(EMPTY_TAG as i32);
    // Of a set of less than one vector.
    let all: __mmask16 = if of.seconds < 16 { (1 << of.seconds) - 1 } else { !0 };
    // SAFETY: `checked`: there are so many words.
    let mut lanes: [__m512i; V] =
        std::array::from_fn(|i| unsafe { _mm512_mask_loadu_epi32(empty, all, of.words.add(16 * i).cast()) });
    let valid: u32 = lanes.iter().map(|&lane| _mm512_cmpneq_epi32_mask(lane, empty).count_ones()).sum();
    let room = (of.last_way + 1 - valid) as usize;
    let mut n = 0;
    let (together, rest) = keys.words.as_chunks::<TOGETHER>();
    for (chunk, words) in together.iter().enumerate() {
        let found = step(&mut lanes, words, of.last_way);
        for (k, found) in found.into_iter().enumerate() {
            // SAFETY: `checked`: there are no more misses than keys.
            unsafe { *missed.get_unchecked_mut(n) = (TOGETHER * chunk + k) as u16 };
            n += usize::from(!found);
        }
    }
    for (k, &word) in rest.iter().enumerate() {
        let [found] = step(&mut lanes, &[word], of.last_way);
        // SAFETY: as above.
        unsafe { *missed.get_unchecked_mut(n) = (TOGETHER * together.len() + k) as u16 };
        n += usize::from(!found);
    }
    for (i, &lane) in lanes.iter().enumerate() {
        // SAFETY: as at the start.
        unsafe { _mm512_mask_storeu_epi32(of.words.add(16 * i).cast(), all, lane) };
    }
    // Invalid ways are filled first.
    LookupCounts { missed: n, evicted: n.saturating_sub(room), merged: 0 }
}

/// Asks the lanes of a set for some words, one after the other: which were there?
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
fn step<const V: usize, const K: usize>(lanes: &mut [__m512i; V], words: &[u32; K], last_way: u32) -> [bool; K] {
    let fronts = words.map(|word| _mm512_set1_epi32(word as i32));
    let mut found = fronts.map(|front| {
        let mut bits = 0;
        for (i, &lane) in lanes.iter().enumerate() {
            bits |= u64::from(_mm512_cmpeq_epi32_mask(lane, front)) << (16 * i);
        }
        bits
    });
    for k in 0..K {
        let until = found[k] | 1 << last_way;
        let moved = until ^ until.wrapping_sub(1);
        for later in k + 1..K {
            // Where the later one's word is after this move.
            let its = found[later];
            found[later] = its & !moved | its << 1 & moved | u64::from(words[k] == words[later]);
        }
        let mut before = fronts[k];
        for (i, lane) in lanes.iter_mut().enumerate() {
            let old = *lane;
            *lane = _mm512_mask_alignr_epi32::<15>(old, (moved >> (16 * i)) as __mmask16, old, before);
            before = old;
        }
    }
    found.map(|bits| bits != 0)
}
