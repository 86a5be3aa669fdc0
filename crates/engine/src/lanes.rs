//! Four 32-bit lanes: the few operations on them that sets in order of use are made of (`lru.rs`).
//!
//! On x86-64 they are SSE2 instructions, which every such processor has; elsewhere plain arrays, which the tests
//! hold the instructions to.

pub(crate) use imp::Lanes;

/// Lanes in a [`Lanes`].
pub(crate) const LANES: usize = 4;

#[cfg(target_arch = "x86_64")]
mod imp {
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_andnot_si128, _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_cmpgt_epi32,
        _mm_cvtsi128_si32, _mm_movemask_ps, _mm_or_si128, _mm_set1_epi32, _mm_setr_epi32, _mm_slli_si128,
        _mm_srli_si128,
    };

    /// Four lanes.
    #[derive(Clone, Copy, Debug)]
    #[repr(transparent)]
    pub(crate) struct Lanes(__m128i);

    impl Lanes {
        /// The same value in all lanes.
        #[inline(always)]
        pub(crate) fn splat(value: u32) -> Self {
            // SAFETY: SSE2 is part of x86-64 (here and below).
            Self(unsafe { _mm_set1_epi32(value as i32) })
        }

        /// These values, lane 0 first.
        #[inline(always)]
        pub(crate) fn new(values: [u32; 4]) -> Self {
            let [a, b, c, d] = values.map(|value| value as i32);
            // SAFETY: as above.
            Self(unsafe { _mm_setr_epi32(a, b, c, d) })
        }

        /// Bit i: lane i of both is equal.
        #[inline(always)]
        pub(crate) fn equal(self, other: Self) -> u32 {
            // SAFETY: as above.
            unsafe { _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(self.0, other.0))) as u32 }
        }

        /// All bits of the lanes that are greater than those of `other`, as signed numbers.
        #[inline(always)]
        pub(crate) fn greater(self, other: Self) -> Self {
            // SAFETY: as above.
            Self(unsafe { _mm_cmpgt_epi32(self.0, other.0) })
        }

        /// The last lane of `before`, then lanes 0 to 2 of this.
        #[inline(always)]
        pub(crate) fn moved_up(self, before: Self) -> Self {
            // SAFETY: as above.
            Self(unsafe { _mm_or_si128(_mm_slli_si128::<4>(self.0), _mm_srli_si128::<12>(before.0)) })
        }

        /// All bits of both.
        #[inline(always)]
        pub(crate) fn or(self, other: Self) -> Self {
            // SAFETY: as above.
            Self(unsafe { _mm_or_si128(self.0, other.0) })
        }

        /// Lanes of `yes` where the mask has all bits, of `no` where it has none.
        #[inline(always)]
        pub(crate) fn select(mask: Self, yes: Self, no: Self) -> Self {
            // SAFETY: as above.
            Self(unsafe { _mm_or_si128(_mm_and_si128(mask.0, yes.0), _mm_andnot_si128(mask.0, no.0)) })
        }

        /// All lanes.
        #[inline]
        pub(crate) fn to_array(self) -> [u32; 4] {
            // SAFETY: as above.
            unsafe {
                [
                    _mm_cvtsi128_si32(self.0) as u32,
                    _mm_cvtsi128_si32(_mm_srli_si128::<4>(self.0)) as u32,
                    _mm_cvtsi128_si32(_mm_srli_si128::<8>(self.0)) as u32,
                    _mm_cvtsi128_si32(_mm_srli_si128::<12>(self.0)) as u32,
                ]
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
use portable as imp;

#[cfg(any(test, not(target_arch = "x86_64")))]
#[cfg_attr(target_arch = "x86_64", allow(dead_code))]
mod portable {
    /// Four lanes.
    #[derive(Clone, Copy, Debug)]
    #[repr(C, align(16))]
    pub(crate) struct Lanes([u32; 4]);

    impl Lanes {
        /// The same value in all lanes.
        #[inline(always)]
        pub(crate) fn splat(value: u32) -> Self {
            Self([value; 4])
        }

        /// These values, lane 0 first.
        #[inline(always)]
        pub(crate) fn new(values: [u32; 4]) -> Self {
            Self(values)
        }

        /// Bit i: lane i of both is equal.
        #[inline(always)]
        pub(crate) fn equal(self, other: Self) -> u32 {
            (0..4).fold(0, |bits, i| bits | u32::from(self.0[i] == other.0[i]) << i)
        }

        /// All bits of the lanes that are greater than those of `other`, as signed numbers.
        #[inline(always)]
        pub(crate) fn greater(self, other: Self) -> Self {
            Self(std::array::from_fn(|i| if self.0[i] as i32 > other.0[i] as i32 { u32::MAX } else { 0 }))
        }

        /// The last lane of `before`, then lanes 0 to 2 of this.
        #[inline(always)]
        pub(crate) fn moved_up(self, before: Self) -> Self {
            Self([before.0[3], self.0[0], self.0[1], self.0[2]])
        }

        /// All bits of both.
        #[inline(always)]
        pub(crate) fn or(self, other: Self) -> Self {
            Self(std::array::from_fn(|i| self.0[i] | other.0[i]))
        }

        /// Lanes of `yes` where the mask has all bits, of `no` where it has none.
        #[inline(always)]
        pub(crate) fn select(mask: Self, yes: Self, no: Self) -> Self {
            Self(std::array::from_fn(|i| mask.0[i] & yes.0[i] | !mask.0[i] & no.0[i]))
        }

        /// All lanes.
        #[inline]
        pub(crate) fn to_array(self) -> [u32; 4] {
            self.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{imp, portable};
    use proptest::prelude::*;

    fn lanes() -> impl Strategy<Value = [u32; 4]> {
        proptest::array::uniform4(prop_oneof![0..4u32, Just(u32::MAX), any::<u32>()])
    }

    proptest! {
        #[test]
        fn instructions_do_what_the_arrays_do(a in lanes(), b in lanes(), value in any::<u32>()) {
            let (fast, slow) = ([a, b].map(imp::Lanes::new), [a, b].map(portable::Lanes::new));
            prop_assert_eq!(fast[0].to_array(), a);
            prop_assert_eq!(imp::Lanes::splat(value).to_array(), [value; 4]);
            prop_assert_eq!(fast[0].equal(fast[1]), slow[0].equal(slow[1]));
            prop_assert_eq!(fast[0].moved_up(fast[1]).to_array(), slow[0].moved_up(slow[1]).to_array());
            prop_assert_eq!(fast[0].or(fast[1]).to_array(), slow[0].or(slow[1]).to_array());
            let (mask, slow_mask) = (fast[0].greater(fast[1]), slow[0].greater(slow[1]));
            prop_assert_eq!(mask.to_array(), slow_mask.to_array());
            let selected = imp::Lanes::select(mask, fast[0], fast[1]);
            prop_assert_eq!(selected.to_array(), portable::Lanes::select(slow_mask, slow[0], slow[1]).to_array());
        }
    }
}
