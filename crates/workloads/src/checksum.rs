//! The checksum that workloads give of their results.

/// Takes one more value into a checksum.
#[inline(always)]
pub fn fold(sum: u64, value: u64) -> u64 {
    (sum.rotate_left(5) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15) // 2^64 over the golden ratio
}
