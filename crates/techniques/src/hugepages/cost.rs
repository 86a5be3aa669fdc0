//! What it costs to make a window huge: `MADV_COLLAPSE` copies the pages that are there and zeroes the rest.

use super::{BASE_BYTES, WINDOW_BYTES};

/// Base pages of a window.
pub const PAGES: u64 = WINDOW_BYTES / BASE_BYTES;

/// Nanoseconds of a base page that is copied: `MADV_COLLAPSE` over fully touched memory took 0.36 s a GiB, 0.70 ms a
/// huge page, on the development machine (2 cores, x86-64 virtual machine, Linux 6.18). Allocation and TLB shootdown
/// are in it.
const COPIED_PAGE_NS: f64 = 0.36e9 / (1u64 << 30) as f64 * BASE_BYTES as f64;

/// Nanoseconds of a base page that is zeroed: the same call over windows of which 1 to 8 of 512 pages were touched took
/// 0.15 ms on that machine (medians of 128 windows: 0.15 and 0.16 ms; 0.29 ms with 128 touched, 0.40 with 256, 0.55
/// with 384).
const ZEROED_PAGE_NS: f64 = 0.15e6 / PAGES as f64;

/// Nanoseconds to collapse a window of which `touched` base pages are there. Page faults that it saves are not taken
/// off: it is priced as if it came when all that is ever touched has been.
fn collapse_ns(touched: u64) -> f64 {
    let touched = touched.min(PAGES);
    COPIED_PAGE_NS * touched as f64 + ZEROED_PAGE_NS * (PAGES - touched) as f64
}

/// The same in cycles of a clock.
pub fn collapse_cycles(touched: u64, clock_mhz: f64) -> f64 {
    collapse_ns(touched) * clock_mhz / 1e3
}

/// Bytes that a window's collapse makes resident though nobody touched them.
pub fn bloat_bytes(touched: u64) -> u64 {
    (PAGES - touched.min(PAGES)) * BASE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collapse_costs_what_was_measured() {
        assert!((collapse_ns(PAGES) - 0.703e6).abs() < 1e3);
        assert!((collapse_ns(0) - 0.15e6).abs() < 1.0);
        // The measured medians between the two lie within a third of the line.
        for (touched, ms) in [(128, 0.29), (256, 0.40), (384, 0.55)] {
            let off = collapse_ns(touched) / (ms * 1e6);
            assert!((0.75..1.33).contains(&off), "{touched}: {off}");
        }
        assert_eq!(collapse_cycles(PAGES, 1000.0), collapse_ns(PAGES));
        assert_eq!((bloat_bytes(0), bloat_bytes(511), bloat_bytes(600)), (WINDOW_BYTES, BASE_BYTES, 0));
    }
}
