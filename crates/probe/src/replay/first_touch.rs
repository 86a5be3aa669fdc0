//! What a first touch costs, zeroing and all: of a small page and of a huge one.

use lookaside_stats::quantiles;
use lookaside_timing::FaultCosts;

use super::cpu_clock::CpuInstant;
use super::error::ReplayError;
use super::memory::{PageCopy, HUGE, SMALL};

/// Huge pages that are touched, where there is room: 64 MiB, more than a core's own caches hold.
const HUGE_PAGES: u64 = 32;
/// Times that count, after one that does not: a host gives a guest its memory at the first touch of all, whatever the
/// guest's pages are, and later touches are what programs pay from then on.
const TIMES: usize = 3;

/// Touches memory (of these bytes as much as is needed), gives it back, and touches it again, with small and with huge
/// pages in turns.
pub fn first_touches(bytes: u64) -> Result<FaultCosts, ReplayError> {
    let huge_pages = (bytes / HUGE).clamp(1, HUGE_PAGES);
    let area = PageCopy::new(huge_pages * HUGE)?;
    let (mut small, mut huge) = (Vec::new(), Vec::new());
    for time in 0..=TIMES {
        for (bytes, times, advice) in
            [(SMALL, &mut small, libc::MADV_NOHUGEPAGE), (HUGE, &mut huge, libc::MADV_HUGEPAGE)]
        {
            area.advise(0, huge_pages * HUGE, advice);
            for window in 0..huge_pages {
                let pages = HUGE / bytes;
                let began = CpuInstant::now();
                for page in 0..pages {
                    area.touch(((window * HUGE + page * bytes) >> 6) as u32);
                }
                if time > 0 {
                    times.push(began.seconds() * 1e6 / pages as f64);
                }
            }
            area.advise(0, huge_pages * HUGE, libc::MADV_DONTNEED);
        }
    }
    let quartiles = |times: Vec<f64>| quantiles(times, [0.25, 0.5, 0.75]).unwrap_or_default();
    Ok(FaultCosts { small_microseconds: quartiles(small), huge_microseconds: quartiles(huge) })
}
