//! What page faults cost, and what huge pages save of that.

use serde::{Deserialize, Serialize};

use crate::saved_seconds::SavedSeconds;

/// What a first touch of a page took on the mean, zeroing and all: microseconds of a small page, and of a huge one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct FaultCosts {
    /// Of memory that was given back just now.
    pub again_microseconds: [f64; 2],
    /// Of memory as the kernel gave it. In a virtual machine the host may have to find it first.
    pub fresh_microseconds: [f64; 2],
}

/// The bill of page faults with huge pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct FaultBill {
    /// Small pages touched of memory that huge pages would hold: as many faults are saved, or as many as there were.
    pub small_pages: u64,
    /// Huge pages that would hold them: as many faults are added.
    pub huge_pages: u64,
    /// Bytes that huge pages add to the resident memory.
    pub bloat_bytes: u64,
    /// Seconds saved in the kernel; negative: zeroing takes more than the faults did. `None` = the costs are not known.
    pub saved: Option<SavedSeconds>,
}

/// Bytes of a small and of a huge page.
const SMALL_BYTES: u64 = 4 << 10;
const HUGE_BYTES: u64 = 2 << 20;

impl FaultBill {
    /// Of `small_pages` touched in `huge_pages` windows of 2 MiB, in a run that had `faults` and spent `system_seconds`
    /// in the kernel; `costs` as measured, if they were.
    pub fn new(
        small_pages: u64,
        huge_pages: u64,
        (faults, system_seconds): (u64, f64),
        costs: Option<&FaultCosts>,
    ) -> Self {
        let bloat_bytes = (huge_pages * HUGE_BYTES).saturating_sub(small_pages * SMALL_BYTES);
        let small = |microseconds: f64| (small_pages.min(faults) as f64 * microseconds / 1e6).min(system_seconds);
        let huge = |microseconds: f64| huge_pages as f64 * microseconds / 1e6;
        let saved = costs.map(|costs| {
            let ([small_again, huge_again], [small_fresh, huge_fresh]) =
                (costs.again_microseconds, costs.fresh_microseconds);
            let best = small(small_again) - huge(huge_again);
            SavedSeconds {
                least: best.min(small(small_again) - huge(huge_fresh)),
                best,
                most: best.max(small(small_fresh) - huge(huge_again)),
            }
        });
        Self { small_pages, huge_pages, bloat_bytes, saved }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_adds_up() {
        let costs = FaultCosts { again_microseconds: [0.5, 150.0], fresh_microseconds: [1.0, 200.0] };
        let run = (60_000, 1.0);
        let bill = FaultBill::new(51_200, 100, run, Some(&costs));
        let saved = bill.saved.unwrap();
        assert_eq!(bill.bloat_bytes, 0);
        for (value, expected) in
            [(saved.least, 0.0256 - 0.02), (saved.best, 0.0256 - 0.015), (saved.most, 0.0512 - 0.015)]
        {
            assert!((value - expected).abs() < 1e-12, "{saved:?}");
        }
        // Half of each window touched, and the run had fewer faults than that: memory that was there already.
        let half = FaultBill::new(25_600, 100, (1000, 1.0), Some(&costs));
        assert_eq!(half.bloat_bytes, 100 << 20);
        assert!((half.saved.unwrap().best - (0.0005 - 0.015)).abs() < 1e-12);
        // No more is saved in the kernel than was spent there.
        let little = FaultBill::new(51_200, 100, (60_000, 0.03), Some(&costs)).saved.unwrap();
        assert!((little.most - 0.015).abs() < 1e-12, "{little:?}");
        assert_eq!(FaultBill::new(1, 1, run, None).saved, None);
    }
}
