//! A plan made real: its windows become huge as they come into being in the running program.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lookaside_host::Process;
use serde::Serialize;

use super::collapse::{CollapseHandle, CollapseResult, CollapseSide};
use super::pages::ProcessMemory;
use super::windows::WINDOW_PAGES;

/// First look at the program, and each next one after twice as long, up to the last: what a short program has is found
/// within a tenth of its run, and a long one is not looked at for ever.
const FIRST_LOOK: Duration = Duration::from_millis(20);
const LAST_LOOK: Duration = Duration::from_secs(1);
/// How soon the end of the program is heeded.
const STEP: Duration = Duration::from_millis(20);

/// Where a region of a plan is in the running program.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedRegion {
    /// What the plan calls it; one place a name.
    pub region: String,
    /// The windows in it to make huge; or why it is not there, or not what was planned for.
    pub windows: Result<Vec<FoundWindow>, String>,
}

/// A window of the running program that is to be huge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundWindow {
    /// First byte.
    pub start: u64,
    /// Translation cycles of the model that the plan has for it.
    pub cycles: f64,
}

/// Finds a plan's regions. The plan is another room's: whoever starts this brings it.
pub trait PlanFinder: Send + Sync {
    /// Every region of the plan, by what `/proc/PID/maps` lists now.
    fn find(&self, maps: &str) -> Vec<PlannedRegion>;
}

/// What became of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct AppliedPlan {
    /// Who makes the huge pages; absent: none was to be made.
    pub way: Option<CollapseSide>,
    /// Windows of the plan that were found.
    pub found: usize,
    /// Of these, made huge.
    pub collapsed: usize,
    /// Translation cycles of the model that the plan has for those that were huge at last.
    pub huge_cycles: f64,
    /// The same, each window's multiplied by the seconds from the start until it was seen huge: over `huge_cycles`, the
    /// mean time at which they became huge.
    pub huge_cycle_seconds: f64,
    /// Bytes in memory that this added.
    pub bloat_bytes: u64,
    /// The longest call: page faults of the program may have waited as long.
    pub longest_call_nanos: u64,
    /// Windows that were refused, by why.
    pub refused: BTreeMap<String, u64>,
    /// Regions that never were what the plan says, and how they differed at the last look.
    pub changed: BTreeMap<String, String>,
    /// Windows found that never had anything in memory, or were still being filled at the end.
    pub empty: usize,
}

/// The thread beside a program.
#[derive(Debug)]
pub struct PlanApplier {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<AppliedPlan>,
}

impl PlanApplier {
    /// Begins to apply a plan to a process.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(pid: u32, plan: Arc<dyn PlanFinder>) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let beside = std::thread::Builder::new().name("hugepages".into());
        let thread = beside.spawn(move || {
            let mut state = ApplierState::begin();
            let mut wait = FIRST_LOOK;
            while pause(wait, &stopped) {
                wait = (wait * 2).min(LAST_LOOK);
                state.look(pid, &*plan, &stopped);
            }
            state.done()
        })?;
        Ok(Self { stop, thread })
    }

    /// Ends it; gives what was done.
    pub fn end(self) -> AppliedPlan {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().unwrap_or_default()
    }
}

/// Waits; `false` = it is to stop.
fn pause(time: Duration, stopped: &AtomicBool) -> bool {
    let mut left = time;
    while !left.is_zero() && !stopped.load(Ordering::SeqCst) {
        let step = left.min(STEP);
        std::thread::sleep(step);
        left -= step;
    }
    !stopped.load(Ordering::SeqCst)
}

struct ApplierState {
    began: Instant,
    done: AppliedPlan,
    /// Regions that were found once.
    there: BTreeSet<String>,
    /// Windows that were found.
    found: BTreeSet<u64>,
    /// Those that are done with, for good or bad.
    settled: BTreeSet<u64>,
    /// Pages that the others had in memory at the last look.
    filled: BTreeMap<u64, u32>,
}

impl ApplierState {
    fn begin() -> Self {
        let (done, there, filled) = Default::default();
        Self { began: Instant::now(), done, there, found: BTreeSet::new(), settled: BTreeSet::new(), filled }
    }

    fn look(&mut self, pid: u32, plan: &dyn PlanFinder, stopped: &AtomicBool) {
        // A program that has ended, or may not be looked at, is found out by the handle.
        let Ok(maps) = Process::of(pid).maps_text() else { return };
        if maps.is_empty() {
            return;
        }
        let mut open: Vec<FoundWindow> = Vec::new();
        for PlannedRegion { region, windows } in plan.find(&maps) {
            match windows {
                Ok(windows) => {
                    self.done.changed.remove(&region);
                    self.there.insert(region);
                    self.found.extend(windows.iter().map(|window| window.start));
                    open.extend(windows.into_iter().filter(|window| !self.settled.contains(&window.start)));
                }
                Err(why) if !self.there.contains(&region) => {
                    self.done.changed.insert(region, why);
                }
                // It was there, and the program has unmapped it.
                Err(_) => {}
            }
        }
        if open.is_empty() {
            return;
        }
        let (handle, memory) = match (CollapseHandle::open(pid), ProcessMemory::of(pid)) {
            (Ok(handle), Ok(memory)) => (handle, memory),
            (Err(e), _) | (_, Err(e)) => {
                self.done.refused.insert(e.to_string(), open.len() as u64);
                return;
            }
        };
        self.done.way = Some(handle.way());
        for FoundWindow { start, cycles } in open {
            let Some(window) = memory.window(start) else { continue };
            if window.is_huge() {
                self.is_huge(cycles);
                self.settled.insert(start);
                continue;
            }
            // While it is being filled each new page would be copied for nothing.
            let before = self.filled.insert(start, window.small_pages);
            if window.small_pages < WINDOW_PAGES && before != Some(window.small_pages) {
                continue;
            }
            if stopped.load(Ordering::SeqCst) {
                return;
            }
            let tried = handle.collapse(start);
            self.done.longest_call_nanos = self.done.longest_call_nanos.max(tried.nanos());
            match tried {
                CollapseResult::Collapsed { .. } => {
                    self.done.collapsed += 1;
                    self.is_huge(cycles);
                    self.done.bloat_bytes += window.bloat_bytes();
                }
                // The program is stopped: all are tried again at the next look.
                CollapseResult::Refused { errno: libc::ETIMEDOUT, why, .. } => {
                    self.done.refused.insert(why, 1);
                    return;
                }
                CollapseResult::Refused { why, .. } => *self.done.refused.entry(why).or_default() += 1,
            }
            self.settled.insert(start);
        }
    }

    /// From now on one more window is huge.
    fn is_huge(&mut self, cycles: f64) {
        self.done.huge_cycles += cycles;
        self.done.huge_cycle_seconds += cycles * self.began.elapsed().as_secs_f64();
    }

    fn done(self) -> AppliedPlan {
        let empty = self.found.difference(&self.settled).count();
        AppliedPlan { found: self.found.len(), empty, ..self.done }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::watch::tests::{are_made_where_asked, Windows};
    use super::*;

    /// Finds what it is told, a look at a time; then nothing.
    struct Told(Mutex<Vec<Vec<PlannedRegion>>>);

    impl PlanFinder for Told {
        fn find(&self, _: &str) -> Vec<PlannedRegion> {
            self.0.lock().expect("whole").pop().unwrap_or_default()
        }
    }

    fn region(name: &str, windows: Result<&[u64], &str>) -> PlannedRegion {
        let found = |starts: &[u64]| starts.iter().map(|&start| FoundWindow { start, cycles: 1.0 }).collect();
        PlannedRegion { region: name.into(), windows: windows.map(found).map_err(String::from) }
    }

    /// No window is mapped where these are: they stay empty.
    #[test]
    fn a_region_is_not_as_planned_as_long_as_it_never_was() {
        let looks = [
            vec![region("a", Err("not there")), region("b", Err("too small"))],
            vec![region("a", Ok(&[1 << 60])), region("b", Err("too large"))],
            vec![region("a", Err("gone")), region("b", Err("too large"))],
            vec![region("a", Ok(&[1 << 60, 2 << 60]))],
        ];
        let told = Told(Mutex::new(looks.into_iter().rev().collect()));
        let (mut state, stopped) = (ApplierState::begin(), AtomicBool::new(false));
        let mut look = || {
            state.look(std::process::id(), &told, &stopped);
            state.done.changed.iter().map(|(region, why)| format!("{region}: {why}")).collect::<Vec<_>>()
        };
        assert_eq!(look(), ["a: not there", "b: too small"]);
        assert_eq!(look(), ["b: too large"]);
        assert_eq!(look(), ["b: too large"], "it was there: the program has unmapped it");
        look();
        let done = state.done();
        assert_eq!((done.found, done.empty, done.collapsed), (2, 2, 0));
    }

    /// Nobody fills the rest of the last window: at the second look it is as it was at the first.
    #[test]
    fn a_full_window_becomes_huge_at_once_and_another_once_it_is_not_filled_any_more() {
        if !are_made_where_asked() {
            return;
        }
        let windows = Windows::new(3);
        let planned = [windows.at(0), windows.at(2)];
        let looks = (0..3).map(|_| vec![region("a", Ok(&planned))]).collect();
        let (told, mut state) = (Told(Mutex::new(looks)), ApplierState::begin());
        let mut look = || {
            state.look(std::process::id(), &told, &AtomicBool::new(false));
            let done = &state.done;
            assert!(done.refused.is_empty(), "{done:?}");
            (done.collapsed, done.huge_cycles, done.bloat_bytes)
        };
        let half = 1 << 20;
        assert_eq!([look(), look(), look()], [(1, 1.0, 0), (2, 2.0, half), (2, 2.0, half)]);
        // What is huge already when it is found is left as it is.
        let again = Told(Mutex::new(vec![vec![region("a", Ok(&planned))]]));
        let mut later = ApplierState::begin();
        later.look(std::process::id(), &again, &AtomicBool::new(false));
        let done = later.done();
        assert_eq!((done.found, done.collapsed, done.huge_cycles, done.empty), (2, 0, 2.0, 0));
    }

    #[test]
    fn windows_that_are_done_with_are_not_empty() {
        let mut state = ApplierState::begin();
        state.found.extend([1, 2, 3]);
        state.settled.insert(2);
        state.is_huge(40.0);
        state.is_huge(2.0);
        let since = state.began;
        let done = state.done();
        assert_eq!((done.found, done.empty, done.huge_cycles), (3, 2, 42.0));
        let most = 42.0 * since.elapsed().as_secs_f64();
        assert!((0.0..=most).contains(&done.huge_cycle_seconds) && done.huge_cycle_seconds > 0.0, "{done:?}");
    }

    #[test]
    fn a_pause_takes_its_time_unless_it_is_to_stop() {
        let began = Instant::now();
        assert!(pause(3 * STEP, &AtomicBool::new(false)));
        assert!(began.elapsed() >= 3 * STEP);
        assert!(pause(Duration::ZERO, &AtomicBool::new(false)));
        // An hour is not waited for.
        assert!(!pause(Duration::from_secs(3600), &AtomicBool::new(true)));
        let stopped = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| pause(Duration::from_secs(3600), &stopped));
            stopped.store(true, Ordering::SeqCst);
            assert!(!waits.join().expect("it ends"));
        });
    }

    /// Counts the looks.
    struct Counts(std::sync::atomic::AtomicU32);

    impl PlanFinder for Counts {
        fn find(&self, _: &str) -> Vec<PlannedRegion> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Vec::new()
        }
    }

    /// The first after 20 ms, the second after 40 more, the third after 80 more.
    #[test]
    fn each_look_comes_after_twice_the_time_of_the_one_before() {
        let (counts, began) = (Arc::new(Counts(0.into())), Instant::now());
        let applier = PlanApplier::start(std::process::id(), Arc::clone(&counts) as Arc<dyn PlanFinder>);
        std::thread::sleep(10 * FIRST_LOOK);
        assert_eq!(applier.expect("a thread").end(), AppliedPlan::default());
        let (looks, passed) = (counts.0.load(Ordering::SeqCst), began.elapsed());
        assert!(looks < 16 && passed >= FIRST_LOOK * ((1 << looks) - 1), "{looks} in {passed:?}");
    }

    #[test]
    fn a_process_that_has_ended_is_no_harm() {
        let told = Told(Mutex::new(vec![vec![region("a", Ok(&[1 << 60]))]]));
        let mut state = ApplierState::begin();
        state.look(4_194_305, &told, &AtomicBool::new(false));
        assert_eq!(state.done(), AppliedPlan::default());
    }
}
