//! By hand: what is refused, and how many calls and recyclings a schedule takes.

use lookaside_runtime::domains::{
    Compartment, CompartmentAccess, DomainsError, Fault, KeyCounts, NoKeys, Policy, Thread, MOST_DEEP, MOST_SHARED,
    PAGE_BYTES,
};

use crate::fake::{Fake, NEW_THREAD};

/// All 15 keys, some threads, some compartments of a page.
fn with(compartments: usize, threads: usize) -> (Policy, Fake, Vec<Thread>, Vec<Compartment>) {
    let (mut policy, mut keys) = (Policy::new(), Fake::new((1..16).collect(), threads));
    let all = (0..compartments).map(|_| policy.create(&mut keys, PAGE_BYTES).expect("keys are there")).collect();
    (policy, keys, (0..threads).map(|_| Thread::default()).collect(), all)
}

/// Counts of a schedule of one thread that is in one at a time.
fn counts(compartments: usize, schedule: impl Iterator<Item = usize>) -> KeyCounts {
    let (mut policy, mut keys, mut threads, all) = with(compartments, 1);
    for one in schedule {
        policy.enter(&mut keys, &mut threads[0], all[one]).expect("a key is left");
        policy.leave(&mut keys, &mut threads[0], all[one]).expect("it was entered");
    }
    policy.counts()
}

#[test]
fn no_more_compartments_than_keys_take_one_call_each() {
    let counts = counts(15, (0..15).cycle().take(1500));
    assert_eq!((counts.switches, counts.keys), (3000, 15));
    assert_eq!((counts.protect_calls, counts.flushes, counts.recycled), (15, 0, 0));
}

#[test]
fn in_a_ring_of_64_a_flush_of_one_call_makes_15_keys_clean() {
    let counts = counts(64, (0..64).cycle().take(64 * 15));
    // Each enter finds its compartment closed. The first 15 keys come from the system, the others from flushes of 15.
    assert_eq!((counts.flushes, counts.recycled), (63, 63 * 15));
    // They are neighbours, or have only closed ones between them: one call a flush.
    assert_eq!(counts.protect_calls, 960 + 63);
}

#[test]
fn who_is_come_back_to_keeps_its_key() {
    // Ten are entered again and again, 54 once in a while: only these lose keys.
    let schedule = (0..540).flat_map(|round| (0..10).chain([10 + round % 54]));
    let counts = counts(64, schedule);
    // A flush each five of the others; the ten are opened once.
    assert_eq!((counts.flushes, counts.recycled), (107, 535));
    assert!(counts.protect_calls < 10 + 540 + 107 * 2, "{counts:?}");
}

#[test]
fn no_more_keys_are_asked_for_than_are_needed() {
    let keys = |compartments, schedule: &[usize]| counts(compartments, schedule.iter().copied()).keys;
    assert_eq!([keys(1, &[]), keys(1, &[0, 0]), keys(3, &[0, 1, 2, 0]), keys(15, &[7, 3])], [1, 1, 3, 2]);
}

/// Fourteen of fifteen were come back to: the other one's key is enough for a sixteenth.
#[test]
fn as_many_keys_as_are_needed_are_taken_from_those_that_nobody_came_back_to() {
    let counts = counts(16, (0..15).chain(0..14).chain([15]));
    assert_eq!((counts.flushes, counts.recycled), (1, 1));
    // One call to close it, and one each to open all sixteen.
    assert_eq!(counts.protect_calls, 17);
}

#[test]
fn what_is_entered_keeps_its_key_whoever_comes() {
    let (mut policy, mut keys, mut threads, all) = with(64, 2);
    keys.thread = 1;
    policy.enter(&mut keys, &mut threads[1], all[0]).expect("the first");
    keys.thread = 0;
    let (home, _) = policy.memory(all[0]).expect("it is there");
    for one in &all[1..] {
        policy.enter(&mut keys, &mut threads[0], *one).expect("14 keys are left");
        assert_eq!((keys.may(0, home), keys.may(1, home)), ((false, false), (true, true)));
        let (start, _) = policy.memory(*one).expect("it is there");
        assert_eq!((keys.may(0, start), keys.may(1, start)), ((true, true), (false, false)));
        policy.leave(&mut keys, &mut threads[0], *one).expect("it was entered");
    }
}

#[test]
fn with_all_keys_pinned_an_enter_is_refused_until_one_is_left() {
    let (mut policy, mut keys, mut threads, all) = with(17, 1);
    for one in &all[..15] {
        policy.enter(&mut keys, &mut threads[0], *one).expect("15 keys");
    }
    let (before, register) = (policy.counts(), keys.registers.clone());
    let refused = policy.enter(&mut keys, &mut threads[0], all[15]);
    assert_eq!(refused, Err(DomainsError::AllPinned { needed: 1, left: 0, keys: 15 }));
    assert_eq!((policy.counts(), &keys.registers), (before, &register));
    // One of those it is in already needs none.
    policy.enter(&mut keys, &mut threads[0], all[3]).expect("it has a key");
    policy.leave(&mut keys, &mut threads[0], all[3]).expect("it was entered");
    policy.leave(&mut keys, &mut threads[0], all[14]).expect("it is the innermost");
    policy.enter(&mut keys, &mut threads[0], all[15]).expect("a key is left");
}

#[test]
fn what_is_refused_changes_nothing() {
    let (mut policy, mut keys, mut threads, all) = with(17, 1);
    let thread = &mut threads[0];
    assert_eq!(policy.create(&mut keys, 0), Err(DomainsError::Empty));
    assert_eq!(policy.create(&mut keys, usize::MAX), Err(DomainsError::TooLarge { bytes: usize::MAX }));
    let system = Err(DomainsError::System { call: "mmap", errno: libc::ENOMEM });
    assert_eq!(policy.create(&mut keys, isize::MAX as usize - PAGE_BYTES), system);

    policy.destroy(&mut keys, all[16]).expect("nobody is in it");
    assert_eq!(policy.enter(&mut keys, thread, all[16]), Err(DomainsError::NoSuch));
    assert_eq!(policy.leave(&mut keys, thread, all[16]), Err(DomainsError::NoSuch));
    assert_eq!(policy.destroy(&mut keys, all[16]), Err(DomainsError::NoSuch));
    assert_eq!(policy.memory(all[16]), Err(DomainsError::NoSuch));
    assert_eq!(policy.share(all[16], all[0], CompartmentAccess::Read), Err(DomainsError::NoSuch));
    assert_eq!(policy.share(all[0], all[16], CompartmentAccess::Read), Err(DomainsError::NoSuch));
    assert_eq!(policy.share(all[0], all[0], CompartmentAccess::Write), Err(DomainsError::WithItself));

    for one in &all[1..=MOST_SHARED] {
        policy.share(*one, all[0], CompartmentAccess::Read).expect("up to 14");
    }
    assert_eq!(policy.share(all[15], all[0], CompartmentAccess::Read), Err(DomainsError::TooManyShared));
    policy.share(all[1], all[0], CompartmentAccess::None).expect("one less");
    policy.share(all[15], all[0], CompartmentAccess::Write).expect("and one more");

    policy.enter(&mut keys, thread, all[0]).expect("15 keys");
    assert_eq!(policy.share(all[1], all[0], CompartmentAccess::Read), Err(DomainsError::InUse { entries: 1 }));
    assert_eq!(policy.destroy(&mut keys, all[0]), Err(DomainsError::InUse { entries: 1 }));
    assert_eq!(policy.destroy(&mut keys, all[15]), Err(DomainsError::InUse { entries: 1 }), "shared with one entered");
    policy.enter(&mut keys, thread, all[15]).expect("it has a key");
    assert_eq!(policy.destroy(&mut keys, all[15]), Err(DomainsError::InUse { entries: 2 }));
    assert_eq!(policy.leave(&mut keys, thread, all[0]), Err(DomainsError::NotInnermost));
    assert_eq!(policy.leave(&mut keys, thread, all[2]), Err(DomainsError::NotEntered));
    policy.leave(&mut keys, thread, all[15]).expect("the innermost");
    policy.leave(&mut keys, thread, all[0]).expect("the innermost");
    assert_eq!(policy.leave(&mut keys, thread, all[0]), Err(DomainsError::NotEntered));
    assert_eq!(keys.registers[0], NEW_THREAD);
    policy.destroy(&mut keys, all[15]).expect("nobody is in it");
    policy.share(all[1], all[0], CompartmentAccess::Read).expect("what is destroyed is not shared any more");

    for _ in 0..MOST_DEEP {
        policy.enter(&mut keys, thread, all[2]).expect("the same again");
    }
    assert_eq!(policy.enter(&mut keys, thread, all[2]), Err(DomainsError::TooDeep));
}

#[test]
fn a_machine_without_keys_says_so() {
    let (mut policy, mut keys) = (Policy::new(), Fake::new(Vec::new(), 1));
    let refused = policy.create(&mut keys, PAGE_BYTES).expect_err("no keys");
    assert_eq!((refused, refused.errno()), (DomainsError::NoKeys(NoKeys::Taken), libc::ENOSPC));
    assert_eq!(policy.counts(), KeyCounts::default());
    assert_eq!(DomainsError::NoKeys(NoKeys::Processor).errno(), libc::ENOTSUP);
    assert_eq!(DomainsError::NoKeys(NoKeys::Kernel).errno(), libc::ENOSYS);
}

#[test]
fn faults_are_counted_by_kind_if_they_are_a_compartments() {
    let (mut policy, _, _, all) = with(2, 1);
    let (start, bytes) = policy.memory(all[1]).expect("it is there");
    assert_eq!(policy.fault(Fault::Key, start + bytes - 1), Some(all[1]));
    assert_eq!(policy.fault(Fault::Closed, start), Some(all[1]));
    assert_eq!(policy.fault(Fault::Key, start + bytes), None);
    assert_eq!(policy.fault(Fault::Key, 0), None);
    assert_eq!((policy.counts().key_faults, policy.counts().closed_faults), (1, 1));
}
