//! The miss counter: on made-up machines it counts what the machine does, whatever its geometry and policy; on the one
//! that this runs on it does not fault and gives an answer or a reason (no time is asserted).

mod sim;

use std::cell::RefCell;
use std::rc::Rc;

use lookaside_machine::Replacement;
use lookaside_probe::counter::{AccessVerdict, CounterError, MissCounter, MOST_TIMED};
use lookaside_probe::{Geometry, HostMachine, TlbLevels};
use sim::{Array, Costs, Noise, Sim};

const COSTS: Costs = Costs { hit: 4.0, second: 5.0, walk: 25.0 };
/// The timer of Zen 4; the other kinds of noise are `Habits`' for single shots.
const NOISE: Noise = Noise { sigma: 0.0, bias: 0.0, outliers: 0.0, interrupts: 0.0, grain: 26.0 };

fn array(sets: u32, ways: u32, masks: &[u64], replacement: Replacement) -> Array {
    let linear = (0..sets).map(|bit| 1 << bit).collect();
    Array { sets: 1 << sets, ways, masks: if masks.is_empty() { linear } else { masks.to_vec() }, replacement }
}

fn geometry(array: &Array) -> Geometry {
    Geometry { entries: array.sets * array.ways, ways: array.ways, sets: array.sets, masks: array.masks.clone() }
}

fn levels(arrays: &[Array]) -> TlbLevels {
    TlbLevels { first: geometry(&arrays[0]), second: arrays.get(1).map(geometry) }
}

/// A counter, and where acts say what they touch.
fn counter(arrays: &[Array], seed: u64) -> (MissCounter<Sim>, Rc<RefCell<Vec<u64>>>) {
    let sim = Sim::new(arrays, 24, COSTS, NOISE, seed);
    let touched = Rc::clone(&sim.habits.touched);
    (MissCounter::calibrate(sim, levels(arrays), 256, seed).expect("an easy machine"), touched)
}

fn pointers(pages: &[u64]) -> Vec<*const u8> {
    pages.iter().map(|page| (page << 12) as *const u8).collect()
}

#[test]
fn known_sequences_are_counted() {
    for (i, arrays) in [
        vec![array(0, 24, &[], Replacement::Lru), array(4, 12, &[0x11, 0x22, 0x44, 0x88], Replacement::Lru)],
        vec![array(2, 4, &[], Replacement::Lru), array(5, 8, &[], Replacement::TreePlru)],
        vec![array(2, 4, &[], Replacement::Fifo), array(5, 6, &[], Replacement::Random)],
        vec![array(3, 4, &[], Replacement::Lru)],
    ]
    .into_iter()
    .enumerate()
    {
        let (mut counter, log) = counter(&arrays, i as u64);
        let confusion = counter.confusion().clone();
        assert!(confusion.hits_as_misses().expect("known hits") < 0.1, "{i}: {confusion:?}");
        assert!(confusion.misses_as_hits().expect("known misses") < 0.1, "{i}: {confusion:?}");
        let marks = counter.marks();
        let one_level = arrays.len() == 1;
        let l1 = COSTS.second + if one_level { COSTS.walk } else { 0.0 };
        assert!((marks.l1_miss_ticks - l1).abs() < 2.0, "{i}: {marks:?}");
        assert_eq!(marks.walk_ticks.is_none(), one_level);

        // Four pages stay. Nothing, other sets, or their own set's pages come between.
        let mine = pointers(&[0x100, 0x101, 0x102, 0x103]);
        // SAFETY: a made-up machine reads nothing.
        let misses = unsafe { counter.evicted(&mine, || (), &mine) }.expect("a count");
        assert_eq!((misses.l1_misses, misses.stlb_misses, misses.mixed), (0, 0, 0), "{i}: {misses:?}");
        assert_eq!(misses.accesses.len(), 4);
        // A walk through every set, several times as many pages as there are entries: all are out.
        let all = u64::from(levels(&arrays).last().entries) * 8;
        let act = || log.borrow_mut().extend((0..all).map(|page| (0x1000 + page) << 12));
        // SAFETY: as above.
        let misses = unsafe { counter.evicted(&mine, act, &mine) }.expect("a count");
        assert_eq!((misses.l1_misses, misses.stlb_misses), (4, 4), "{i}: {misses:?}");
    }
}

#[test]
fn which_pages_missed_is_said() {
    let arrays = [array(0, 24, &[], Replacement::Lru), array(4, 6, &[], Replacement::Lru)];
    let mut sim = Sim::new(&arrays, 24, COSTS, NOISE, 5);
    let log = Rc::clone(&sim.habits.touched);
    sim.habits.sigma = 3.0;
    let mut counter = MissCounter::calibrate(sim, levels(&arrays), 512, 5).expect("an easy machine");
    // Two pages of set 1, two of set 2; the act fills set 1 of the second level and does not flood the first...
    let mine = pointers(&[0x101, 0x201, 0x102, 0x202]);
    let act = || log.borrow_mut().extend((1..=6).map(|i| (0x1001 + 16 * i) << 12));
    // SAFETY: a made-up machine reads nothing.
    let misses = unsafe { counter.evicted(&mine, act, &mine) }.expect("a count");
    // ...whose entries still serve.
    assert_eq!((misses.l1_misses, misses.stlb_misses), (0, 0), "{misses:?}");
    // Now it floods the first as well, by pages of other sets.
    let act = || {
        log.borrow_mut().extend((1..=6).map(|i| (0x1001 + 16 * i) << 12));
        log.borrow_mut().extend((0..24).map(|i| (0x2003 + i / 8 + 16 * (i % 8)) << 12));
    };
    // SAFETY: as above.
    let misses = unsafe { counter.evicted(&mine, act, &mine) }.expect("a count");
    let verdicts: Vec<AccessVerdict> = misses.accesses.iter().map(|access| access.verdict).collect();
    assert_eq!(
        verdicts,
        [AccessVerdict::StlbMiss, AccessVerdict::StlbMiss, AccessVerdict::L1Miss, AccessVerdict::L1Miss],
        "{misses:?}"
    );
    assert_eq!((misses.l1_misses, misses.stlb_misses), (4, 2));
    // A sequence, in its order: 30 pages of a 24-entry first level, of which the last 24 stay.
    let sequence = pointers(&(0..30).map(|i| 0x400 + i).collect::<Vec<u64>>());
    let again: Vec<*const u8> = sequence.iter().rev().take(24).copied().collect();
    // SAFETY: as above.
    let misses = unsafe { counter.count(&sequence, &again) }.expect("a count");
    assert_eq!((misses.l1_misses, misses.stlb_misses), (0, 0), "{misses:?}");
    // SAFETY: as above.
    let misses = unsafe { counter.count(&sequence, &sequence) }.expect("a count");
    assert_eq!((misses.l1_misses, misses.stlb_misses), (30, 0), "{misses:?}");
    // A page that is out every other round (of two acts, since each has its control) is neither hit nor miss.
    let mut times = 0;
    let act = || {
        times += 1;
        if times % 4 < 2 {
            log.borrow_mut().extend((0..400).map(|i| (0x3000 + i) << 12));
        }
    };
    // SAFETY: as above.
    let misses = unsafe { counter.evicted(&mine, act, &mine) }.expect("a count");
    assert!(misses.mixed >= 3 && misses.stlb_misses == 0, "{misses:?}");
}

#[test]
fn what_cannot_be_counted_is_refused() {
    let arrays = [array(0, 24, &[], Replacement::Lru), array(4, 12, &[], Replacement::Lru)];
    let (mut counter, _) = counter(&arrays, 1);
    for count in [0, MOST_TIMED + 1] {
        let timed = vec![std::ptr::null(); count];
        // SAFETY: refused before anything is read; and a made-up machine reads nothing.
        let error = unsafe { counter.count(&[], &timed) }.expect_err("no such length");
        assert_eq!(error, CounterError::Length(count));
    }
    // A description of another machine: the pages that should conflict do not.
    let other =
        [array(0, 24, &[], Replacement::Lru), array(4, 12, &[0x1000, 0x2000, 0x4000, 0x8000], Replacement::Lru)];
    let sim = Sim::new(&arrays, 24, COSTS, NOISE, 1);
    let error = MissCounter::calibrate(sim, levels(&other), 64, 1).map(|_| ()).expect_err("another machine");
    assert!(matches!(error, CounterError::Indistinct(..)), "{error}");
    // No miss can be seen where it costs nothing.
    let sim = Sim::new(&arrays, 24, Costs { second: 0.0, ..COSTS }, NOISE, 1);
    let error = MissCounter::calibrate(sim, levels(&arrays), 64, 1).map(|_| ()).expect_err("no difference");
    assert!(matches!(error, CounterError::Indistinct(..)), "{error}");
}

#[test]
fn the_caller_s_own_memory_can_be_counted_here() {
    // A geometry that may not be this machine's: what is asserted is that nothing faults or hangs.
    let arrays = [array(0, 72, &[], Replacement::Lru), array(8, 12, &[], Replacement::Lru)];
    let Ok(host) = HostMachine::new(64 << 20).inspect_err(|e| eprintln!("LEFT OUT: {e}")) else { return };
    match MissCounter::calibrate(host, levels(&arrays), 32, 1) {
        Err(e) => assert!(matches!(e, CounterError::Indistinct(..)), "{e}"),
        Ok(mut counter) => {
            let memory = vec![1u8; 16 << 12];
            // Every alignment, the last byte of a page too.
            let mine: Vec<*const u8> = (0..15).map(|page| &raw const memory[(page << 12) + 0xff1 + page]).collect();
            // SAFETY: bytes of a vector; its pages are mapped as long as it lives.
            let misses = unsafe { counter.evicted(&mine, || (), &mine) }.expect("a count");
            assert_eq!((misses.accesses.len(), misses.rounds), (15, 32));
            assert_eq!(
                misses.mixed
                    + misses.l1_misses
                    + misses.accesses.iter().filter(|a| a.verdict == AccessVerdict::Hit).count(),
                15
            );
        }
    }
}
