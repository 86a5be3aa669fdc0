//! The papers' microbenchmarks against machines that are made up: rows say what those machines are, or why not.

use std::cell::Cell;
use std::time::Duration;

use crate::sim::{Array, Costs, Noise, Other, Sim};
use lookaside_machine::{preset, Replacement};
use lookaside_papers::*;
use lookaside_probe::{Cpu, Halt, Metal};

/// A made-up machine with noise.
fn sim(arrays: &[Array]) -> Sim {
    let costs = Costs { hit: 4.0, second: 7.0, walk: 30.0 };
    let noise = Noise { sigma: 0.005, bias: 0.001, outliers: 0.03, interrupts: 0.005, grain: 1.0 };
    Sim::new(arrays, 28, costs, noise, 5)
}

/// Nothing is given, and there is time.
fn setting() -> Setting {
    Setting { machine: "made up".into(), siblings: Vec::new(), seed: 3, given: None, search: Duration::MAX }
}

fn measure(paper: &str, metal: &mut dyn Metal) -> Reproduction {
    let setting = setting();
    let (found, levels) = reproduce_metal(paper, metal, &setting, &|| None, &mut |_| ()).unwrap();
    // What the experiments rest on is given with them.
    assert_eq!(levels.iter().map(|level| level.level).collect::<Vec<_>>(), [1, 2]);
    for row in &found.rows {
        assert_eq!(row.ours.is_none(), row.verdict == Verdict::NotReproduced);
        assert!(row.verdict != Verdict::NotReproduced || !row.note.is_empty(), "{row:?}");
    }
    assert!(found.measured && found.halted.is_none(), "{:?}", found.halted);
    found
}

fn row<'a>(found: &'a Reproduction, place: &str, what: &str) -> &'a Row {
    let mut rows = found.rows.iter().filter(|row| row.place.contains(place) && row.what.contains(what));
    rows.next().unwrap_or_else(|| panic!("no row {what:?}"))
}

fn value(row: &Row) -> f64 {
    match row.ours {
        Some(Ours::Value(value)) => value,
        ref other => panic!("{}: {other:?}", row.what),
    }
}

fn claim(row: &Row) -> &str {
    match &row.ours {
        Some(Ours::Claim { found, .. }) => found,
        other => panic!("{}: {other:?}, {}", row.what, row.note),
    }
}

/// The thesis's machine, as its preset has it but for coalescing.
fn zen_3() -> Sim {
    sim(&[Array::linear(0, 64, Replacement::Lru), Array::linear(7, 16, Replacement::Lru)])
}

#[test]
fn pt_baker_where_all_is_as_in_the_thesis_but_for_coalescing() {
    let found = measure("pt-baker", &mut zen_3());
    let l1 = row(&found, "4.2 left", "smallest");
    assert_eq!((value(l1), l1.verdict), (65.0, Verdict::AnotherMachine));
    assert_eq!(row(&found, "4.2 left", "set in").verdict, Verdict::Holds);
    // One set in ten overflows by 2061 pages, nine in ten by 2163; the sizes looked at are up to 64 pages apart.
    let begins = value(row(&found, "4.2 right", "misses begin"));
    assert!((2056.0..=2128.0).contains(&begins), "{begins}");
    let full = value(row(&found, "4.2 right", "in full"));
    assert!((2150.0..=2240.0).contains(&full), "{full}");
    assert_eq!(row(&found, "4.2 right", "has as many").verdict, Verdict::Holds);
    // LRU and this index explain it alone.
    let why = row(&found, "4.4.3", "why not sooner");
    assert_eq!(why.verdict, Verdict::Differs);
    assert!(claim(why).contains("begins at 2061 and is complete at 2163"), "{why:?}");
    let prefetch = row(&found, "4.3", "prefetch");
    assert_eq!(prefetch.verdict, Verdict::Holds, "{prefetch:?}");
    let siblings = row(&found, "4.6", "two hardware threads");
    assert_eq!(siblings.verdict, Verdict::NotReproduced);
    assert!(siblings.note.contains("may run on one CPU only"), "{siblings:?}");
    assert_eq!(found.series.len(), 4);
    for series in &found.series {
        assert_eq!(series.points.len(), series.intervals.len());
        assert!(series.points.windows(2).all(|w| w[0].0 < w[1].0));
        assert!(series.points.iter().zip(&series.intervals).all(|((_, y), (low, high))| low <= y && y <= high));
    }
    assert_eq!(found, measure("pt-baker", &mut zen_3()), "the same again, to the bit");
}

/// Rows of Figure 4.6 on a small machine with these other CPUs.
fn figure_4_6(cpus: &[(usize, Option<bool>, Other)], siblings: &[usize]) -> [Row; 2] {
    let mut metal = sim(&[Array::linear(3, 4, Replacement::Lru), Array::linear(5, 8, Replacement::Lru)]);
    let cpu = |&(number, sibling, other)| (Cpu { number, sibling }, other);
    metal.habits.cpus = cpus.iter().map(cpu).collect();
    let setting = Setting { siblings: siblings.into(), ..setting() };
    let (found, _) = reproduce_metal("pt-baker", &mut metal, &setting, &|| None, &mut |_| ()).unwrap();
    assert_eq!(found.halted, None);
    ["two hardware threads", "control"].map(|what| row(&found, "4.", what).clone())
}

#[test]
fn whether_hardware_threads_share_entries_is_told() {
    let apart = (7, Some(false), Other::Apart);
    for (other, verdict, says) in [
        (Other::Tagged, Verdict::Holds, "not shared: the same pages cost as many misses"),
        (Other::Halves, Verdict::Holds, "not shared: each thread has its part"),
        (Other::Shared, Verdict::Differs, "shared: the same pages cost no misses"),
        (Other::Apart, Verdict::Differs, "not shared, and misses do not rise"),
    ] {
        let [smt, control] = figure_4_6(&[apart, (1, Some(true), other)], &[1]);
        assert_eq!(smt.verdict, verdict, "{smt:?}");
        assert!(claim(&smt).starts_with(says) && smt.note.starts_with("CPU 1; "), "{smt:?}");
        assert_eq!(control.verdict, Verdict::Holds, "{control:?}");
        assert!(claim(&control).starts_with("no effect") && control.note.starts_with("CPU 7; "), "{control:?}");
    }
}

#[test]
fn without_a_sibling_it_says_so_and_the_control_is_run() {
    let [smt, control] = figure_4_6(&[(7, Some(false), Other::Apart)], &[]);
    assert!(smt.ours.is_none() && smt.note.starts_with("no SMT sibling here"), "{smt:?}");
    assert_eq!(control.verdict, Verdict::Holds, "{control:?}");
    // A sibling that this program may not run on.
    let [smt, _] = figure_4_6(&[(7, Some(false), Other::Apart)], &[1]);
    assert!(smt.ours.is_none() && smt.note.contains("[1] share the core measured, but"), "{smt:?}");
    // A guest that was told wrong.
    let [_, control] = figure_4_6(&[(7, Some(false), Other::Tagged)], &[]);
    assert_eq!(control.verdict, Verdict::Differs, "{control:?}");
    // Nobody says, or there is no other CPU.
    let rows = figure_4_6(&[(7, None, Other::Tagged)], &[]);
    assert!(rows.iter().all(|row| row.ours.is_none() && row.note.starts_with("sysfs does not say")), "{rows:?}");
}

#[test]
fn a_prefetch_that_fills_nothing_is_seen() {
    let mut metal = zen_3();
    metal.habits.prefetch_fills = false;
    let found = measure("pt-baker", &mut metal);
    let prefetch = row(&found, "4.3", "prefetch");
    assert_eq!((prefetch.verdict, claim(prefetch)), (Verdict::Differs, "no: loads do not miss more"));
}

#[test]
fn coloring_where_all_is_as_in_the_paper() {
    // The Xeon E5-2650's: 64 entries of 4 ways, 512 of 4.
    let found = measure(
        "tlb-coloring",
        &mut sim(&[Array::linear(4, 4, Replacement::Lru), Array::linear(7, 4, Replacement::Lru)]),
    );
    let penalty = row(&found, "6.0.7", "L1 DTLB miss penalty");
    assert_eq!(penalty.verdict, Verdict::AnotherMachine);
    assert!((value(penalty) - 7.0).abs() < 0.2, "{penalty:?}");
    assert!((value(row(&found, "6.0.7", "L2 DTLB miss penalty")) - 37.0).abs() < 2.0);
    assert_eq!(row(&found, "6.0.7", "several times").verdict, Verdict::Holds);
    assert_eq!(row(&found, "6.0.7", "on every access").verdict, Verdict::Holds);
    let first = row(&found, "Algorithm 3", "L1 DTLB");
    assert_eq!(claim(first), "5 pages conflict, page-number bits 0 1 2 3 in common");
    let second = row(&found, "Algorithm 3", "L2 TLB");
    assert_eq!(claim(second), "5 pages conflict, page-number bits 0 1 2 3 4 5 6 in common");
    let low = row(&found, "Figure 3.1", "mod M");
    assert_eq!([first, second, low].map(|row| row.verdict), [Verdict::Holds; 3]);
}

/// With the levels given nothing is looked for, and what is measured is the same.
#[test]
fn a_description_stands_in_for_looking() {
    let setting = Setting { given: Some(preset("xeon-e5-2650").unwrap()), ..setting() };
    let mut metal = sim(&[Array::linear(4, 4, Replacement::Lru), Array::linear(7, 4, Replacement::Lru)]);
    let looked_for = measure("tlb-coloring", &mut metal);
    for counts_walks in [false, true] {
        metal.habits.counts_walks = counts_walks;
        let mut steps = Vec::new();
        let progress = &mut |step: &str| steps.push(step.to_string());
        let (found, levels) = reproduce_metal("tlb-coloring", &mut metal, &setting, &|| None, progress).unwrap();
        assert!(levels.is_empty() && !steps.iter().any(|step| step.contains("geometry")), "{steps:?}");
        assert!(found.assumptions.iter().any(|said| said.contains("as the description \"xeon-e5-2650\" has them")));
        for (given, row) in found.rows.iter().zip(&looked_for.rows) {
            assert_eq!((&given.what, given.verdict), (&row.what, row.verdict), "{given:?}");
        }
        let second = row(&found, "Algorithm 3", "L2 TLB");
        assert_eq!(claim(second), "5 pages conflict, page-number bits 0 1 2 3 4 5 6 in common");
    }
}

#[test]
fn a_description_of_another_machine_is_told() {
    let setting = Setting { given: Some(preset("xeon-e5-2650").unwrap()), ..setting() };
    let measured = |arrays: &[Array]| {
        let (found, _) = reproduce_metal("tlb-coloring", &mut sim(arrays), &setting, &|| None, &mut |_| ()).unwrap();
        assert_eq!(found.halted, None);
        found
    };
    // Sixteen pages of a set of four fit 64 entries in one.
    let found = measured(&[Array::linear(0, 64, Replacement::Lru), Array::linear(7, 16, Replacement::Lru)]);
    for row in &found.rows {
        assert!(
            row.ours.is_none() && row.note.contains("the L1 DTLB is not seen as xeon-e5-2650 describes it: an access"),
            "{row:?}"
        );
    }
    // The first level is as described, the second is not: there are 16 ways.
    let found = measured(&[Array::linear(4, 4, Replacement::Lru), Array::linear(7, 16, Replacement::Lru)]);
    assert_eq!(row(&found, "Algorithm 3", "L1 DTLB").verdict, Verdict::Holds);
    let second = row(&found, "Algorithm 3", "L2 TLB");
    assert!(second.note.contains("the L2 TLB is not seen as xeon-e5-2650 describes it: an access"), "{second:?}");
    // The ways are, the index is not: pages that should meet do not all.
    let folded = (0..7).map(|bit| 1 << bit | 1 << (bit + 7)).collect();
    let folded = Array { masks: folded, ..Array::linear(7, 4, Replacement::Lru) };
    let found = measured(&[Array::linear(4, 4, Replacement::Lru), folded]);
    let second = row(&found, "Algorithm 3", "L2 TLB");
    assert_ne!(second.verdict, Verdict::Holds, "{second:?}");
}

/// What has been looked for in vain leaves time for what needs it not.
#[test]
fn looking_ends_and_leaves_the_rest_its_time() {
    let mut metal = sim(&[Array::linear(4, 4, Replacement::Lru), Array::linear(7, 4, Replacement::Lru)]);
    let setting = Setting { search: Duration::ZERO, ..setting() };
    let (found, levels) = reproduce_metal("tlb-coloring", &mut metal, &setting, &|| None, &mut |_| ()).unwrap();
    assert_eq!((found.halted, levels.len()), (None, 1));
    assert!(found.rows.iter().all(|row| row.note.contains("its share of the time, 0.0 s, is used up")));
}

#[test]
fn bits_in_common_are_not_taken_for_an_index_that_they_are_not() {
    // Bit i of the index is bit i of the page number plus bit i + 4: pages 0x04, 0x15, 0x26, 0x37 and 0x40 conflict.
    let folded =
        Array { masks: (0..4).map(|bit| 1 << bit | 1 << (bit + 4)).collect(), ..Array::linear(4, 4, Replacement::Lru) };
    let found = measure("tlb-coloring", &mut sim(&[folded]));
    let first = row(&found, "Algorithm 3", "L1 DTLB");
    assert_eq!((first.verdict, claim(first)), (Verdict::Differs, "5 pages conflict, page-number bits 3 in common"));
    assert!(first.note.contains("0^4 1^5 2^6 3^7"), "{}", first.note);
    assert_eq!(row(&found, "Figure 3.1", "mod M").verdict, Verdict::Differs);
    // There is no second level.
    for what in ["L2 DTLB miss penalty", "several times"] {
        assert_eq!(row(&found, "6.0.7", what).verdict, Verdict::NotReproduced);
    }
}

#[test]
fn a_fully_associative_level_has_no_bits_and_random_replacement_does_not_always_miss() {
    let found = measure("tlb-coloring", &mut sim(&[Array::linear(0, 32, Replacement::Random)]));
    assert_eq!(row(&found, "6.0.7", "on every access").verdict, Verdict::Differs);
    let first = row(&found, "Algorithm 3", "L1 DTLB");
    assert_eq!((first.verdict, claim(first)), (Verdict::Differs, "33 pages conflict, no page-number bit in common"));
}

#[test]
fn what_a_machine_cannot_do_leaves_the_rest() {
    let mut metal = sim(&[Array::linear(4, 4, Replacement::Lru), Array::linear(7, 4, Replacement::Lru)]);
    metal.habits.shots = false;
    let found = measure("tlb-coloring", &mut metal);
    let penalty = row(&found, "6.0.7", "L2 DTLB miss penalty");
    assert_eq!(penalty.note, "single shots are not supported here");
    assert_eq!(row(&found, "Algorithm 3", "L2 TLB").verdict, Verdict::Holds);
    let found = measure("pt-baker", &mut metal);
    assert_eq!(row(&found, "4.3", "prefetch").note, "single shots are not supported here");
    assert_eq!(row(&found, "4.2 left", "set in").verdict, Verdict::Holds);
}

#[test]
fn nothing_is_said_of_an_emulator() {
    let setting = setting();
    let mut metal = zen_3();
    metal.habits.emulator = Some("somebody".into());
    metal.habits.remarks = vec!["little memory".into()];
    let (found, levels) = reproduce_metal("tlb-coloring", &mut metal, &setting, &|| None, &mut |_| ()).unwrap();
    assert!(found.halted.as_ref().is_some_and(|why| why.contains("somebody")), "{:?}", found.halted);
    assert!(found.rows.iter().all(|row| row.verdict == Verdict::NotReproduced && row.note.contains("emulator")));
    assert_eq!((&found.assumptions[0][..], levels.len()), ("little memory", 0));
}

#[test]
fn a_run_that_is_stopped_gives_what_it_knows() {
    let setting = Setting { siblings: vec![1], ..setting() };
    let small = || sim(&[Array::linear(4, 4, Replacement::Lru), Array::linear(7, 4, Replacement::Lru)]);
    let asked = Cell::new(0);
    let run = |allowed: u64| {
        asked.set(0);
        let halt = || {
            asked.set(asked.get() + 1);
            (asked.get() > allowed).then_some(Halt::Interrupted)
        };
        reproduce_metal("pt-baker", &mut small(), &setting, &halt, &mut |_| ()).unwrap().0
    };
    let all = run(u64::MAX);
    assert_eq!(all.halted, None);
    let needed = asked.get();
    let mut known = Vec::new();
    for part in [0, 4, 7] {
        let found = run(part * needed / 8);
        assert_eq!(found.halted.as_deref(), Some("interrupted"));
        let last = row(&found, "4.2 right", "in full");
        assert_eq!((last.verdict, last.note.as_str()), (Verdict::NotReproduced, "not reached: interrupted"));
        let sharing = |found| row(found, "4.6", "two hardware threads").clone();
        let reached = part > 0 && sharing(&found) == sharing(&all);
        assert!(reached || sharing(&found).note == "not reached: interrupted", "{:?}", sharing(&found));
        let same = |(stopped, whole): (&Row, &Row)| stopped.ours.is_none() || stopped == whole;
        assert!(found.rows.iter().zip(&all.rows).all(same), "what is known is what it would have been");
        known.push(found.rows.iter().filter(|row| row.ours.is_some()).count());
    }
    assert!(known[0] == 0 && known[2] > 0 && known.is_sorted(), "{known:?}");
}

#[test]
fn papers_without_experiments_for_the_metal_are_named() {
    let error = check_metal("tlb-lockdown").unwrap_err().to_string();
    assert!(error.starts_with("tlb-lockdown: has no experiments for this machine (--metal)"), "{error}");
    assert!(check_metal("tlb-colouring").unwrap_err().to_string().contains("no paper has this name"));
}
