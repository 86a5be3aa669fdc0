//! What goes on beside a run, in a thread of its own: baking from outside, and a look at the pages it got.

use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use lookaside_host::Process;
use serde::Serialize;

use crate::bake::{family, BakeStats, ProcessBakers, ProcessSelection, Settings};

/// First look at the program, and each next one after twice as long, up to the last.
const FIRST_LOOK: Duration = Duration::from_millis(100);
/// The program's mappings are read so often.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// What the helpers beside the program did, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct HelperTotals {
    /// Rounds through all regions.
    pub rounds: u64,
    /// Page-table entries read.
    pub touches: u64,
    /// Nanoseconds of CPU that the helpers used; not in the program's own times.
    pub cpu_nanos: u64,
    /// Most bytes in small pages that were baked at a time.
    pub most_bytes: u64,
}

/// Pages that the program had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PageUse {
    /// Most resident bytes that were seen.
    pub resident_bytes: u64,
    /// Bytes of anonymous memory in huge pages at that time.
    pub huge_bytes: u64,
}

/// What was seen and done beside a run.
#[derive(Default)]
pub(super) struct RunObservation {
    pub(super) helped: Option<HelperTotals>,
    pub(super) pages: Option<PageUse>,
    /// Why some process was not baked.
    pub(super) refused: Option<String>,
}

/// The thread beside a run.
pub(super) struct RunWatch {
    stop: Sender<()>,
    thread: JoinHandle<RunObservation>,
}

impl RunWatch {
    /// Watches the process and those that it starts: bakes them with these settings, looks at their pages.
    pub(super) fn start(pid: u32, bake: Option<Settings>, look: bool) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let beside = std::thread::Builder::new().name("compare".into());
        Ok(Self { stop, thread: beside.spawn(move || watch(pid, bake.as_ref(), look, &stopped))? })
    }

    /// Ends it.
    pub(super) fn end(self) -> RunObservation {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

fn watch(pid: u32, bake: Option<&Settings>, look: bool, stopped: &Receiver<()>) -> RunObservation {
    let mut seen = RunObservation::default();
    let (mut outside, mut most_bytes) = (None, 0);
    let mut wait = FIRST_LOOK;
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(wait) {
        wait = (wait * 2).min(LAST_LOOK);
        if look {
            let now = pages(&family(pid));
            if now.resident_bytes >= seen.pages.unwrap_or_default().resident_bytes {
                seen.pages = Some(now);
            }
        }
        let Some(settings) = bake else { continue };
        let done = match &mut outside {
            None => {
                let wanted = ProcessSelection { families: vec![pid], ..ProcessSelection::default() };
                ProcessBakers::start(settings, wanted).map(|started| outside = Some(started))
            }
            Some(outside) => outside.refresh().map(|_| ()),
        };
        seen.refused = done.err().map(|e| e.to_string()).or(seen.refused);
        let bytes =
            outside.iter().flat_map(ProcessBakers::report).filter(|baked| baked.running).map(|baked| baked.small_bytes);
        most_bytes = bytes.sum::<u64>().max(most_bytes);
    }
    if bake.is_some() {
        let report = outside.map(ProcessBakers::stop).unwrap_or_default();
        let sum = |of: fn(&BakeStats) -> u64| report.iter().map(|baked| of(&baked.stats)).sum();
        seen.helped = Some(HelperTotals {
            rounds: sum(|stats| stats.rounds),
            touches: sum(|stats| stats.touches),
            cpu_nanos: sum(|stats| stats.cpu_nanos),
            most_bytes,
        });
        seen.refused = seen.refused.or_else(|| report.into_iter().find_map(|baked| baked.refused));
    }
    seen
}

fn pages(family: &[u32]) -> PageUse {
    let mut all = PageUse::default();
    for &pid in family {
        let Ok(rollup) = Process::of(pid).smaps_rollup() else { continue };
        all.resident_bytes += rollup.resident_bytes;
        all.huge_bytes += rollup.anonymous_huge_bytes;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_of_all_processes_that_are_there() {
        let mut children = [(); 2].map(|()| {
            let child = std::process::Command::new("sleep").arg("60").spawn();
            child.expect("sleep is everywhere")
        });
        let [one, other] = children.each_ref().map(std::process::Child::id);
        // Until both sleep more comes into memory: it is looked at until nothing has changed meanwhile.
        let end = std::time::Instant::now() + Duration::from_secs(60);
        let (first, second, both) = loop {
            let before = [one, other].map(|pid| pages(&[pid]));
            let both = pages(&[one, 4_194_305, other]);
            let after = [one, other].map(|pid| pages(&[pid]));
            if before == after {
                break (before[0], before[1], both);
            }
            assert!(std::time::Instant::now() < end, "{before:?}, {after:?}");
        };
        children.iter_mut().for_each(|child| _ = child.kill());
        children.iter_mut().for_each(|child| _ = child.wait());
        assert!(first.resident_bytes > 0 && second.resident_bytes > 0);
        assert_eq!(both.resident_bytes, first.resident_bytes + second.resident_bytes);
        assert_eq!(pages(&[]), PageUse::default());
    }

    #[test]
    fn huge_pages_are_counted_among_the_resident_ones() {
        let memory = lookaside_host::Mapping::new(8 << 20).expect("memory");
        let _ = memory.advise_huge(true);
        for page in (0..8 << 20).step_by(4096) {
            // SAFETY: within the mapping.
            unsafe { memory.start().as_ptr().add(page).write_volatile(1) };
        }
        let (start, end) = (memory.address(), memory.address() + memory.bytes() as u64);
        let smaps = Process::own().smaps().expect("its own");
        let inside = smaps.iter().filter(|vma| vma.start >= start && vma.end <= end);
        let ours: u64 = inside.map(|vma| vma.anonymous_huge_bytes).sum();
        if ours == 0 {
            return eprintln!("LEFT OUT: the system gave no huge page");
        }
        // Twice, as of two processes; other tests have some too.
        let all = pages(&[std::process::id(), std::process::id()]);
        assert!(all.huge_bytes >= 2 * ours && all.huge_bytes <= all.resident_bytes, "{all:?} with {ours}");
    }

    /// The first look comes after a tenth of a second; where the machine lets nobody run, later.
    #[test]
    fn the_pages_of_a_program_are_looked_at_while_it_runs() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is everywhere");
        let seen = [150, 500, 2_000, 10_000].into_iter().find_map(|millis| {
            let watch = RunWatch::start(child.id(), None, true).expect("a thread");
            std::thread::sleep(Duration::from_millis(millis));
            let seen = watch.end();
            assert!(seen.helped.is_none() && seen.refused.is_none());
            seen.pages
        });
        let unseen = RunWatch::start(child.id(), None, false).expect("a thread");
        std::thread::sleep(2 * FIRST_LOOK);
        assert_eq!(unseen.end().pages, None, "nobody wanted that");
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        assert!(seen.is_some_and(|pages| pages.resident_bytes > 0), "{seen:?}");
    }
}
