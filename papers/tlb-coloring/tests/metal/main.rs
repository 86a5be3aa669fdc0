//! The microbenchmarks against machines that are made up: rows say what those machines are, or why not.

#[path = "../../../harness/tests/support/made_up.rs"]
mod made_up;
// Shared with the probe's tests, which use more of it.
#[allow(dead_code, unused_imports)]
#[path = "../../../../crates/probe/tests/sim/mod.rs"]
mod sim;

use std::time::Duration;

use lookaside_harness::metal::Setting;
use lookaside_harness::RowVerdict;
use lookaside_machine::{preset, Replacement};
use lookaside_tlb_coloring::PAPER;

use made_up::{claim, measure, measured, noisy, row, setting, value};
use sim::Array;

#[test]
fn coloring_where_all_is_as_in_the_paper() {
    // The Xeon E5-2650's: 64 entries of 4 ways, 512 of 4.
    let found =
        measure(&PAPER, &mut noisy(&[Array::linear(4, 4, Replacement::Lru), Array::linear(7, 4, Replacement::Lru)]));
    let penalty = row(&found, "6.0.7", "L1 DTLB miss penalty");
    assert_eq!(penalty.verdict, RowVerdict::AnotherMachine);
    assert!((value(penalty) - 7.0).abs() < 0.2, "{penalty:?}");
    assert!((value(row(&found, "6.0.7", "L2 DTLB miss penalty")) - 37.0).abs() < 2.0);
    assert_eq!(row(&found, "6.0.7", "several times").verdict, RowVerdict::Holds);
    assert_eq!(row(&found, "6.0.7", "on every access").verdict, RowVerdict::Holds);
    let first = row(&found, "Algorithm 3", "L1 DTLB");
    assert_eq!(claim(first), "5 pages conflict, page-number bits 0 1 2 3 in common");
    let second = row(&found, "Algorithm 3", "L2 TLB");
    assert_eq!(claim(second), "5 pages conflict, page-number bits 0 1 2 3 4 5 6 in common");
    let low = row(&found, "Figure 3.1", "mod M");
    assert_eq!([first, second, low].map(|row| row.verdict), [RowVerdict::Holds; 3]);
}

/// With the levels given nothing is looked for, and what is measured is the same.
#[test]
fn a_description_stands_in_for_looking() {
    let setting = Setting { given: Some(preset("xeon-e5-2650").unwrap()), ..setting() };
    let mut metal = noisy(&[Array::linear(4, 4, Replacement::Lru), Array::linear(7, 4, Replacement::Lru)]);
    let looked_for = measure(&PAPER, &mut metal);
    for counts_walks in [false, true] {
        metal.habits.counts_walks = counts_walks;
        let mut steps = Vec::new();
        let progress = &mut |step: &str| steps.push(step.to_string());
        let (found, levels) = measured(&PAPER, &mut metal, &setting, &|| None, progress);
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
        let (found, _) = measured(&PAPER, &mut noisy(arrays), &setting, &|| None, &mut |_| ());
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
    assert_eq!(row(&found, "Algorithm 3", "L1 DTLB").verdict, RowVerdict::Holds);
    let second = row(&found, "Algorithm 3", "L2 TLB");
    assert!(second.note.contains("the L2 TLB is not seen as xeon-e5-2650 describes it: an access"), "{second:?}");
    // The ways are, the index is not: pages that should meet do not all.
    let folded = (0..7).map(|bit| 1 << bit | 1 << (bit + 7)).collect();
    let folded = Array { masks: folded, ..Array::linear(7, 4, Replacement::Lru) };
    let found = measured(&[Array::linear(4, 4, Replacement::Lru), folded]);
    let second = row(&found, "Algorithm 3", "L2 TLB");
    assert_ne!(second.verdict, RowVerdict::Holds, "{second:?}");
}

/// What has been looked for in vain leaves time for what needs it not.
#[test]
fn looking_ends_and_leaves_the_rest_its_time() {
    let mut metal = noisy(&[Array::linear(4, 4, Replacement::Lru), Array::linear(7, 4, Replacement::Lru)]);
    let setting = Setting { search: Duration::ZERO, ..setting() };
    let (found, levels) = measured(&PAPER, &mut metal, &setting, &|| None, &mut |_| ());
    assert_eq!((found.halted, levels.len()), (None, 1));
    assert!(found.rows.iter().all(|row| row.note.contains("stopped at its time limit, 0.0 s")));
}

#[test]
fn bits_in_common_are_not_taken_for_an_index_that_they_are_not() {
    // Bit i of the index is bit i of the page number plus bit i + 4: pages 0x04, 0x15, 0x26, 0x37 and 0x40 conflict.
    let folded =
        Array { masks: (0..4).map(|bit| 1 << bit | 1 << (bit + 4)).collect(), ..Array::linear(4, 4, Replacement::Lru) };
    let found = measure(&PAPER, &mut noisy(&[folded]));
    let first = row(&found, "Algorithm 3", "L1 DTLB");
    assert_eq!((first.verdict, claim(first)), (RowVerdict::Differs, "5 pages conflict, page-number bits 3 in common"));
    assert!(first.note.contains("0^4 1^5 2^6 3^7"), "{}", first.note);
    assert_eq!(row(&found, "Figure 3.1", "mod M").verdict, RowVerdict::Differs);
    // There is no second level.
    for what in ["L2 DTLB miss penalty", "several times"] {
        assert_eq!(row(&found, "6.0.7", what).verdict, RowVerdict::NotReproduced);
    }
}

#[test]
fn a_fully_associative_level_has_no_bits_and_random_replacement_does_not_always_miss() {
    let found = measure(&PAPER, &mut noisy(&[Array::linear(0, 32, Replacement::Random)]));
    assert_eq!(row(&found, "6.0.7", "on every access").verdict, RowVerdict::Differs);
    let first = row(&found, "Algorithm 3", "L1 DTLB");
    assert_eq!((first.verdict, claim(first)), (RowVerdict::Differs, "33 pages conflict, no page-number bit in common"));
}

#[test]
fn nothing_is_said_of_an_emulator() {
    let setting = setting();
    let mut metal = noisy(&[Array::linear(4, 4, Replacement::Lru), Array::linear(7, 4, Replacement::Lru)]);
    metal.habits.emulator = Some("somebody".into());
    metal.habits.remarks = vec!["little memory".into()];
    let (found, levels) = measured(&PAPER, &mut metal, &setting, &|| None, &mut |_| ());
    assert!(found.halted.as_ref().is_some_and(|why| why.contains("somebody")), "{:?}", found.halted);
    assert!(found.rows.iter().all(|row| row.verdict == RowVerdict::NotReproduced && row.note.contains("emulator")));
    assert_eq!((&found.assumptions[0][..], levels.len()), ("little memory", 0));
}

#[test]
fn what_a_machine_cannot_do_leaves_the_rest() {
    let mut metal = noisy(&[Array::linear(4, 4, Replacement::Lru), Array::linear(7, 4, Replacement::Lru)]);
    metal.habits.shots = false;
    let found = measure(&PAPER, &mut metal);
    let penalty = row(&found, "6.0.7", "L2 DTLB miss penalty");
    assert_eq!(penalty.note, "single shots are not supported here");
    assert_eq!(row(&found, "Algorithm 3", "L2 TLB").verdict, RowVerdict::Holds);
}
