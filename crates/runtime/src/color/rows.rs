//! The paper's colours of more than a page: runs of contiguous pages in the reserved sets.

use std::collections::{BTreeMap, VecDeque};

use lookaside_machine::{ColorLevel, Share};

use super::error::HeapError;

/// Where each of the N rows of R contiguous pages lies: its pages in each set. One in each of the R sets where pages
/// that follow each other lie in sets that do (chapter 3); where a level coalesces, several pages share a set. No set
/// gets more pages than it has ways, of all rows together.
///
/// # Errors
/// So many rows do not exist; the nearest R for which they do.
pub(super) fn rows(level: &ColorLevel, reserved_sets: u32) -> Result<Vec<Vec<Share>>, HeapError> {
    let found = pack(level, reserved_sets);
    if found.len() == level.ways as usize {
        return Ok(found.iter().map(|row| shares(level, row)).collect());
    }
    let fits = |reserved: &u32| pack(level, *reserved).len() == level.ways as usize;
    let below = (1..reserved_sets).rev().find(fits);
    let above = (reserved_sets + 1..=level.sets).find(fits);
    let nearest: Vec<String> = [below, above].into_iter().flatten().map(|reserved| reserved.to_string()).collect();
    Err(HeapError::Asked(format!(
        "{reserved_sets} reserved sets of {} have no room for {} runs of {reserved_sets} contiguous pages; reserve {}",
        level.name,
        level.ways,
        if nearest.is_empty() { "none".into() } else { nearest.join(" or ") }
    )))
}

/// Pages in each set.
type Row = BTreeMap<u32, u32>;

/// As many rows as there are, at most N: the first runs by page number that the sets have room for.
fn pack(level: &ColorLevel, reserved_sets: u32) -> Vec<Row> {
    let mut left = vec![level.ways; reserved_sets as usize];
    let mut rows: Vec<Row> = Vec::new();
    let mut run: VecDeque<u32> = VecDeque::new();
    // A page takes a way, so that after N periods no set has room.
    for vpn in 0..period(level) * u64::from(level.ways) {
        let set = level.set_of(vpn);
        // What of the run must end for this page to follow: all where its set is not reserved.
        while left.get(set as usize).is_none_or(|&ways| ways == 0) {
            let Some(first) = run.pop_front() else { break };
            left[first as usize] += 1;
        }
        match left.get_mut(set as usize) {
            Some(ways) if *ways > 0 => *ways -= 1,
            _ => continue,
        }
        run.push_back(set);
        if run.len() == reserved_sets as usize {
            let mut row = Row::new();
            run.drain(..).for_each(|set| *row.entry(set).or_default() += 1);
            rows.push(row);
        }
        if rows.len() == level.ways as usize {
            break;
        }
    }
    rows
}

/// Page numbers after which the sets come again.
fn period(level: &ColorLevel) -> u64 {
    let bits = level.index.masks(level.sets).iter().fold(0, |all, mask| all | mask);
    1u64.checked_shl(u64::BITS - bits.leading_zeros()).unwrap_or(u64::MAX)
}

/// A share for each number of pages.
fn shares(level: &ColorLevel, row: &Row) -> Vec<Share> {
    let mut sets: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    row.iter().for_each(|(&set, &pages)| sets.entry(pages).or_default().push(set));
    sets.into_iter().map(|(pages, sets)| Share { level: level.name.clone(), sets, ways: Some(pages) }).collect()
}

#[cfg(test)]
mod tests {
    use lookaside_machine::IndexFn;
    use proptest::prelude::*;

    use super::*;

    fn level(sets: u32, ways: u32, masks: &[u64]) -> ColorLevel {
        ColorLevel { name: "l1".into(), sets, ways, index: IndexFn::Masks(masks.to_vec()) }
    }

    /// The first runs that fit, each looked at from its begin to its end: pages in each set, by run.
    fn plain_rows(level: &ColorLevel, reserved_sets: u32, period: u64) -> Vec<Row> {
        let mut left = vec![level.ways; reserved_sets as usize];
        let (mut rows, mut at) = (Vec::new(), 0);
        while rows.len() < level.ways as usize && at + u64::from(reserved_sets) <= period * u64::from(level.ways) {
            let mut row = Row::new();
            (at..at + u64::from(reserved_sets)).for_each(|vpn| *row.entry(level.set_of(vpn)).or_default() += 1);
            let fits = |(&set, &pages): (&u32, &u32)| left.get(set as usize).is_some_and(|&ways| pages <= ways);
            if !row.iter().all(fits) {
                at += 1;
                continue;
            }
            row.iter().for_each(|(&set, &pages)| left[set as usize] -= pages);
            rows.push(row);
            at += u64::from(reserved_sets);
        }
        rows
    }

    #[test]
    fn the_sets_come_again_after_the_highest_bit_of_any_mask() {
        assert_eq!(period(&level(4, 1, &[1, 2])), 4);
        assert_eq!(period(&level(4, 1, &[1 << 9 | 1, 1 << 9 | 2])), 1024, "a bit of both");
        assert_eq!(period(&level(4, 1, &[1 << 3, 1 << 63])), u64::MAX);
        assert_eq!(period(&level(1, 4, &[])), 1);
    }

    /// Four pages in a row share a set of three ways: 1 to 4 and 6 sets have room for as many runs.
    #[test]
    fn the_nearest_numbers_of_sets_that_can_be_are_named() {
        let fours = level(8, 3, &[4, 8, 16]);
        let refused = |reserved| rows(&fours, reserved).expect_err("no such rows").to_string();
        let why = "5 reserved sets of l1 have no room for 3 runs of 5 contiguous pages; reserve 4 or 6";
        assert_eq!(refused(5), why);
        assert!(refused(7).ends_with("; reserve 6") && refused(8).ends_with("; reserve 6"), "nothing is above");
    }

    #[test]
    fn a_row_of_a_level_that_coalesces_has_neighbours_in_one_set() {
        let rows = rows(&level(8, 2, &[2, 4, 8]), 4).expect("two in a row share a set");
        let share = |sets: &[u32]| Share { level: "l1".into(), sets: sets.to_vec(), ways: Some(2) };
        assert_eq!(rows, [[share(&[0, 1])], [share(&[2, 3])]]);
    }

    #[test]
    fn a_row_has_a_share_for_each_number_of_pages() {
        let row = Row::from([(0, 1), (3, 2), (4, 1), (6, 3)]);
        let share = |sets: &[u32], ways| Share { level: "l1".into(), sets: sets.to_vec(), ways: Some(ways) };
        assert_eq!(shares(&level(8, 4, &[1, 2, 4]), &row), [share(&[0, 4], 1), share(&[3], 2), share(&[6], 3)]);
    }

    proptest! {
        #[test]
        fn rows_are_the_first_runs_that_fit(
            (bits, shift) in (0usize..5, 0u32..3), ways in 1u32..5, reserved in 1u32..=16,
            above in prop::collection::vec(0u64..1 << 7, 5),
        ) {
            // Upper bits at random; each mask has a low bit that no other has.
            let masks: Vec<u64> = (0..bits).map(|bit| (above[bit] & !31 | 1 << bit) << shift).collect();
            let level = level(1 << bits, ways, &masks);
            let reserved = reserved.min(level.sets);
            let packed = pack(&level, reserved);
            prop_assert_eq!(&packed, &plain_rows(&level, reserved, 1 << 9));
            let wanted = packed.len() == ways as usize;
            match rows(&level, reserved) {
                Ok(rows) => prop_assert!(wanted && rows.len() == packed.len()),
                Err(error) => {
                    prop_assert!(!wanted);
                    let can_be = |reserved: u32| pack(&level, reserved).len() == ways as usize;
                    let below = (1..reserved).rfind(|&other| can_be(other));
                    let above = (reserved + 1..=level.sets).find(|&other| can_be(other));
                    let nearest: Vec<String> = below.into_iter().chain(above).map(|other| other.to_string()).collect();
                    let nearest = if nearest.is_empty() { "none".to_string() } else { nearest.join(" or ") };
                    prop_assert!(error.to_string().ends_with(&format!("; reserve {nearest}")), "{}", error);
                }
            }
        }
    }
}
