//! What a first touch costs, zeroing and all: of a small page and of a huge one.

use lookaside_timing::FaultCosts;

use super::cpu_clock::CpuInstant;
use super::error::ReplayError;
use super::replay_area::{ReplayArea, HUGE, SMALL};

/// Huge pages that are touched, where there is room, and as many bytes in small ones: 64 MiB each, more than a core's
/// own caches hold.
const HUGE_PAGES: u64 = 32;
/// Times that memory is given back and touched again.
const AGAIN: u32 = 3;

/// Touches memory (of these bytes as much as is needed), gives it back, and touches it again, with small and with huge
/// pages in turns. In a virtual machine whose host takes free memory back, memory that was free for long costs more
/// than memory that was given back just now; a program gets some of either.
pub fn first_touches(bytes: u64) -> Result<FaultCosts, ReplayError> {
    let huge_pages = (bytes / 2 / HUGE).clamp(1, HUGE_PAGES);
    let (small, huge) = (ReplayArea::new(huge_pages * HUGE)?, ReplayArea::new(huge_pages * HUGE)?);
    small.advise(0, huge_pages * HUGE, libc::MADV_NOHUGEPAGE);
    huge.advise(0, huge_pages * HUGE, libc::MADV_HUGEPAGE);
    let mut costs = FaultCosts::default();
    for time in 0..=AGAIN {
        let first = touch(&small, &huge, huge_pages);
        match time {
            0 => costs.fresh_microseconds = first,
            _ => {
                costs.again_microseconds =
                    std::array::from_fn(|i| costs.again_microseconds[i] + first[i] / f64::from(AGAIN))
            }
        }
        for area in [&small, &huge] {
            area.advise(0, huge_pages * HUGE, libc::MADV_DONTNEED);
        }
    }
    Ok(costs)
}

/// Microseconds of a small page's first touch, and of a huge one's, on the mean.
fn touch(small: &ReplayArea, huge: &ReplayArea, huge_pages: u64) -> [f64; 2] {
    let mut seconds = [0.0; 2];
    for window in 0..huge_pages {
        for (kind, (area, bytes)) in [(small, SMALL), (huge, HUGE)].into_iter().enumerate() {
            let began = CpuInstant::now();
            for page in 0..HUGE / bytes {
                area.touch(((window * HUGE + page * bytes) >> 6) as u32);
            }
            seconds[kind] += began.seconds();
        }
    }
    let microseconds = seconds.map(|seconds| seconds * 1e6 / huge_pages as f64);
    [microseconds[0] * SMALL as f64 / HUGE as f64, microseconds[1]]
}
