//! The statistics of a baker.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a baker did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct BakeStats {
    /// Whole rounds through all regions.
    pub rounds: u64,
    /// Touches: of pages by the program's own address (load, prefetch), of page-table entries by the kernel (module,
    /// scan, mincore).
    pub touches: u64,
    /// Nanoseconds spent touching.
    pub busy_nanos: u64,
    /// Nanoseconds of CPU that the helper thread used, as the system counts them.
    pub cpu_nanos: u64,
    /// Nanoseconds since the start.
    pub elapsed_nanos: u64,
    /// Kernel calls that failed; the first one's error number is in `last_errno`.
    pub failed_calls: u64,
    /// The last failed call's error number; 0 = none failed.
    pub last_errno: i32,
    /// CPU that the helper stays on; -1 = any.
    pub cpu: i32,
}

impl BakeStats {
    /// What was done since these earlier statistics; all of it where they are another baker's, which had done more.
    pub fn since(&self, earlier: &Self) -> Self {
        let difference = || {
            Some(Self {
                rounds: self.rounds.checked_sub(earlier.rounds)?,
                touches: self.touches.checked_sub(earlier.touches)?,
                busy_nanos: self.busy_nanos.checked_sub(earlier.busy_nanos)?,
                cpu_nanos: self.cpu_nanos.checked_sub(earlier.cpu_nanos)?,
                elapsed_nanos: self.elapsed_nanos.checked_sub(earlier.elapsed_nanos)?,
                failed_calls: self.failed_calls.checked_sub(earlier.failed_calls)?,
                ..*self
            })
        };
        difference().unwrap_or(*self)
    }
}
