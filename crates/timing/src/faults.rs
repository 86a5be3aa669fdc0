//! What page faults cost, and what huge pages save of that.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::saved_seconds::SavedSeconds;

/// What a first touch took, zeroing and all: measured while memory was touched page by page.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct FaultCosts {
    /// Microseconds of a small page's fault: lower quartile, median, upper quartile.
    pub small_microseconds: [f64; 3],
    /// Microseconds of a huge page's fault, likewise.
    pub huge_microseconds: [f64; 3],
}

/// The bill of page faults with huge pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
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
    /// Of `small_pages` touched in `huge_pages` windows of 2 MiB, in a run that had `faults`; `costs` as measured, if they
    /// were.
    pub fn new(small_pages: u64, huge_pages: u64, faults: u64, costs: Option<&FaultCosts>) -> Self {
        let bloat_bytes = (huge_pages * HUGE_BYTES).saturating_sub(small_pages * SMALL_BYTES);
        let saved_faults = small_pages.min(faults) as f64;
        let seconds = |small: f64, huge: f64| (saved_faults * small - huge_pages as f64 * huge) / 1e6;
        let saved = costs.map(|FaultCosts { small_microseconds: small, huge_microseconds: huge }| SavedSeconds {
            least: seconds(small[0], huge[2]),
            best: seconds(small[1], huge[1]),
            most: seconds(small[2], huge[0]),
        });
        Self { small_pages, huge_pages, bloat_bytes, saved }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_adds_up() {
        let costs = FaultCosts { small_microseconds: [0.4, 0.5, 1.0], huge_microseconds: [100.0, 150.0, 200.0] };
        let bill = FaultBill::new(51_200, 100, 60_000, Some(&costs));
        let saved = bill.saved.unwrap();
        assert_eq!(bill.bloat_bytes, 0);
        assert!((saved.best - (0.0256 - 0.015)).abs() < 1e-12, "{saved:?}");
        assert!(saved.least < saved.best && saved.best < saved.most);
        // Half of each window touched, and the run had fewer faults than that: memory that was there already.
        let half = FaultBill::new(25_600, 100, 1000, Some(&costs));
        assert_eq!(half.bloat_bytes, 100 << 20);
        assert!((half.saved.unwrap().best - (0.0005 - 0.015)).abs() < 1e-12);
        assert_eq!(FaultBill::new(1, 1, 1, None).saved, None);
    }
}
