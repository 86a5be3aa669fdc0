//! The paper's colours of more than a page: runs of contiguous pages in the reserved sets.

use std::collections::{BTreeMap, VecDeque};

use lookaside_machine::{ColorLevel, Share};

use super::error::HeapError;

/// Where each of the N rows of R contiguous pages lies: its pages in each set. One in each of the R sets where pages that
/// follow each other lie in sets that do (chapter 3); where a level coalesces, several pages share a set. No set gets
/// more pages than it has ways, of all rows together.
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
