//! The inner step of the set stacks with AVX2; its portable form is `LruStack::touch`.

use std::arch::x86_64::*;

use super::miss_curve::MAX_WAYS;

/// Whether this processor has what the functions here are compiled for.
pub fn available() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("popcnt")
}

/// Moves a page to the front of a stack; where it was found, `MAX_WAYS` = nowhere.
///
/// # Safety
/// The processor has AVX2 and BMI1.
#[inline]
#[target_feature(enable = "avx2,bmi1")]
pub unsafe fn to_front(stack: &mut [u32; MAX_WAYS], page: u32) -> usize {
    const { assert!(MAX_WAYS == 16) };
    // SAFETY: loads and stores of 8 words at 0 and 8 of an array of 16.
    unsafe {
        let at = stack.as_mut_ptr();
        let page = _mm256_set1_epi32(page as i32);
        let low = _mm256_loadu_si256(at.cast());
        let high = _mm256_loadu_si256(at.add(8).cast());
        let equal = |words| _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(words, page))) as u32;
        let found = equal(low) | equal(high) << 8;
        let position = (found | 1 << MAX_WAYS).trailing_zeros();
        let turn = _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6);
        let (low_turned, high_turned) =
            (_mm256_permutevar8x32_epi32(low, turn), _mm256_permutevar8x32_epi32(high, turn));
        let below_low = _mm256_blend_epi32::<1>(low_turned, page);
        let below_high = _mm256_blend_epi32::<1>(high_turned, low_turned);
        // Words after the position stay, the others come from below.
        let last = _mm256_set1_epi32(position as i32);
        let low_stays = _mm256_cmpgt_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), last);
        let high_stays = _mm256_cmpgt_epi32(_mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15), last);
        _mm256_storeu_si256(at.cast(), _mm256_blendv_epi8(below_low, low, low_stays));
        _mm256_storeu_si256(at.add(8).cast(), _mm256_blendv_epi8(below_high, high, high_stays));
        position as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lookaside_stats::SplitMix64;

    #[test]
    fn a_stack_is_a_list() {
        if !available() {
            return;
        }
        let mut rng = SplitMix64::new(5);
        let mut stack = [u32::MAX; MAX_WAYS];
        let mut list = stack.to_vec();
        for _ in 0..10_000 {
            let page = (rng.next_u64() % 24) as u32;
            let expected = list.iter().position(|&other| other == page).unwrap_or(MAX_WAYS);
            list.insert(0, page);
            list.remove((expected + 1).min(MAX_WAYS));
            // SAFETY: available.
            assert_eq!(unsafe { to_front(&mut stack, page) }, expected);
            assert_eq!(stack, list[..]);
        }
    }
}
