//! The memory for which a program asks for huge pages by itself, seen while it is recorded.

use std::collections::BTreeSet;
use std::time::Duration;

use lookaside_host::Process;

use super::watched::Watched;

/// Shortest and longest wait between two looks at the program. A look at a gigabyte takes some milliseconds.
const LOOKS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// So many areas are kept at the most.
const MOST_AREAS: usize = 1 << 16;

/// Areas of a process for which `madvise(MADV_HUGEPAGE)` was called: first bytes, and the bytes behind the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdvisedAreas {
    pub process: u32,
    pub areas: BTreeSet<(u64, u64)>,
}

impl AdvisedAreas {
    /// At least half of these bytes were in such an area at one time.
    pub fn hold(&self, process: u32, start: u64, end: u64) -> bool {
        let common = |&(from, to): &(u64, u64)| to.min(end).saturating_sub(from.max(start));
        process == self.process && self.areas.iter().any(|area| common(area) > (end - start) / 2)
    }
}

/// Begins to look at the process.
///
/// # Errors
/// No thread can be started.
pub fn watch_advice(process: u32) -> std::io::Result<Watched<AdvisedAreas>> {
    let none = AdvisedAreas { process, areas: BTreeSet::new() };
    Watched::start(LOOKS, none, move |mut seen| {
        for area in Process::of(process).smaps().unwrap_or_default() {
            if area.has_flag(&["hg"]) && seen.areas.len() < MOST_AREAS {
                seen.areas.insert((area.start, area.end));
            }
        }
        seen
    })
}

#[cfg(test)]
mod tests {
    use lookaside_host::Mapping;
    use rustix::mm::{MapFlags, ProtFlags};

    use super::*;

    #[test]
    fn what_is_asked_for_is_seen() {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        let [asked, other] = [(); 2].map(|()| Mapping::anonymous(4 << 20, rights, MapFlags::PRIVATE).expect("memory"));
        // SAFETY: a mapping of our own, to which there are no references.
        let advised = unsafe { libc::madvise(asked.address() as *mut _, 4 << 20, libc::MADV_HUGEPAGE) };
        if advised != 0 {
            eprintln!("LEFT OUT: this kernel has no huge pages");
            return;
        }
        let watch = watch_advice(std::process::id()).expect("a thread");
        std::thread::sleep(3 * LOOKS.0);
        let seen = watch.end().expect("no panic");
        let holds = |mapping: &Mapping, process| seen.hold(process, mapping.address(), mapping.address() + (4 << 20));
        assert!(holds(&asked, std::process::id()) && !holds(&asked, 1));
        assert!(!holds(&other, std::process::id()));
    }

    #[test]
    fn half_of_a_mapping_is_enough() {
        let seen = AdvisedAreas { process: 1, areas: [(0x1000, 0x4000), (0x9000, 0xa000)].into() };
        assert!(seen.hold(1, 0x2000, 0x5000) && seen.hold(1, 0x9000, 0xa000));
        assert!(!seen.hold(1, 0x3000, 0x6000) && !seen.hold(1, 0, 0x1000) && !seen.hold(1, 0x9000, 0xb000));
    }
}
