//! Huge pages of a real process's memory.

use std::time::Duration;

use lookaside_runtime::hugepages::{
    promote, AddressSampler, CollapseHandle, CollapseResult, FitWindow, HugePageError, ObservedBy, ProcessMemory,
    PromotionRequest, Unfit,
};

use crate::support::{can_collapse, Obedient, WINDOWS};

/// Sees a program where it is told to.
pub struct Sees(pub Vec<u64>);

impl AddressSampler for Sees {
    fn sample(&self, _: u32, _: Duration, _: &dyn Fn() -> bool) -> Result<Vec<u64>, String> {
        Ok(self.0.clone())
    }
}

/// Refuses to look.
struct Blind;

impl AddressSampler for Blind {
    fn sample(&self, _: u32, _: Duration, _: &dyn Fn() -> bool) -> Result<Vec<u64>, String> {
        Err("no sampling here".into())
    }
}

fn order(pid: u32, budget: usize, look: &dyn AddressSampler) -> PromotionRequest<'_> {
    PromotionRequest {
        pid,
        budget,
        time: Duration::from_secs(1),
        by: None,
        dry: false,
        look,
        stop: &|| false,
        note: &|_| Ok(1),
    }
}

/// As often as this in window 3, 17, 31 and 8, and elsewhere.
fn skewed(child: &Obedient) -> Sees {
    let places = [(3, 40), (17, 30), (31, 20), (8, 10), (5, 1)];
    let mut addrs: Vec<u64> = places.iter().flat_map(|&(n, times)| vec![child.window(n) + 4096; times]).collect();
    addrs.extend([0, 0, 0x1000]);
    Sees(addrs)
}

#[test]
fn the_windows_seen_most_become_huge_and_nothing_else_changes() {
    if !can_collapse() {
        return;
    }
    let mut child = Obedient::start();
    let (sum, seen) = (child.tell("sum"), skewed(&child));
    assert_eq!(child.huge_bytes(), 0);
    let dry = promote(&PromotionRequest { dry: true, ..order(child.pid(), 4, &seen) }).expect("a choice");
    assert!(dry.rows.iter().all(|row| row.tried.is_none()) && child.huge_bytes() == 0, "{dry:?}");
    let applied = promote(&order(child.pid(), 4, &seen)).expect("a choice");
    let rows: Vec<_> = applied.rows.iter().map(|row| (row.chosen.window.start, row.chosen.weight)).collect();
    assert_eq!(rows, [(3, 40), (17, 30), (31, 20), (8, 10)].map(|(n, weight)| (child.window(n), weight)));
    assert_eq!(
        (applied.failed(), applied.by, applied.candidates as u64),
        (0, ObservedBy::Sample, WINDOWS),
        "{applied:?}"
    );
    assert!(applied.rows.iter().all(|row| row.huge_at_end == Some(true)), "{applied:?}");
    // The half of the last window that was never touched.
    assert_eq!(applied.rows.iter().map(|row| row.chosen.bloat_bytes).collect::<Vec<_>>(), [0, 0, 1 << 20, 0]);
    let fell = applied.fell.as_ref().expect("samples");
    assert_eq!((fell.samples, fell.small, fell.unknown, fell.unmapped), (104, 101, 2, 1));
    assert!(applied.longest_call_nanos() > 0 && applied.held_out.is_some());
    assert_eq!(child.huge_bytes(), 4 * (2 << 20));
    let memory = ProcessMemory::of(child.pid()).expect("its memory");
    let huge: Vec<u64> = memory.windows.iter().filter(|window| window.is_huge()).map(|window| window.start).collect();
    assert_eq!(huge, [3, 8, 17, 31].map(|n| child.window(n)));
    assert_eq!(child.tell("sum"), sum);
    // What is huge is not chosen again: of those seen one is left.
    let again = promote(&order(child.pid(), 4, &seen)).expect("a choice");
    let left: Vec<u64> = again.rows.iter().map(|row| row.chosen.window.start).collect();
    assert_eq!((left, again.huge_before), (vec![child.window(5)], 4));
    assert_eq!(child.tell("sum"), sum);
    child.end();
}

#[test]
fn what_the_program_does_meanwhile_is_no_harm_and_is_named() {
    if !can_collapse() {
        return;
    }
    let mut child = Obedient::start();
    let handle = CollapseHandle::open(child.pid()).expect("a process");
    let refused = |tried: CollapseResult, parts: [&str; 1], numbers: &[i32]| match tried {
        CollapseResult::Refused { errno, why, .. } => {
            assert!(numbers.contains(&errno) && parts.iter().all(|part| why.contains(part)), "{errno}: {why}");
        }
        other => panic!("{other:?}"),
    };
    child.tell("unmap 2");
    refused(handle.collapse(child.window(2)), ["not mapped any more"], &[libc::ENOMEM, libc::EINVAL]);
    child.tell("refuse 4");
    refused(handle.collapse(child.window(4)), ["MADV_NOHUGEPAGE"], &[libc::EINVAL]);
    let fit = |memory: &ProcessMemory, start: u64| {
        let area = memory.areas.iter().find(|area| area.start <= start && start < area.end);
        area.map(|area| area.unfit)
    };
    let locks = child.tell("lock 6") == 0;
    let memory = ProcessMemory::of(child.pid()).expect("its memory");
    assert_eq!(fit(&memory, child.window(2)), None);
    assert_eq!(fit(&memory, child.window(4)), Some(Some(Unfit::NoHugePage)));
    assert_eq!(fit(&memory, child.window(5)), Some(None));
    if locks {
        assert_eq!(fit(&memory, child.window(6)), Some(Some(Unfit::Locked)));
    } else {
        eprintln!("LEFT OUT: memory cannot be locked here (ulimit -l)");
    }
    for gone in [2, 4] {
        assert_eq!(memory.window(child.window(gone)), None);
    }
    assert!(handle.collapse(child.window(9)).is_collapsed());
    child.tell("forbid");
    refused(handle.collapse(child.window(10)), ["PR_SET_THP_DISABLE"], &[libc::EINVAL]);
    let off = CollapseHandle::open(child.pid()).expect_err("switched off").to_string();
    assert!(off.contains("PR_SET_THP_DISABLE") && off.contains(&child.pid().to_string()), "{off}");
    child.tell("exec");
    // The answer comes right before the exec.
    while handle.is_same() {
        std::thread::yield_now();
    }
    refused(handle.collapse(child.window(11)), ["another program"], &[0]);
    child.child.kill().expect("it runs");
    child.child.wait().expect("it ends");
    refused(handle.collapse(child.window(12)), ["has ended"], &[0, libc::ESRCH]);
}

#[test]
fn a_program_that_ends_meanwhile_is_an_error_in_a_line() {
    /// Ends the program while it is looked at.
    struct Kills(u32);
    impl AddressSampler for Kills {
        fn sample(&self, _: u32, _: Duration, _: &dyn Fn() -> bool) -> Result<Vec<u64>, String> {
            // SAFETY: a child of this test that nobody has waited for yet.
            unsafe { libc::kill(self.0 as i32, libc::SIGKILL) };
            while CollapseHandle::open(self.0).is_ok() {
                std::thread::yield_now();
            }
            Ok(Vec::new())
        }
    }
    if !can_collapse() {
        return;
    }
    let child = Obedient::start();
    let error = promote(&order(child.pid(), 4, &Kills(child.pid()))).expect_err("it has ended").to_string();
    assert!(error.starts_with(&format!("process {}: ", child.pid())) && !error.contains('\n'), "{error}");
}

#[test]
fn without_samples_the_referenced_bits_decide() {
    if !can_collapse() {
        return;
    }
    let mut child = Obedient::start();
    let sum = child.tell("sum");
    let refused = promote(&PromotionRequest { by: Some(ObservedBy::Sample), ..order(child.pid(), 4, &Blind) })
        .expect_err("asked for");
    assert_eq!(refused, HugePageError::Bad("no sampling here".into()));
    let stopped = std::cell::Cell::new(0);
    // It reads all of its memory after the bits were cleared, and before they are looked at.
    let child = std::cell::RefCell::new(child);
    let stop = || {
        if stopped.replace(1) == 0 {
            child.borrow_mut().tell("sum");
        }
        false
    };
    let pid = child.borrow().pid();
    let applied = promote(&PromotionRequest { stop: &stop, ..order(pid, 2, &Blind) }).expect("a choice");
    assert_eq!((applied.by, applied.no_samples.as_deref()), (ObservedBy::Referenced, Some("no sampling here")));
    assert_eq!((applied.intervals, applied.failed(), applied.fell, applied.held_out), (Some(1), 0, None, None));
    assert!(applied.rows.len() == 2 && applied.chosen_weight > 0, "{:?}", applied.rows);
    assert!(applied.longest_clearing_nanos > Some(0) && applied.weight >= applied.chosen_weight);
    // All of it was read alike: the fullest are the lowest.
    let mut child = child.into_inner();
    let chosen: Vec<u64> = applied.rows.iter().map(|row| row.chosen.window.start).collect();
    assert_eq!(chosen, [child.window(0), child.window(1)]);
    assert_eq!(child.huge_bytes(), 2 * (2 << 20));
    assert_eq!(child.tell("sum"), sum);
}

#[test]
fn being_stopped_leaves_the_rest_as_it_is() {
    if !can_collapse() {
        return;
    }
    let child = Obedient::start();
    let asked = std::cell::Cell::new(0);
    let stop = || asked.replace(asked.get() + 1) >= 2;
    let applied =
        promote(&PromotionRequest { stop: &stop, ..order(child.pid(), 4, &skewed(&child)) }).expect("a choice");
    assert_eq!((applied.stopped, applied.failed(), child.huge_bytes()), (true, 2, 2 * (2 << 20)));
}

#[test]
fn who_is_not_there_is_named() {
    for pid in [u32::MAX, 4_194_305] {
        for error in [
            CollapseHandle::open(pid).map(|_| ()).expect_err("nobody"),
            ProcessMemory::of(pid).map(|_| ()).expect_err("nobody"),
            promote(&order(pid, 1, &Blind)).map(|_| ()).expect_err("nobody"),
        ] {
            assert!(error.to_string().starts_with(&format!("process {pid}: ")), "{error}");
        }
    }
    assert_eq!(
        FitWindow { start: 0, area: 0, small_pages: 0, huge_pages: 512, swapped_pages: 0 }.bloat_bytes(),
        0,
        "a huge page is whole"
    );
}
