//! Finds pages that map to one set, where nothing is known of the set index.
//!
//! The pages `x ^ v`, where `v` runs through a space of `2^d` vectors, load every set that they reach alike: with rank
//! `r` of the index on the space, `2^(d - r)` pages each. So a space that is large enough overloads all its sets at
//! once, and the misses stand out whatever its size. A hyperplane of the space has half of the pages, and still loads
//! its sets as much exactly if the index loses a rank on it. From one such hyperplane to the next the space shrinks
//! to one on which the index is constant: its pages all meet in one set.

use lookaside_stats::median;

use crate::bench::{ChainBench, Halt};
use crate::gf2;
use crate::tlb::busy_core::{least, rest};
use crate::tlb::core_use::CoreUse;
use crate::tlb::level_meter::LevelMeter;
use crate::tlb::set_capacity::ways;

/// Most pages of a crowd: they overload 8192 entries four times over.
const MOST_PAGES: usize = 1 << 15;
/// Hyperplanes tried at random where all of them are too many: at least one in `2 * ways` of them will do.
const TRIES: usize = 600;
/// Spaces of up to this dimension have all their hyperplanes tried.
const ALL: usize = 8;

/// log2 of the pages that are looked for in one set by [`lowest_one_set`].
const ONE_SET_LOG2: std::ops::RangeInclusive<u32> = 2..=7;
/// Windows of bits running whose pages have to be too many: from the first on no bit chooses the set.
const WINDOWS_RUNNING: u32 = 3;
/// Looks that all have to show that they are too many, and the share of them that is out in each: of twice as many as
/// fit in one set half is at least.
const ONE_SET_LOOKS: usize = 24;
/// See [`ONE_SET_LOOKS`].
const CROWDED_SHARE: f64 = 0.4;

/// Fewest misses an access that crowds: a page more than fits, of 33, under random replacement, which misses least,
/// is 0.06.
const CROWDED: f64 = 0.04;
/// A space is larger than need be where half of it still has more than this part of its share of misses.
const SPARE_SHARE: f64 = 0.1;
/// A hyperplane loads its sets as the whole does where it has more than this part of the whole's share. Half as many
/// pages in each set have less: no spare is left. All of them may have this little: under FIFO and tree-PLRU, a circle
/// can end in states that miss seldom.
const ALIKE: f64 = 0.2;
/// Looks at hyperplanes at random, and how many of them are believed.
const SPARE_LOOKS: (usize, usize) = (6, 4);
/// Looks at a hyperplane that have to agree: a wrong step could not be taken back.
const SURELY: usize = 3;
/// Times that pages are walked through at random until they are at rest.
const REST: usize = 3;
/// Spaces of up to this dimension have all their hyperplanes tried twice.
const AGAIN: usize = 7;
/// As [`ALIKE`], where a neighbour makes full sets miss: those have less than this part of the misses of sets with
/// twice the pages, at the best of times. Half of these at least miss whatever the policy, and a walk takes less the
/// fewer tables there are (0.29 to 0.35 seen on Zen 5, and full sets up to 0.2).
const ALIKE_AT_BEST: f64 = 0.25;

/// A part of `crowd` (bits of the page number), whose pages overload the sets they reach, that lies in one set and
/// overloads it; and the bits out of which it was taken, of which it is all that does not change the set. The level
/// knows that then too.
pub fn one_set(bench: &mut ChainBench<'_>, level: &mut LevelMeter, crowd: &[u64]) -> Result<(Vec<u64>, u64), Halt> {
    let mut basis = crowd.to_vec();
    let (mut share, alike) = match level.core {
        CoreUse::Own => (fewest_missing(bench, level, &mut basis)?, ALIKE),
        CoreUse::Shared => (fewest_at_best(bench, level, &mut basis)?, ALIKE_AT_BEST),
    };
    // Then those hyperplanes that have half of the sets, with all their pages.
    let window = basis.iter().fold(0, |all, bit| all | bit);
    let bits = bench.bits();
    while let Some(half) = smaller(bench, level, &basis, (alike * share).max(CROWDED))? {
        basis = half;
        level.know_within(window, &basis, bits);
        share = usual_share(bench, level, &basis)?;
    }
    level.know_within(window, &basis, bits);
    Ok((basis, window))
}

/// Bits in a row, as few and as low as can be, whose pages all meet in one set and are too many for it, where walks are
/// counted: indexes known take some of the lower bits only. Beside a neighbour who takes entries there is no space of
/// pages that fills several sets and does not miss; of one set's pages there is at some time.
pub fn lowest_one_set(bench: &mut ChainBench<'_>, level: &LevelMeter) -> Result<Option<Vec<u64>>, Halt> {
    for log2 in ONE_SET_LOG2 {
        let mut running = 0;
        for low in 0..=bench.bits().saturating_sub(log2) {
            let basis: Vec<u64> = (low..low + log2).map(|bit| 1 << bit).collect();
            running = if always_overloads(bench, level, &basis)? { running + 1 } else { 0 };
            if running < WINDOWS_RUNNING {
                continue;
            }
            let basis: Vec<u64> = basis.iter().map(|bit| bit >> (WINDOWS_RUNNING - 1)).collect();
            if ways(bench, level, &basis)?.is_some() {
                return Ok(Some(basis));
            }
            break;
        }
    }
    Ok(None)
}

/// Whether of these pages a good part is out in each of many looks.
fn always_overloads(bench: &mut ChainBench<'_>, level: &LevelMeter, basis: &[u64]) -> Result<bool, Halt> {
    for _ in 0..ONE_SET_LOOKS {
        let start = bench.page();
        let pages: Vec<u64> = gf2::span(basis).into_iter().map(|v| v ^ start).collect();
        if level.misses_of_crowd(bench, &pages)? <= CROWDED_SHARE * pages.len() as f64 {
            return Ok(false);
        }
        rest(bench, 0)?;
    }
    Ok(true)
}

/// As few pages as crowd all sets that are reached; their share of misses.
fn fewest_missing(bench: &mut ChainBench<'_>, level: &LevelMeter, basis: &mut Vec<u64>) -> Result<f64, Halt> {
    // What only seemed to crowd takes twice as many, as far as they go.
    while !stays_crowded(bench, level, basis)? {
        let next = basis.iter().fold(0, |all, bit| all | bit).ilog2() + 1;
        if next >= bench.bits() || 2usize << basis.len() > bench.max_pages().min(MOST_PAGES) {
            break;
        }
        basis.push(1 << next);
    }
    let mut share = usual_share(bench, level, basis)?;
    // Nearly all hyperplanes leave half of the pages in each set.
    while basis.len() > 1 {
        let least = (SPARE_SHARE * share).max(CROWDED);
        let mut crowded = 0;
        for _ in 0..SPARE_LOOKS.0 {
            let half = gf2::hyperplane(basis, 1 + bench.rng.index((1 << basis.len()) - 1) as u64);
            crowded += usize::from(share_of_misses(bench, level, &half)? > least);
        }
        if crowded < SPARE_LOOKS.1 {
            break;
        }
        let half = &basis[..basis.len() - 1];
        let share_of_half = usual_share(bench, level, half)?;
        if share_of_half <= least || !stays_crowded(bench, level, half)? {
            break;
        }
        basis.pop();
        share = share_of_half;
    }
    Ok(share)
}

/// The same where a neighbour makes full sets miss.
fn fewest_at_best(bench: &mut ChainBench<'_>, level: &LevelMeter, basis: &mut Vec<u64>) -> Result<f64, Halt> {
    let mut share = usual_share(bench, level, basis)?;
    while basis.len() > 1 && always_crowded(bench, level, &basis[..basis.len() - 1], ALIKE_AT_BEST * share)? {
        basis.pop();
        share = usual_share(bench, level, basis)?;
    }
    Ok(share)
}

/// A hyperplane whose pages have this share of misses.
fn smaller(
    bench: &mut ChainBench<'_>,
    level: &LevelMeter,
    basis: &[u64],
    share: f64,
) -> Result<Option<Vec<u64>>, Halt> {
    for _ in 0..if basis.len() <= AGAIN { 2 } else { 1 } {
        for functional in candidates(bench, basis.len()) {
            let half = gf2::hyperplane(basis, functional);
            if match level.core {
                CoreUse::Own => surely_crowded(bench, level, &half, share)?,
                CoreUse::Shared => always_crowded(bench, level, &half, share)?,
            } {
                return Ok(Some(half));
            }
        }
    }
    Ok(None)
}

fn surely_crowded(bench: &mut ChainBench<'_>, level: &LevelMeter, basis: &[u64], share: f64) -> Result<bool, Halt> {
    let (mut yes, mut no) = (0, 0);
    while yes < SURELY && no < SURELY {
        let seen = share_of_misses(bench, level, basis)?;
        if seen < CROWDED {
            return Ok(false);
        }
        if seen < share {
            no += 1;
        } else {
            yes += 1;
        }
    }
    Ok(yes == SURELY && stays_crowded(bench, level, basis)?)
}

/// Whether pages have this share of misses even at the best of times.
fn always_crowded(bench: &mut ChainBench<'_>, level: &LevelMeter, basis: &[u64], share: f64) -> Result<bool, Halt> {
    Ok(least(bench, share, |bench| share_of_misses(bench, level, basis))? >= share)
}

/// Whether pages that seem to crowd their sets do so after they had time to come to rest.
fn stays_crowded(bench: &mut ChainBench<'_>, level: &LevelMeter, basis: &[u64]) -> Result<bool, Halt> {
    let pages = coset(bench, level, basis);
    let look = level.look_at_crowd(bench, &pages)?;
    for _ in 0..REST {
        look.settle(bench)?;
        if look.misses(bench)? / (pages.len() as f64) < CROWDED {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The median of several looks.
fn usual_share(bench: &mut ChainBench<'_>, level: &LevelMeter, basis: &[u64]) -> Result<f64, Halt> {
    let mut shares = [0.0; SURELY];
    for share in &mut shares {
        *share = share_of_misses(bench, level, basis)?;
    }
    Ok(median(shares).unwrap_or_default())
}

/// Misses a page and round; of several cosets where there is a level above to be flooded: each is in sets of its own.
fn share_of_misses(bench: &mut ChainBench<'_>, level: &LevelMeter, basis: &[u64]) -> Result<f64, Halt> {
    let pages = coset(bench, level, basis);
    Ok(level.misses_of_crowd(bench, &pages)? / pages.len() as f64)
}

fn coset(bench: &mut ChainBench<'_>, level: &LevelMeter, basis: &[u64]) -> Vec<u64> {
    let start = bench.page();
    let pages: Vec<u64> = gf2::span(basis).into_iter().map(|v| v ^ start).collect();
    level.copied(bench, &pages).0
}

/// Functionals in the order in which they are tried: real indexes take single bits and sums of two.
fn candidates(bench: &mut ChainBench<'_>, dimension: usize) -> Vec<u64> {
    let mut list: Vec<u64> = (0..dimension).map(|i| 1 << i).collect();
    for i in 0..dimension {
        list.extend((0..i).map(|j| 1 << i | 1 << j));
    }
    if dimension <= ALL {
        list.extend((1..1u64 << dimension).filter(|f| f.count_ones() > 2));
    } else {
        list.extend((0..TRIES).map(|_| 1 + bench.rng.index((1 << dimension) - 1) as u64));
    }
    list
}
