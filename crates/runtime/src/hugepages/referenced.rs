//! What of a process's memory is in use, by the processor's referenced bits: `clear_refs` and smaps. Coarse: the system
//! tells a number of bytes for each mapping, not which.

use std::time::{Duration, Instant};

use lookaside_host::Process;

use super::error::HugePageError;
use super::pages;
use super::windows::MappedArea;

/// Least time from clearing the bits to looking at them: the TLB is not flushed, so that a page whose translation stays
/// there is not seen again until it has been thrown out (undercounts below a second here).
pub const INTERVAL: Duration = Duration::from_secs(1);

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReferencedBytes {
    /// The mappings at the last look.
    pub areas: Vec<MappedArea>,
    /// For each of these, bytes referenced, summed over the intervals.
    pub bytes: Vec<u64>,
    /// Intervals.
    pub intervals: u32,
    /// Longest clearing, in nanoseconds: the kernel holds `mmap_lock` for writing meanwhile, and page faults of the
    /// program wait.
    pub longest_nanos: u64,
}

/// Looks at a process for so long, at least for one interval, or until `stop` says so.
///
/// # Errors
/// There is no such process, it ends, or it may not be looked at.
pub fn look(pid: u32, time: Duration, stop: &dyn Fn() -> bool) -> Result<ReferencedBytes, HugePageError> {
    let mut seen = ReferencedBytes::default();
    let end = Instant::now() + time;
    while seen.intervals == 0 || Instant::now() + INTERVAL <= end {
        seen.longest_nanos = clear(pid)?.max(seen.longest_nanos);
        let until = Instant::now() + INTERVAL;
        while Instant::now() < until && !stop() {
            std::thread::sleep(STEP.min(until.saturating_duration_since(Instant::now())));
        }
        if stop() {
            break; // too short an interval would undercount
        }
        seen.add(pages::areas(pid)?);
    }
    Ok(seen)
}

/// How soon it heeds `stop`.
const STEP: Duration = Duration::from_millis(50);

impl ReferencedBytes {
    /// One interval more. What was seen of mappings that are gone, moved or resized is forgotten.
    fn add(&mut self, areas: Vec<MappedArea>) {
        let before = |area: &MappedArea| {
            let at = self.areas.binary_search_by_key(&area.start, |area| area.start).ok()?;
            (self.areas[at].end == area.end).then(|| self.bytes[at])
        };
        let bytes = areas.iter().map(|area| before(area).unwrap_or(0) + area.referenced_bytes).collect();
        (self.areas, self.bytes) = (areas, bytes);
        self.intervals += 1;
    }
}

/// Clears the bits of all pages; how long that took, in nanoseconds.
fn clear(pid: u32) -> Result<u64, HugePageError> {
    let began = Instant::now();
    Process::of(pid).clear_referenced().map_err(|e| {
        HugePageError::Bad(match () {
            () if e.is_ended() => format!("process {pid}: it has ended"),
            () if e.is_missing() => format!("process {pid}: there is none"),
            () if e.is_forbidden() => {
                format!("{}: only root and the process's owner may write to it", e.path.display())
            }
            () => e.to_string(),
        })
    })?;
    Ok(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
