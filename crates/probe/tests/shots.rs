//! Single shots: on the machine that this runs on they do what they say (no time is asserted), and on a made-up one
//! they show what its TLBs hold.

mod sim;

use lookaside_machine::{PageSize, Replacement};
use lookaside_probe::{Act, HostMachine, Metal, MetalError, PrefetchHint, Shot, MOST_ACTS};
use sim::{Array, Costs, Habits, Noise, Sim};

const SIZE: PageSize = PageSize::K4;

/// This machine, or a word about why not.
fn host() -> Option<HostMachine> {
    HostMachine::new(64 << 20).inspect_err(|e| eprintln!("LEFT OUT: {e}")).ok()
}

#[test]
fn every_act_can_be_done_here() {
    let Some(mut host) = host() else { return };
    let (a, b, untouched): (Vec<u64>, Vec<u64>, Vec<u64>) =
        ((0..70).collect(), (100..120).collect(), (5000..5010).collect());
    let mut acts = vec![Act::Load(&a), Act::Refill(&b), Act::Store(&b), Act::SystemCall, Act::Wait(100)];
    acts.extend(PrefetchHint::ALL.map(|hint| Act::Prefetch(hint, &untouched)));
    acts.extend([Act::SwitchProcess, Act::SwitchThread]);
    let shot = Shot { size: SIZE, before: &acts, timed: &a[..4] };
    for samples in [0, 1, 33] {
        let ticks = host.shot(&shot, samples).expect("a shot");
        assert_eq!(ticks.len(), samples);
        assert!(ticks.iter().all(|&ticks| ticks.is_finite() && ticks >= 0.0), "{ticks:?}");
    }
    // The peers outlive a shot, and end with the host.
    host.shot(&shot, 2).expect("a shot");
}

#[test]
fn impossible_shots_are_refused() {
    let Some(mut host) = host() else { return };
    let page = [1];
    let many = vec![1; 300];
    let too_many: Vec<u64> = (0..1 << 20).collect();
    let waits = [Act::Wait(0); MOST_ACTS + 1];
    let (load_many, load_all) = ([Act::Load(&many)], [Act::Load(&too_many)]);
    for (before, timed, reason) in [
        (&[][..], &[][..], "at least one load"),
        (&waits[..], &page[..], "acts in a shot"),
        (&load_many[..], &page[..], "too often"),
        (&load_all[..], &page[..], "no memory"),
    ] {
        let error = host.shot(&Shot { size: SIZE, before, timed }, 1).expect_err(reason);
        assert!(error.to_string().contains(reason), "{error}");
    }
    let error = host.shot(&Shot { size: PageSize::G1, before: &[], timed: &page }, 1).expect_err("no such pages");
    assert!(matches!(error, MetalError::Unsupported(_)), "{error}");
}

#[test]
fn made_up_shots_show_what_was_evicted() {
    let array = |sets, ways| Array::linear(sets, ways, Replacement::Lru);
    let costs = Costs { hit: 4.0, second: 8.0, walk: 40.0 };
    let noise = Noise { sigma: 0.0, bias: 0.0, outliers: 0.0, interrupts: 0.0, grain: 26.0 };
    let mut sim = Sim::new(&[array(0, 16), array(4, 8)], 24, costs, noise, 1);
    let (timed, near): (Vec<u64>, Vec<u64>) = (vec![0, 16, 32], (1..=14).collect());
    let same_set: Vec<u64> = (3..9).map(|i| 16 * i).collect();
    let mut mean = |acts: &[Act<'_>]| {
        let mut before = vec![Act::Load(&timed)];
        before.extend(acts);
        let mut ticks = sim.shot(&Shot { size: SIZE, before: &before, timed: &timed }, 2000).expect("a shot");
        ticks.retain(|&ticks| ticks < 1000.0);
        ticks.iter().sum::<f64>() / ticks.len() as f64
    };
    let hits = Habits::default().overhead + 3.0 * costs.hit;
    for (acts, expected) in [
        (&[][..], hits),
        (&[Act::Load(&near)][..], hits + 3.0 * costs.second),
        (&[Act::Load(&near), Act::Refill(&timed)][..], hits),
        (&[Act::Load(&near), Act::Prefetch(PrefetchHint::T0, &timed)][..], hits),
        // Nine pages of an eight-way set, least recently used first: each comes too late.
        (&[Act::Load(&near), Act::Load(&same_set)][..], hits + 3.0 * (costs.second + costs.walk)),
    ] {
        let mean = mean(acts);
        assert!((mean - expected).abs() < 3.0, "{acts:?}: {mean} for {expected}");
    }
}
