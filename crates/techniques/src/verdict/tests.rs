use lookaside_engine::{Cost, Outcome, Side};
use lookaside_timing::{FaultBill, NativeClock, SavedSeconds};

use super::*;
use crate::huge_gain::{Denominator, HugeGain};

fn clock(user_seconds: f64, system_seconds: f64) -> NativeClock {
    NativeClock { user_seconds, system_seconds, ..NativeClock::default() }
}

fn outcome(walks: u64) -> Outcome {
    Outcome { data: Side { cost: Cost { walks, ..Cost::default() }, ..Side::default() }, ..Outcome::default() }
}

fn saved(least: f64, best: f64, most: f64) -> SavedSeconds {
    SavedSeconds { least, best, most }
}

/// Of ten seconds: nine of user time, of which so much is saved, and one in the kernel.
fn verdict(user: Result<SavedSeconds, &str>, faults: f64, walks: u64, system_seconds: f64) -> HugePageVerdict {
    let (native, outcome) = (clock(10.0 - system_seconds, system_seconds), outcome(walks));
    let machine = lookaside_machine::preset("skylake").expect("a preset");
    let bill = FaultBill { saved: user.is_ok().then(|| saved(faults, faults, faults)), ..FaultBill::default() };
    let evidence = GainEvidence {
        remedies: &[],
        outcome: &outcome,
        machine: &machine,
        native: Some(&native),
        saved: user,
        faults: Some(bill),
    };
    HugeGain::new(&evidence, None).verdict.expect("there is always one")
}

#[test]
fn it_is_of_user_time_and_page_faults_keep_it_from_being_nothing() {
    let HugePageVerdict::Changes { ratio, least, most } = verdict(Ok(saved(1.0, 1.5, 2.0)), 0.5, 1, 1.0) else {
        panic!()
    };
    for (value, expected) in [(least, 9.0 / 8.0), (ratio, 9.0 / 7.5), (most, 9.0 / 7.0)] {
        assert!((value - expected).abs() < 1e-12);
    }
    let none = saved(0.0, 0.0, 0.0);
    assert!(matches!(verdict(Ok(none), 0.05, 1, 1.0), HugePageVerdict::Nothing { .. }));
    assert!(matches!(verdict(Ok(none), 0.5, 1, 1.0), HugePageVerdict::Changes { ratio, .. } if ratio == 1.0));
    // Slower than that is no gain, but something.
    assert!(matches!(verdict(Ok(saved(-0.6, -0.5, 0.0)), 0.0, 1, 1.0), HugePageVerdict::Changes { .. }));
}

#[test]
fn less_than_a_hundredth_is_nothing_and_a_wide_interval_is_no_answer() {
    assert!(
        matches!(verdict(Ok(saved(0.0, 0.02, 0.05)), 0.0, 1, 1.0), HugePageVerdict::Nothing { most } if most < 1.01)
    );
    let HugePageVerdict::Unknown { why } = verdict(Ok(saved(0.0, 1.5, 3.0)), 0.0, 1, 1.0) else { panic!() };
    assert!(why == "between 1.00 and 1.50 times as fast", "{why}");
    // Wide, but surely something.
    assert!(matches!(verdict(Ok(saved(1.0, 2.0, 3.0)), 0.0, 1, 1.0), HugePageVerdict::Changes { .. }));
}

#[test]
fn without_replays_only_a_bound_speaks() {
    assert!(matches!(verdict(Err("no memory"), 0.0, 1000, 0.01), HugePageVerdict::Nothing { .. }));
    assert_eq!(
        verdict(Err("no memory"), 0.0, 1_000_000_000, 0.01),
        HugePageVerdict::Unknown { why: "no memory".into() }
    );
    // The kernel's time may all be page faults.
    assert_eq!(verdict(Err("no memory"), 0.0, 1000, 1.0), HugePageVerdict::Unknown { why: "no memory".into() });
    let machine = lookaside_machine::preset("skylake").expect("a preset");
    let evidence = GainEvidence {
        remedies: &[],
        outcome: &outcome(1),
        machine: &machine,
        native: None,
        saved: Err("a trace has no native time"),
        faults: None,
    };
    let gain = HugeGain::new(&evidence, None);
    assert_eq!(gain.verdict, Some(HugePageVerdict::Unknown { why: "a trace has no native time".into() }));
    assert_eq!(gain.predicted, None);
}

/// Of ratios alone.
fn of_ratios(least: f64, ratio: f64, most: f64, no_faults: bool) -> HugePageVerdict {
    let user = PredictedGain {
        least_saved_seconds: 0.0,
        saved_seconds: 0.0,
        most_saved_seconds: 0.0,
        of_seconds: 1.0,
        of: Denominator::UserTime,
        basis: PredictionBasis::Replay,
        least_ratio: Some(least),
        ratio: Some(ratio),
        most_ratio: Some(most),
    };
    HugePageVerdict::of(&user, no_faults)
}

#[test]
fn at_its_border_a_ratio_is_something() {
    let (more, less) = (NOTHING, 2.0 - NOTHING);
    let under = 1.0099;
    assert_eq!(of_ratios(1.0, 1.0, under, true), HugePageVerdict::Nothing { most: under });
    for (least, ratio, most) in [
        // A hundredth more, a hundredth less, and slower than that though it may gain nothing.
        (1.0, 1.0, more),
        (0.98, less, 1.0),
        (0.97, 0.98, 1.0),
        // Wide intervals that begin or end where something does.
        (more, 1.2, 1.5),
        (0.7, 0.8, less),
    ] {
        assert_eq!(of_ratios(least, ratio, most, true), HugePageVerdict::Changes { ratio, least, most });
    }
    let unsure = |least, ratio, most| matches!(of_ratios(least, ratio, most, true), HugePageVerdict::Unknown { .. });
    assert!(unsure(1.0099, 1.2, 1.5) && unsure(0.7, 0.8, 0.9901));
    // A fifth is not too wide yet.
    assert!(!unsure(1.0, 1.1, 1.199) && unsure(1.0, 1.1, 1.201));
}

#[test]
fn a_walk_reads_every_table_of_both_stages_from_memory_at_worst() {
    let mut machine = lookaside_machine::preset("skylake").expect("a preset");
    (machine.clock_mhz, machine.memory.cycles) = (2.0, 100.0);
    let mut outcome = outcome(1000);
    outcome.data.cost.tlb_hit_cycles = 8000.0;
    let evidence = GainEvidence {
        remedies: &[],
        outcome: &outcome,
        machine: &machine,
        native: None,
        saved: Err("not run"),
        faults: None,
    };
    // 1000 walks of 24 reads, and 8000 cycles, at 2 MHz.
    assert_eq!(walks_at_worst(&evidence), 1.204);
}
