//! The statistics of a baker.

use serde::{Deserialize, Serialize};

/// What a baker did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(rounds: u64, of: u64, last_errno: i32) -> BakeStats {
        let [touches, busy_nanos, cpu_nanos, elapsed_nanos, failed_calls] =
            [10, 100, 1_000, 10_000, 100_000].map(|n| n * of);
        BakeStats { rounds, touches, busy_nanos, cpu_nanos, elapsed_nanos, failed_calls, last_errno, cpu: 3 }
    }

    #[test]
    fn what_was_done_since_is_the_difference_and_of_another_baker_all() {
        let (earlier, later) = (stats(2, 1, 7), stats(5, 4, 9));
        assert_eq!(later.since(&earlier), stats(3, 3, 9));
        assert_eq!(later.since(&later), stats(0, 0, 9));
        assert_eq!(earlier.since(&later), earlier);
        // Less of any one of them is another baker's.
        let more = [
            BakeStats { rounds: 6, ..earlier },
            BakeStats { touches: 41, ..earlier },
            BakeStats { busy_nanos: 401, ..earlier },
            BakeStats { cpu_nanos: 4_001, ..earlier },
            BakeStats { elapsed_nanos: 40_001, ..earlier },
            BakeStats { failed_calls: 400_001, ..earlier },
        ];
        assert!(more.iter().all(|earlier| later.since(earlier) == later));
    }
}
