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

#[cfg(test)]
mod tests {
    use super::*;

    fn area(start: u64, end: u64, referenced_bytes: u64) -> MappedArea {
        MappedArea { start, end, name: String::new(), resident_bytes: 0, referenced_bytes, unfit: None }
    }

    #[test]
    fn bytes_of_a_mapping_add_up_as_long_as_it_stays_as_it_is() {
        let mut seen = ReferencedBytes::default();
        seen.add(vec![area(10, 20, 5), area(30, 40, 7), area(50, 60, 2)]);
        assert_eq!((&seen.bytes, seen.intervals), (&vec![5, 7, 2], 1));
        // The first as before; the second is longer, the third gone; one that is new.
        let later = vec![area(10, 20, 3), area(30, 41, 4), area(70, 80, 6)];
        seen.add(later.clone());
        assert_eq!((&seen.bytes, seen.intervals, &seen.areas), (&vec![8, 4, 6], 2, &later));
        seen.add(vec![area(10, 20, 0), area(30, 40, 9), area(50, 60, 1), area(70, 80, 1)]);
        assert_eq!((seen.bytes, seen.intervals), (vec![8, 9, 1, 7], 3), "what was forgotten begins anew");
    }

    #[test]
    fn who_is_not_there_is_named() {
        for pid in [u32::MAX, 4_194_305] {
            let error = look(pid, Duration::ZERO, &|| false).expect_err("nobody").to_string();
            assert_eq!(error, format!("process {pid}: there is none"));
        }
    }

    /// A second interval would end after the time.
    #[test]
    fn an_interval_is_no_shorter_than_a_second() {
        let began = Instant::now();
        match look(std::process::id(), INTERVAL, &|| false) {
            Ok(seen) => {
                assert!(began.elapsed() >= INTERVAL && seen.longest_nanos > 0);
                assert_eq!((seen.intervals, seen.bytes.len()), (1, seen.areas.len()));
                assert!(seen.bytes.iter().sum::<u64>() > 0, "this test's own stack was used, at least");
            }
            Err(error) => assert!(error.to_string().contains("clear_refs"), "{error}"),
        }
    }

    #[test]
    fn being_stopped_gives_no_interval() {
        let seen = look(std::process::id(), Duration::from_secs(60), &|| true);
        match seen {
            Ok(seen) => assert_eq!((seen.intervals, seen.bytes.len()), (0, 0)),
            Err(error) => assert!(error.to_string().contains("clear_refs"), "{error}"),
        }
    }
}
