//! Measurements on a core whose other hardware thread is busy and takes entries too.
//!
//! The neighbour only adds misses, and for a while. So one look without any is believed: the pages fit. That pages are
//! too many has to be seen in every look of many, between which the neighbour has time to rest. Of many full sets some
//! are always hit; of a few now and then none is.

use std::time::Duration;

use crate::bench::{ChainBench, Halt};

/// The first pause between looks that all have to say the same; each is twice the one before, up to the longest.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// Looks at which pauses do not grow any more.
const GROWING: u32 = 6;
/// Looks of which the least counts.
const LOOKS: u32 = 8;

/// Looks until one is given up that shows none: of two full sets one in 20 to 50 does beside a busy neighbour (Zen 5).
pub(super) const CALM_LOOKS: u32 = 128;

/// Waits before the next of some looks; `looks` were taken.
pub fn rest(bench: &mut ChainBench<'_>, looks: u32) -> Result<(), Halt> {
    bench.pause(FIRST_PAUSE * (1 << looks.min(GROWING)))
}

/// The least of some looks, apart in time; as soon as one is below `enough`, that.
pub fn least<'m>(
    bench: &mut ChainBench<'m>,
    enough: f64,
    mut look: impl FnMut(&mut ChainBench<'m>) -> Result<f64, Halt>,
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

/// Whether a look, of as many, has less than so many misses.
pub fn clear_at_times<'m>(
    bench: &mut ChainBench<'m>,
    clear: f64,
    mut look: impl FnMut(&mut ChainBench<'m>) -> Result<f64, Halt>,
) -> Result<bool, Halt> {
    for _ in 0..CALM_LOOKS {
        if look(bench)?.abs() < clear {
            return Ok(true);
        }
        bench.pause(FIRST_PAUSE)?;
    }
    Ok(false)
}
