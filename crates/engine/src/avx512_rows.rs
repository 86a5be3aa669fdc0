//! Looking through rows and bytes in AVX-512. Only where the processor has
//! [`SimdLevel::Avx512`](crate::lookup::SimdLevel).

use std::arch::x86_64::*;

use lookaside_trace::Kind;

/// `row_groups::group_rows`, over all but the last few rows: how many groups began, and the row to go on from.
pub(crate) fn group_rows(addrs: &[u64], kinds: &[Kind], shift: u32, starts: &mut [u16]) -> (usize, usize) {
    assert!(addrs.len() == kinds.len() && starts.len() >= addrs.len());
    // SAFETY: the caller has seen that the processor has the instructions.
    unsafe { group_wide(addrs, kinds, shift, starts) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
fn group_wide(addrs: &[u64], kinds: &[Kind], shift: u32, starts: &mut [u16]) -> (usize, usize) {
    let shift = _mm_cvtsi32_si128(shift as i32);
    let (mut n, mut row) = (1, 1);
    let mut numbers = _mm512_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    while row + 16 <= addrs.len() {
        // SAFETY: from the row before this to the 16th from here all are there; a kind is one byte; there were at most
        // as many starts as rows, so that there is room for 16 more.
        unsafe {
            let differ = |row: usize| {
                let [here, before] =
                    [row, row - 1].map(|row| _mm512_loadu_si512(addrs.as_ptr().add(row).cast::<__m512i>()));
                let difference = _mm512_srl_epi64(_mm512_xor_si512(here, before), shift);
                u16::from(_mm512_test_epi64_mask(difference, difference))
            };
            let [here, before] = [row, row - 1].map(|row| _mm_loadu_si128(kinds.as_ptr().add(row).cast::<__m128i>()));
            let found = differ(row) | differ(row + 8) << 8 | _mm_cmpneq_epi8_mask(here, before);
            let its = _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(found, numbers));
            _mm256_storeu_si256(starts.as_mut_ptr().add(n).cast(), its);
            n += found.count_ones() as usize;
        }
        row += 16;
        numbers = _mm512_add_epi32(numbers, _mm512_set1_epi32(16));
    }
    (n, row)
}

/// `list_lookup::collect`.
pub(crate) fn collect(bytes: &[u8], wanted: u8, list: &mut [u16]) -> usize {
    assert!(list.len() >= bytes.len());
    // SAFETY: the caller has seen that the processor has the instructions.
    unsafe { collect_wide(bytes, wanted, list) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
fn collect_wide(bytes: &[u8], wanted: u8, list: &mut [u16]) -> usize {
    let mut n = 0;
    let (whole, rest) = bytes.as_chunks::<16>();
    let mut numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let wanted_all = _mm_set1_epi8(wanted as i8);
    for chunk in whole {
        // SAFETY: 16 bytes; at most as many numbers were written as bytes were read before, so that there is room
        // for 16 more.
        unsafe {
            let found = _mm_cmpeq_epi8_mask(_mm_loadu_si128(chunk.as_ptr().cast()), wanted_all);
            let its = _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(found, numbers));
            _mm256_storeu_si256(list.as_mut_ptr().add(n).cast(), its);
            n += found.count_ones() as usize;
        }
        numbers = _mm512_add_epi32(numbers, _mm512_set1_epi32(16));
    }
    for (i, &byte) in rest.iter().enumerate() {
        list[n] = (16 * whole.len() + i) as u16;
        n += usize::from(byte == wanted);
    }
    n
}
