//! Groups consecutive accesses of one kind to one range of addresses: each group goes through the hardware as one item.

use lookaside_trace::Kind;

use crate::classes::KINDS;
use crate::lookup::SimdLevel;

#[cfg(target_arch = "x86_64")]
use crate::avx512_rows;

/// Rows that are looked through at once.
pub(crate) const MAX_ROWS: usize = 1 << 12;

/// First rows of groups, and where the last ends.
pub(crate) type GroupStarts = [u16; MAX_ROWS + 1];

/// Which accesses go into one group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AlikeRule {
    /// log2 bytes of the range that all of them are to.
    pub(crate) shift: u32,
    /// By kind: each is a group of its own.
    pub(crate) apart: [bool; KINDS],
}

/// Where groups of accesses of one kind to one range begin, and where the last ends: how many groups.
pub(crate) fn group_rows(
    simd: SimdLevel,
    addrs: &[u64],
    kinds: &[Kind],
    alike: AlikeRule,
    starts: &mut GroupStarts,
) -> usize {
    let shift = alike.shift;
    let len = addrs.len().min(kinds.len()).min(MAX_ROWS);
    let (addrs, kinds) = (&addrs[..len], &kinds[..len]);
    starts[0] = 0;
    let (mut n, mut row) = (len.min(1), 1);
    let differs = |row: usize| (addrs[row] ^ addrs[row - 1]) >> shift | u64::from(kinds[row] != kinds[row - 1]);
    if [Kind::Load, Kind::Store, Kind::Fetch].into_iter().any(|kind| alike.apart[kind as usize] && has(kinds, kind)) {
        for (row, &kind) in kinds.iter().enumerate().skip(1) {
            starts[n] = row as u16;
            n += usize::from(differs(row) != 0 || alike.apart[kind as usize]);
        }
        starts[n] = len as u16;
        return n;
    }
    #[cfg(target_arch = "x86_64")]
    if simd == SimdLevel::Avx512 && len > 0 {
        (n, row) = avx512_rows::group_rows(addrs, kinds, shift, starts);
    }
    let _ = simd;
    // Rows looked at together: often all of them are alike.
    const STEP: usize = 8;
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

/// Is some access of this kind? All are looked at, in vectors.
fn has(kinds: &[Kind], kind: Kind) -> bool {
    kinds.iter().fold(0u8, |any, &its| any | u8::from(its == kind)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn groups_are_of_one_kind_and_range(
            rows in proptest::collection::vec((0..5u64, 0..3u8), 0..90),
            shift in 0..3u32,
            fetches_apart in any::<bool>(),
        ) {
            let alike = AlikeRule { shift, apart: [false, false, fetches_apart] };
            let addrs: Vec<u64> = rows.iter().map(|row| row.0).collect();
            let kinds: Vec<Kind> = rows.iter().map(|row| [Kind::Load, Kind::Load, Kind::Fetch][row.1 as usize]).collect();
            let mut expected: Vec<u16> = (0..rows.len())
                .filter(|&i| i == 0 || addrs[i] >> shift != addrs[i - 1] >> shift || kinds[i] != kinds[i - 1]
                    || alike.apart[kinds[i] as usize])
                .map(|i| i as u16)
                .collect();
            let groups = expected.len();
            expected.push(rows.len() as u16);
            for simd in [SimdLevel::Baseline, SimdLevel::detect()] {
                let mut starts = [0; MAX_ROWS + 1];
                prop_assert_eq!(group_rows(simd, &addrs, &kinds, alike, &mut starts), groups);
                prop_assert_eq!(&starts[..=groups], &expected[..]);
            }
        }
    }
}
