use lookaside_engine::{Cost, Outcome, Side};
use lookaside_timing::{FaultBill, NativeClock, SavedSeconds};

use super::*;
use crate::huge_gain::HugeGain;

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
