//! Pages that meet in one set, found in a set index that nothing is known of.
//!
//! The pages `x ^ v`, where `v` runs through a space of `2^d` vectors, load every set that they reach alike: with rank
//! `r` of the index on the space, `2^(d - r)` pages each. So a space that is large enough overloads all its sets at
//! once, and the misses stand out whatever its size. A hyperplane of the space has half of the pages, and still loads
//! its sets as much exactly if the index loses a rank on it. From one such hyperplane to the next the space shrinks
//! to one on which the index is constant: its pages all meet in one set.

use crate::bench::{Bench, Halt};
use crate::gf2;
use crate::tlb::level::Level;

/// Hyperplanes tried at random where all of them are too many: at least one in `2 * ways` of them will do.
const TRIES: usize = 600;
/// Dimensions of a space more than its pages need.
const SPARE: usize = 3;
/// Looks at pages that may fit.
const LOOKS: usize = 5;
/// Misses of a round from which on pages do not fit: at least one, less what the first level hides and times vary by.
const FITS: f64 = 0.7;
/// Misses that say so at the first look, or at the second.
const CLEAR: (f64, f64) = (0.3, 2.0);
/// Times that a look is repeated while it has few misses, and how many are few at least (else a third of the pages).
const SETTLE: u32 = 24;
/// See [`SETTLE`].
const SETTLING: f64 = 4.0;
/// Spaces of up to this dimension have all their hyperplanes tried.
const ALL: usize = 8;

/// A space overloads its sets where more than this share of the accesses to its pages misses.
const CROWDED: f64 = 0.1;

/// A hyperplane loads its sets as the whole does where its share of misses is more than this part of the whole's.
const ALIKE: f64 = 0.8;
/// The same, where a set has hardly more pages than fit; and in a second level, where foreign pages may come into sets
/// that are just full.
const HARDLY: (f64, f64) = (0.15, 0.4);

/// A part of `crowd`, whose pages overload the sets they reach, that lies in one set and overloads it.
pub fn one_set(bench: &mut Bench<'_>, level: &Level, crowd: &[u64]) -> Result<Vec<u64>, Halt> {
    let mut basis = crowd.to_vec();
    loop {
        let mut shares = Vec::new();
        for _ in 0..3 {
            shares.push(share_of_misses(bench, level, &basis)?);
        }
        shares.sort_by(f64::total_cmp);
        let share = shares[1].max(CROWDED);
        // First those that surely load their sets as the whole does; where there are none, by a lower bar, since sets
        // with just a page too many miss now more, now less.
        let (hardly, times) = if level.above.is_none() { (HARDLY.0, 3) } else { (HARDLY.1, 8) };
        let smaller = match smaller(bench, level, &basis, ALIKE * share, 3)? {
            None => smaller(bench, level, &basis, hardly * share, times)?,
            found => found,
        };
        match smaller {
            Some(half) => basis = half,
            None => return Ok(basis),
        }
    }
}

/// A hyperplane whose pages have this share of misses.
fn smaller(
    bench: &mut Bench<'_>,
    level: &Level,
    basis: &[u64],
    share: f64,
    times: u32,
) -> Result<Option<Vec<u64>>, Halt> {
    for functional in candidates(bench, basis.len()) {
        let half = gf2::hyperplane(basis, functional);
        if surely_crowded(bench, level, &half, share, times)? {
            return Ok(Some(half));
        }
    }
    Ok(None)
}

/// So many times: a wrong step could not be taken back.
fn surely_crowded(bench: &mut Bench<'_>, level: &Level, basis: &[u64], share: f64, times: u32) -> Result<bool, Halt> {
    for _ in 0..times {
        if share_of_misses(bench, level, basis)? < share {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Misses a page and round.
fn share_of_misses(bench: &mut Bench<'_>, level: &Level, basis: &[u64]) -> Result<f64, Halt> {
    let start = bench.page();
    let pages: Vec<u64> = gf2::span(basis).into_iter().map(|v| v ^ start).collect();
    Ok(level.misses(bench, &pages)? / pages.len() as f64)
}

/// Functionals in the order in which they are tried: real indexes take single bits and sums of two.
fn candidates(bench: &mut Bench<'_>, dimension: usize) -> Vec<u64> {
    let mut list: Vec<u64> = (0..dimension).map(|i| 1 << i).collect();
    for i in 0..dimension {
        list.extend((0..i).map(|j| 1 << i | 1 << j));
    }
    if dimension <= ALL {
        list.extend((1..1u64 << dimension).filter(|f| f.count_ones() > 2));
    } else {
        list.extend((0..TRIES).map(|_| 1 + bench.rng.below((1 << dimension) - 1) as u64));
    }
    list
}

/// How many pages of one set fit: the largest number without misses, if there is one below all of them.
/// `kernel` spans pages of one set, more than fit.
pub fn ways(bench: &mut Bench<'_>, level: &Level, kernel: &[u64]) -> Result<Option<u32>, Halt> {
    let all = 1u64 << kernel.len().min(12);
    let (mut fits, mut too_many) = (0u64, all);
    if !overloaded(bench, level, kernel, all)? {
        return Ok(None);
    }
    while too_many - fits > 1 {
        let middle = (fits + too_many) / 2;
        if overloaded(bench, level, kernel, middle)? {
            too_many = middle;
        } else {
            fits = middle;
        }
    }
    Ok(u32::try_from(fits).ok().filter(|&ways| ways > 0))
}

/// Whether `n` pages of one set miss: by at least one a round if they are too many, whatever the policy, since then
/// at least one is always out. Disturbances only add misses, and so do foreign pages that lie in the set by chance:
/// the lower of several.
pub fn overloaded(bench: &mut Bench<'_>, level: &Level, kernel: &[u64], n: u64) -> Result<bool, Halt> {
    let mut seen = Vec::new();
    for _ in 0..LOOKS {
        seen.push(misses(bench, level, kernel, n)?);
        seen.sort_by(f64::total_cmp);
        if seen[0] < CLEAR.0 && seen.len() == 1 || seen[0] > CLEAR.1 && seen.len() == 2 {
            break;
        }
    }
    Ok(seen[usize::from(seen.len() == LOOKS)] >= FITS)
}

/// Whether `n` pages of one set do not miss, by one look.
pub fn fits(bench: &mut Bench<'_>, level: &Level, kernel: &[u64], n: u64) -> Result<bool, Halt> {
    Ok(misses(bench, level, kernel, n)? < FITS)
}

/// Misses of a round through `n` pages of one set, once they have settled.
fn misses(bench: &mut Bench<'_>, level: &Level, kernel: &[u64], n: u64) -> Result<f64, Halt> {
    let start = bench.page();
    let pages: Vec<u64> = choose(bench, kernel, n as usize).into_iter().map(|v| v ^ start).collect();
    let look = level.look(bench, &pages)?;
    let mut misses = look.misses(bench)?;
    // Random replacement takes some rounds for each way until it has put out the last foreign page.
    for _ in 0..SETTLE {
        if !(FITS..SETTLING.max(n as f64 / 3.0)).contains(&misses) {
            break;
        }
        misses = misses.min(look.misses(bench)?);
    }
    Ok(misses)
}

/// `n` different vectors of a space, at random from its nearest part; all, if it has no more.
pub fn choose(bench: &mut Bench<'_>, basis: &[u64], n: usize) -> Vec<u64> {
    let mut near = gf2::near_first(basis);
    // Some more than are needed: a smaller space's pages might be spread evenly over several sets.
    near.truncate(n.next_power_of_two().ilog2() as usize + SPARE);
    let mut all = gf2::span(&near);
    bench.rng.shuffle(&mut all);
    all.truncate(n);
    all
}
