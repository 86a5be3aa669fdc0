//! Groups consecutive accesses of one kind to one range of addresses: the batch path treats each group as one item.

use lookaside_trace::Kind;

use crate::lookup::SimdLevel;

#[cfg(target_arch = "x86_64")]
use crate::avx512_rows;

/// Rows that are looked through at once.
pub(crate) const MAX_ROWS: usize = 1 << 12;

/// First rows of groups, and where the last ends.
pub(crate) type GroupStarts = [u16; MAX_ROWS + 1];

/// Where groups of accesses of one kind to one range of `2^shift` bytes begin, and where the last ends: how many
/// groups.
pub(crate) fn group_rows(
    simd: SimdLevel,
    addrs: &[u64],
    kinds: &[Kind],
    shift: u32,
    starts: &mut GroupStarts,
) -> usize {
    let len = addrs.len().min(kinds.len()).min(MAX_ROWS);
    let (addrs, kinds) = (&addrs[..len], &kinds[..len]);
    starts[0] = 0;
    let (mut n, mut row) = (len.min(1), 1);
    #[cfg(target_arch = "x86_64")]
    if simd == SimdLevel::Avx512 && len > 0 {
        (n, row) = avx512_rows::group_rows(addrs, kinds, shift, starts);
    }
    let _ = simd;
    // Rows looked at together: often all of them are alike.
    const STEP: usize = 8;
    let differs = |row: usize| (addrs[row] ^ addrs[row - 1]) >> shift | u64::from(kinds[row] != kinds[row - 1]);
    while row < len {
        let to = len.min(row + STEP);
        if (row..to).fold(0, |any, row| any | differs(row)) != 0 {
            for row in row..to {
                starts[n] = row as u16;
                n += usize::from(differs(row) != 0);
            }
        }
        row = to;
    }
    starts[n] = len as u16;
    n
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn groups_are_of_one_kind_and_range(rows in proptest::collection::vec((0..5u64, 0..3u8), 0..90), shift in 0..3u32) {
            let addrs: Vec<u64> = rows.iter().map(|row| row.0).collect();
            let kinds: Vec<Kind> = rows.iter().map(|row| [Kind::Load, Kind::Load, Kind::Fetch][row.1 as usize]).collect();
            let mut expected: Vec<u16> = (0..rows.len())
                .filter(|&i| i == 0 || addrs[i] >> shift != addrs[i - 1] >> shift || kinds[i] != kinds[i - 1])
                .map(|i| i as u16)
                .collect();
            let groups = expected.len();
            expected.push(rows.len() as u16);
            for simd in [SimdLevel::Baseline, SimdLevel::detect()] {
                let mut starts = [0; MAX_ROWS + 1];
                prop_assert_eq!(group_rows(simd, &addrs, &kinds, shift, &mut starts), groups);
                prop_assert_eq!(&starts[..=groups], &expected[..]);
            }
        }
    }
}
