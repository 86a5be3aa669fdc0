//! What can be said of a set whose entries a neighbour on the same core takes too.
//!
//! The neighbour only adds misses, and for a while. So one look without any is believed: the pages fit. That pages are too many has to be seen in every look of
//! many, between which the neighbour has time to rest. Of many full sets some are always hit; of a few now and then none is.

use std::time::Duration;

use crate::bench::{Bench, Halt};
use crate::tlb::conflict::{choose, CLEAR, FITS};
use crate::tlb::level::Level;

/// Whose the core is taken to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Core {
    /// Ours: pages that miss are too many.
    #[default]
    Own,
    /// Somebody else's too, who takes entries: pages that fit miss as well, for a while.
    Shared,
}

/// The first pause between looks that all have to say the same; each is twice the one before, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// Looks at which pauses do not grow any more.
const GROWING: u32 = 6;
/// Looks of which the least counts.
const LOOKS: u32 = 8;

/// Sets at which pages are looked at that may fit at times, and how many looks have to show no misses.
const FEW_SETS: usize = 2;
/// See [`FEW_SETS`].
const CALM: u32 = 2;
/// Looks until one is given up that shows none: of two full sets one in 20 to 50 does beside a busy neighbour (Zen 5).
const CALM_LOOKS: u32 = 128;
/// A miss in each of these sets has to be this share of the time at least: chains are off by per cents of their own.
const TELLS: f64 = 0.02;
/// Misses of each page from which on nothing but too many pages is thought of.
const SURELY_TOO_MANY: f64 = 0.75;

/// Waits before the next of some looks; `looks` were taken.
pub fn rest(bench: &mut Bench<'_>, looks: u32) -> Result<(), Halt> {
    bench.pause(FIRST_PAUSE * (1 << looks.min(GROWING)))
}

/// The least of some looks, apart in time; as soon as one is below `enough`, that.
pub fn least<'m>(
    bench: &mut Bench<'m>,
    enough: f64,
    mut look: impl FnMut(&mut Bench<'m>) -> Result<f64, Halt>,
) -> Result<f64, Halt> {
    let mut least = look(bench)?;
    for looks in 0..LOOKS - 1 {
        if least < enough {
            break;
        }
        rest(bench, looks)?;
        least = least.min(look(bench)?);
    }
    Ok(least)
}

/// Whether `n` pages of one set that seem to miss so often a round fit at times. Where chains are too long to tell that, the answer is no.
pub fn fit_at_times(bench: &mut Bench<'_>, level: &Level, kernel: &[u64], n: u64, misses: f64) -> Result<bool, Halt> {
    if level.core == Core::Own || misses > SURELY_TOO_MANY * n as f64 {
        return Ok(false);
    }
    // Other sets each time: some have a tenant that stays. But the same distances: of two sets taken for one, others would fit.
    let vectors = choose(bench, kernel, n as usize);
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

/// Whether a look, of as many, has less than so many misses.
pub fn clear_at_times<'m>(
    bench: &mut Bench<'m>,
    clear: f64,
    mut look: impl FnMut(&mut Bench<'m>) -> Result<f64, Halt>,
) -> Result<bool, Halt> {
    for _ in 0..CALM_LOOKS {
        if look(bench)?.abs() < clear {
            return Ok(true);
        }
        bench.pause(FIRST_PAUSE)?;
    }
    Ok(false)
}
