//! A program that is watched as long as it lives. Its looks are at set times; what is asserted holds whenever they
//! come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lookaside_runtime::hugepages::{FoundWindow, HugePageWatch, ObservedBy, PlanApplier, PlanFinder, PlannedRegion};

use crate::live::Sees;
use crate::support::{can_collapse, Obedient};

const HUGE: u64 = 2 << 20;

/// Until it is so; a minute is not enough for a machine that never lets others run.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !so() {
        assert!(Instant::now() < end, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_budget_is_what_is_in_use() {
    if !can_collapse() {
        return;
    }
    let mut child = Obedient::start();
    let sum = child.tell("sum");
    let seen = Sees((0..12).flat_map(|n| vec![child.window(n); 100 - n as usize]).collect());
    let settings = "auto:10".parse().expect("settings");
    let watch = HugePageWatch::start(child.pid(), settings, Arc::new(seen)).expect("a thread");
    // Eight at first, then the rest.
    until("eight windows", || child.huge_bytes() >= 8 * HUGE);
    assert_eq!(child.tell("sum"), sum);
    until("ten windows", || child.huge_bytes() == 10 * HUGE);
    // Two that are given back are taken elsewhere.
    child.tell("unmap 0");
    child.tell("unmap 1");
    assert!(child.huge_bytes() <= 10 * HUGE);
    until("ten windows again", || child.huge_bytes() == 10 * HUGE);
    child.child.kill().expect("it runs");
    let followed = watch.end();
    assert_eq!((followed.budget, followed.collapsed, followed.by), (10, 12, Some(ObservedBy::Sample)), "{followed:?}");
    assert!(followed.choices >= 3 && followed.refused.is_empty() && followed.notes.is_empty(), "{followed:?}");
    assert!(followed.longest_call_nanos > 0 && followed.calls_nanos >= followed.longest_call_nanos);
}

#[test]
fn a_program_that_forbids_huge_pages_is_left_alone() {
    if !can_collapse() {
        return;
    }
    let mut child = Obedient::start();
    child.tell("forbid");
    let watch = HugePageWatch::start(child.pid(), "auto:4".parse().expect("settings"), Arc::new(Sees(vec![child.at])));
    std::thread::sleep(Duration::from_millis(400));
    let followed = watch.expect("a thread").end();
    assert_eq!((followed.collapsed, followed.choices, child.huge_bytes()), (0, 0, 0));
    // At the first look, if one came.
    assert!(followed.notes.iter().all(|note| note.contains("PR_SET_THP_DISABLE")), "{followed:?}");
    child.end();
}

#[test]
fn a_plans_windows_become_huge_as_they_come_into_being() {
    /// Finds two windows in one region, and another region only once it is asked for.
    struct Two(u64, Arc<AtomicBool>);
    impl PlanFinder for Two {
        fn find(&self, maps: &str) -> Vec<PlannedRegion> {
            assert!(maps.contains(" rw-p "), "a listing");
            let later = self.1.load(Ordering::SeqCst);
            let window = |n: u64| FoundWindow { start: self.0 + n * HUGE, cycles: n as f64 };
            let windows = if later { Ok(vec![window(7)]) } else { Err("not there yet".into()) };
            let place = |region: &str, windows| PlannedRegion { region: region.into(), windows };
            // The last window is half empty, and nobody fills it.
            let first = vec![window(2), window(31)];
            vec![
                place("first", Ok(first)),
                place("second", windows),
                place("third", Err("two of that size, planned was one".into())),
            ]
        }
    }
    if !can_collapse() {
        return;
    }
    let mut child = Obedient::start();
    let (sum, later) = (child.tell("sum"), Arc::new(AtomicBool::new(false)));
    let began = Instant::now();
    let apply = PlanApplier::start(child.pid(), Arc::new(Two(child.at, Arc::clone(&later)))).expect("a thread");
    until("two windows", || child.huge_bytes() == 2 * HUGE);
    later.store(true, Ordering::SeqCst);
    until("three windows", || child.huge_bytes() == 3 * HUGE);
    assert_eq!(child.tell("sum"), sum);
    let done = apply.end();
    assert_eq!((done.found, done.collapsed, done.empty, done.bloat_bytes), (3, 3, 0, 1 << 20), "{done:?}");
    let changed: Vec<_> = done.changed.iter().map(|(region, why)| (region.as_str(), why.as_str())).collect();
    assert_eq!(changed, [("third", "two of that size, planned was one")]);
    assert!(done.refused.is_empty() && done.longest_call_nanos > 0);
    assert_eq!(done.huge_cycles, 40.0);
    // No window became huge before the first look, and none after this.
    let seconds = done.huge_cycle_seconds / done.huge_cycles;
    assert!(0.02 < seconds && seconds < began.elapsed().as_secs_f64(), "{done:?}");
    child.end();
}
