//! Measures how many pages of one set fit: its ways.

use lookaside_stats::median;

use crate::bench::{ChainBench, Halt};
use crate::tlb::busy_core::{CALM_LOOKS, FIRST_PAUSE};
use crate::tlb::core_use::CoreUse;
use crate::tlb::level_meter::LevelMeter;
use crate::tlb::near_vectors::random_vectors;

/// Looks at pages that may fit.
const LOOKS: usize = 5;

/// Misses of a round from which on pages do not fit: at least one, less what the first level hides and times vary by.
pub const FITS: f64 = 0.7;

/// Misses that say so at the first look, or at the second.
pub const CLEAR: (f64, f64) = (0.3, 2.0);

/// Times that a look is repeated while it has few misses, and how many are few at least (else a third of the pages).
const SETTLE: usize = 24;

/// See [`SETTLE`].
const SETTLING: f64 = 4.0;

/// Looks of which the median is taken, once as many again have not shown that all fit.
const SETTLED: usize = 4;

/// Sets at which pages are looked at that may fit at times, and how many looks have to show no misses.
const FEW_SETS: usize = 2;

/// See [`FEW_SETS`].
const CALM: u32 = 2;

/// A miss in each of these sets has to be this share of the time at least: chains are off by per cents of their own.
const TELLS: f64 = 0.02;

/// Misses of each page from which on nothing but too many pages is thought of.
const SURELY_TOO_MANY: f64 = 0.75;

/// How many pages of one set fit: the largest number without misses, if there is one below all of them.
/// `kernel` spans pages of one set, more than fit.
pub fn ways(bench: &mut ChainBench<'_>, level: &LevelMeter, kernel: &[u64]) -> Result<Option<u32>, Halt> {
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
pub fn overloaded(bench: &mut ChainBench<'_>, level: &LevelMeter, kernel: &[u64], n: u64) -> Result<bool, Halt> {
    let mut seen = Vec::new();
    for _ in 0..LOOKS {
        seen.push(misses(bench, level, kernel, n)?);
        seen.sort_by(f64::total_cmp);
        if seen[0] < CLEAR.0 && seen.len() == 1 || seen[0] > CLEAR.1 && seen.len() == 2 {
            break;
        }
    }
    let misses = seen[usize::from(seen.len() == LOOKS)];
    Ok(misses >= FITS && !fit_at_times(bench, level, kernel, n, misses)?)
}

/// How `n` pages of one set look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetFit {
    /// They do not miss.
    Clear,
    /// They miss less than once a round: disturbed, or a miss costs less than is thought.
    Hardly,
    /// They do not fit.
    No,
}

/// How `n` pages of one set look once; those that should fit, where a neighbour makes them miss, at times.
pub fn fit(
    bench: &mut ChainBench<'_>,
    level: &LevelMeter,
    kernel: &[u64],
    n: u64,
    should: bool,
) -> Result<SetFit, Halt> {
    let misses = misses(bench, level, kernel, n)?;
    Ok(if misses <= CLEAR.0 || should && fit_at_times(bench, level, kernel, n, misses)? {
        SetFit::Clear
    } else if misses < FITS {
        SetFit::Hardly
    } else {
        SetFit::No
    })
}

/// Misses of a round through `n` pages of one set, once they have settled; the mean of several sets where there is
/// a level above to be flooded.
fn misses(bench: &mut ChainBench<'_>, level: &LevelMeter, kernel: &[u64], n: u64) -> Result<f64, Halt> {
    let start = bench.page();
    let pages: Vec<u64> = random_vectors(bench, kernel, n as usize).into_iter().map(|v| v ^ start).collect();
    let (pages, copies) = level.copied(bench, &pages);
    let look = level.look(bench, &pages)?;
    // Random replacement takes some rounds for each way until it has put out the last foreign page; and it misses now
    // more, now less.
    let mut seen = Vec::new();
    loop {
        let misses = look.misses(bench)? / copies as f64;
        let few = misses < SETTLING.max(n as f64 / 3.0);
        if misses < CLEAR.0 || !few && !seen.is_empty() {
            return Ok(misses);
        }
        seen.push(misses);
        look.settle(bench)?;
        if seen.len() >= 2 * SETTLED {
            let usual = median(&seen[seen.len() - SETTLED..]).unwrap_or_default();
            if usual >= FITS || seen.len() == SETTLE {
                return Ok(usual);
            }
        }
    }
}

/// Whether `n` pages of one set that seem to miss so often a round fit at times. Where chains are too long to tell
/// that, the answer is no.
pub fn fit_at_times(
    bench: &mut ChainBench<'_>,
    level: &LevelMeter,
    kernel: &[u64],
    n: u64,
    misses: f64,
) -> Result<bool, Halt> {
    if level.core == CoreUse::Own || misses > SURELY_TOO_MANY * n as f64 {
        return Ok(false);
    }
    // Other sets each time: some have a tenant that stays. But the same distances: of two sets taken for one, others
    // would fit.
    let vectors = random_vectors(bench, kernel, n as usize);
    let mut clear = 0;
    for _ in 0..CALM_LOOKS {
        let start = bench.page();
        let pages: Vec<u64> = vectors.iter().map(|v| v ^ start).collect();
        let (pages, copies) = level.copied_to(bench, &pages, FEW_SETS);
        let look = level.look(bench, &pages)?;
        if !look.tells(FITS * copies as f64, TELLS) {
            return Ok(false);
        }
        look.settle(bench)?;
        clear += u32::from(look.misses(bench)? / (copies as f64) < CLEAR.0);
        if clear == CALM {
            return Ok(true);
        }
        bench.pause(FIRST_PAUSE)?;
    }
    Ok(false)
}
