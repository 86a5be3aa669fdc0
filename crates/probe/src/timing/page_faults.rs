//! First touches of memory, by the size of the pages that the kernel gives.

use lookaside_machine::{PageFaultCost, PageSize};

use crate::bench::Halt;
use crate::hierarchy::latency_bench::LatencyBench;
use crate::metal::TimedFaults;
use crate::report::timing::AbsentCost;
use crate::timing::rounds::quartiles;

/// Bytes that are touched in a round: some milliseconds.
const BYTES: u64 = 16 << 20;
/// Of the pages asked for, so many may be given in parts, and as many stray faults of other memory are taken for
/// theirs.
const STRAY: f64 = 0.05;

/// Figures of first touches, one a round for each size.
pub(super) struct FaultCells {
    sizes: Vec<(PageSize, Vec<f64>, Option<String>)>,
    ns_per_tick: f64,
}

impl FaultCells {
    /// Of the sizes that are offered; nothing measured yet.
    pub(super) fn new(bench: &mut LatencyBench<'_>, ns_per_tick: f64) -> Self {
        let sizes = bench.metal().fault_sizes().into_iter().map(|size| (size, Vec::new(), None)).collect();
        Self { sizes, ns_per_tick }
    }

    /// One figure of each.
    pub(super) fn round(&mut self, bench: &mut LatencyBench<'_>) -> Result<(), Halt> {
        for (size, ns, refused) in self.sizes.iter_mut().filter(|(.., refused)| refused.is_none()) {
            bench.check()?;
            // A small area even of the largest pages.
            let bytes = BYTES.max(size.bytes());
            match bench.metal().time_faults(*size, bytes) {
                Ok(timed) if is_whole(timed, bytes / size.bytes()) => {
                    ns.push(timed.ticks * self.ns_per_tick / timed.faults.max(1) as f64);
                }
                Ok(TimedFaults { faults, more_faults, .. }) => {
                    let all = bytes / size.bytes();
                    let why = format!("of {all} pages the kernel gave parts: {faults} faults, and {more_faults} more");
                    *refused = Some(why);
                }
                Err(error) => *refused = Some(error.to_string()),
            }
        }
        Ok(())
    }

    /// The rows, and what has none.
    pub(super) fn rows(&self, absent: &mut Vec<AbsentCost>) -> Vec<PageFaultCost> {
        let mut rows = Vec::new();
        for (size, ns, refused) in &self.sizes {
            match (quartiles(ns), refused) {
                (_, Some(why)) => {
                    absent.push(AbsentCost { what: format!("page faults of {size}"), why: why.clone() });
                }
                (Some(ns_per_fault), None) => rows.push(PageFaultCost { page_size: *size, ns_per_fault }),
                (None, None) => {}
            }
        }
        rows
    }
}

/// Whether so many pages were each given whole, by one fault.
fn is_whole(timed: TimedFaults, pages: u64) -> bool {
    let stray = (pages as f64 * STRAY) as u64 + 1;
    timed.faults.abs_diff(pages) <= stray && timed.more_faults <= stray
}
