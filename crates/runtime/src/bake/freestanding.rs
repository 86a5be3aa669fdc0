//! What the helper of a preloaded library is made of: the loop, `auto`'s judgement, counters, the kernel's own types.
//! Nothing in here allocates, panics, asks the system by itself or sets `errno`: it runs in a thread that the C library
//! does not know.

pub use super::address_range::AddressRange;
pub use super::auto::{Auto, ClockReading};
pub use super::counters::{HelperCounters, HelperState};
pub use super::cpu_demand::{runnable, CpuCounts, CpuDemand};
pub use super::helper_loop::{HelperCalls, HelperHost, HelperLoop, RoundStep};
pub use super::module::{Walk, DEVICE, VERSION, WALK};
pub use super::pm_scan::{PmScanArg, CHUNK_BYTES, LET_IN, PAGEMAP_SCAN, PAGE_IS_HUGE, PAGE_IS_PRESENT};
pub use super::small_pages::{
    add_small_pages, AddressRanges, LookSchedule, SmallPages, GAP_BYTES, MOST_RANGES, SCAN_RANGES,
};
pub use super::status_line::{status_line, StatusLine, HELPER, STATUS_NANOS};
pub use super::ticks::ticks;
