//! The microbenchmarks against machines that are made up: rows say what those machines are, or why not.

#[path = "../../../harness/tests/support/made_up.rs"]
mod made_up;
// Shared with the probe's tests, which use more of it.
#[allow(dead_code, unused_imports)]
#[path = "../../../../crates/probe/tests/sim/mod.rs"]
mod sim;

use std::cell::Cell;

use lookaside_harness::metal::Setting;
use lookaside_harness::{PaperRow, RowVerdict};
use lookaside_machine::Replacement;
use lookaside_probe::{Halt, OtherCpu};
use lookaside_pt_baker::PAPER;

use made_up::{claim, measure, measured, noisy, row, setting, value};
use sim::{Array, Other, Sim};

/// The thesis's machine, as its preset has it but for coalescing.
fn zen_3() -> Sim {
    noisy(&[Array::linear(0, 64, Replacement::Lru), Array::linear(7, 16, Replacement::Lru)])
}

#[test]
fn pt_baker_where_all_is_as_in_the_thesis_but_for_coalescing() {
    let found = measure(&PAPER, &mut zen_3());
    let l1 = row(&found, "4.2 left", "smallest");
    assert_eq!((value(l1), l1.verdict), (65.0, RowVerdict::AnotherMachine));
    assert_eq!(row(&found, "4.2 left", "set in").verdict, RowVerdict::Holds);
    // One set in ten overflows by 2061 pages, nine in ten by 2163; the sizes looked at are up to 64 pages apart.
    let begins = value(row(&found, "4.2 right", "misses begin"));
    assert!((2056.0..=2128.0).contains(&begins), "{begins}");
    let full = value(row(&found, "4.2 right", "in full"));
    assert!((2150.0..=2240.0).contains(&full), "{full}");
    assert_eq!(row(&found, "4.2 right", "has as many").verdict, RowVerdict::Holds);
    // LRU and this index explain it alone.
    let why = row(&found, "4.4.3", "why not sooner");
    assert_eq!(why.verdict, RowVerdict::Differs);
    assert!(claim(why).contains("begins at 2061 and is complete at 2163"), "{why:?}");
    let prefetch = row(&found, "4.3", "prefetch");
    assert_eq!(prefetch.verdict, RowVerdict::Holds, "{prefetch:?}");
    let siblings = row(&found, "4.6", "two hardware threads");
    assert_eq!(siblings.verdict, RowVerdict::NotReproduced);
    assert!(siblings.note.contains("may run on one CPU only"), "{siblings:?}");
    assert_eq!(found.series.len(), 4);
    for series in &found.series {
        assert_eq!(series.points.len(), series.intervals.len());
        assert!(series.points.windows(2).all(|w| w[0].0 < w[1].0));
        assert!(series.points.iter().zip(&series.intervals).all(|((_, y), (low, high))| low <= y && y <= high));
    }
    assert_eq!(found, measure(&PAPER, &mut zen_3()), "the same again, to the bit");
}

/// Rows of Figure 4.6 on a small machine with these other CPUs.
fn figure_4_6(cpus: &[(usize, Option<bool>, Other)], siblings: &[usize]) -> [PaperRow; 2] {
    let mut metal = noisy(&[Array::linear(3, 4, Replacement::Lru), Array::linear(5, 8, Replacement::Lru)]);
    let cpu = |&(number, sibling, other)| (OtherCpu { number, sibling }, other);
    metal.habits.cpus = cpus.iter().map(cpu).collect();
    let setting = Setting { siblings: siblings.into(), ..setting() };
    let (found, _) = measured(&PAPER, &mut metal, &setting, &|| None, &mut |_| ());
    assert_eq!(found.halted, None);
    ["two hardware threads", "control"].map(|what| row(&found, "4.", what).clone())
}

#[test]
fn whether_hardware_threads_share_entries_is_told() {
    let apart = (7, Some(false), Other::Apart);
    for (other, verdict, says) in [
        (Other::Tagged, RowVerdict::Holds, "not shared: the same pages cost as many misses"),
        (Other::Halves, RowVerdict::Holds, "not shared: each thread has its part"),
        (Other::Shared, RowVerdict::Differs, "shared: the same pages cost no misses"),
        (Other::Apart, RowVerdict::Differs, "not shared, and misses do not rise"),
    ] {
        let [smt, control] = figure_4_6(&[apart, (1, Some(true), other)], &[1]);
        assert_eq!(smt.verdict, verdict, "{smt:?}");
        assert!(claim(&smt).starts_with(says) && smt.note.starts_with("CPU 1; "), "{smt:?}");
        assert_eq!(control.verdict, RowVerdict::Holds, "{control:?}");
        assert!(claim(&control).starts_with("no effect") && control.note.starts_with("CPU 7; "), "{control:?}");
    }
}

#[test]
fn without_a_sibling_it_says_so_and_the_control_is_run() {
    let [smt, control] = figure_4_6(&[(7, Some(false), Other::Apart)], &[]);
    assert!(smt.ours.is_none() && smt.note.starts_with("no SMT sibling here"), "{smt:?}");
    assert_eq!(control.verdict, RowVerdict::Holds, "{control:?}");
    // A sibling that this program may not run on.
    let [smt, _] = figure_4_6(&[(7, Some(false), Other::Apart)], &[1]);
    assert!(smt.ours.is_none() && smt.note.contains("[1] share the core measured, but"), "{smt:?}");
    // A guest that was told wrong.
    let [_, control] = figure_4_6(&[(7, Some(false), Other::Tagged)], &[]);
    assert_eq!(control.verdict, RowVerdict::Differs, "{control:?}");
    // Nobody says, or there is no other CPU.
    let rows = figure_4_6(&[(7, None, Other::Tagged)], &[]);
    assert!(rows.iter().all(|row| row.ours.is_none() && row.note.starts_with("sysfs does not say")), "{rows:?}");
}

#[test]
fn a_prefetch_that_fills_nothing_is_seen() {
    let mut metal = zen_3();
    metal.habits.prefetch_fills = false;
    let found = measure(&PAPER, &mut metal);
    let prefetch = row(&found, "4.3", "prefetch");
    assert_eq!((prefetch.verdict, claim(prefetch)), (RowVerdict::Differs, "no: loads do not miss more"));
}

#[test]
fn a_run_that_is_stopped_gives_what_it_knows() {
    let setting = Setting { siblings: vec![1], ..setting() };
    let small = || noisy(&[Array::linear(4, 4, Replacement::Lru), Array::linear(7, 4, Replacement::Lru)]);
    let asked = Cell::new(0);
    let run = |allowed: u64| {
        asked.set(0);
        let halt = || {
            asked.set(asked.get() + 1);
            (asked.get() > allowed).then_some(Halt::Interrupted)
        };
        measured(&PAPER, &mut small(), &setting, &halt, &mut |_| ()).0
    };
    let all = run(u64::MAX);
    assert_eq!(all.halted, None);
    let needed = asked.get();
    let mut known = Vec::new();
    for part in [0, 4, 7] {
        let found = run(part * needed / 8);
        assert_eq!(found.halted.as_deref(), Some("interrupted"));
        let last = row(&found, "4.2 right", "in full");
        assert_eq!((last.verdict, last.note.as_str()), (RowVerdict::NotReproduced, "not reached: interrupted"));
        let sharing = |found| row(found, "4.6", "two hardware threads").clone();
        let reached = part > 0 && sharing(&found) == sharing(&all);
        assert!(reached || sharing(&found).note == "not reached: interrupted", "{:?}", sharing(&found));
        let same = |(stopped, whole): (&PaperRow, &PaperRow)| stopped.ours.is_none() || stopped == whole;
        assert!(found.rows.iter().zip(&all.rows).all(same), "what is known is what it would have been");
        known.push(found.rows.iter().filter(|row| row.ours.is_some()).count());
    }
    assert!(known[0] == 0 && known[2] > 0 && known.is_sorted(), "{known:?}");
}

#[test]
fn what_a_machine_cannot_do_leaves_the_rest() {
    let mut metal = noisy(&[Array::linear(4, 4, Replacement::Lru), Array::linear(7, 4, Replacement::Lru)]);
    metal.habits.shots = false;
    let found = measure(&PAPER, &mut metal);
    assert_eq!(row(&found, "4.3", "prefetch").note, "single shots are not supported here");
    assert_eq!(row(&found, "4.2 left", "set in").verdict, RowVerdict::Holds);
}
