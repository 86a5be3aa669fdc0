//! Converts timed ticks to core cycles: the clock is measured right before and after, since it changes within
//! milliseconds.

use crate::metal::clock;

/// Additions of one look at the clock: about a microsecond.
const ADDS: u64 = 4000;
/// Looks at the clock on each side.
const LOOKS: u32 = 3;
/// The clock before and after agree within this share; else the sample is taken again, so many times at most.
const AGREE: f64 = 0.02;
/// See [`AGREE`].
const TRIES: u32 = 4;

/// Core cycles in a tick, now.
fn cycles_per_tick() -> f64 {
    let least = (0..LOOKS).map(|_| clock::adds(ADDS)).min().unwrap_or(1);
    ADDS as f64 / least.max(1) as f64
}

/// Core cycles that `sample` (which gives ticks) takes.
pub(crate) fn in_cycles(mut sample: impl FnMut() -> u64) -> f64 {
    let mut before = cycles_per_tick();
    let mut cycles = 0.0;
    for _ in 0..TRIES {
        let ticks = sample();
        let after = cycles_per_tick();
        cycles = ticks as f64 * (before + after) / 2.0;
        if (before - after).abs() <= AGREE * after {
            break;
        }
        before = after;
    }
    cycles
}

/// Steps through addresses that a list tells, each of which also waits for the load before it: all words read are zero,
/// and are added to the next address. `units` (of `1 << SHIFT` bytes from `base`) are walked in a circle from number
/// `at`. Gives the ticks of `timed` steps after `before` others.
///
/// # Safety
/// `base + (unit << SHIFT)` is mapped and reads as zero for each unit; `at` is less than their number.
pub(crate) unsafe fn walk_list<const SHIFT: u32>(
    base: u64,
    units: &[u32],
    at: &mut usize,
    before: u64,
    timed: u64,
) -> u64 {
    let mut zero = 0;
    let mut leg = |mut steps: u64| {
        while steps > 0 {
            let run = steps.min((units.len() - *at) as u64);
            // SAFETY: the caller's units, `run` of them from `at` on.
            unsafe { clock::walk_run::<SHIFT>(base, units.as_ptr().add(*at), run, &mut zero) };
            *at = (*at + run as usize) % units.len();
            steps -= run;
        }
    };
    leg(before);
    let start = clock::fenced_now();
    leg(timed);
    clock::fenced_now().saturating_sub(start)
}
