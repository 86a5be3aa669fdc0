//! Any schedule of any calls by several threads, against the naive model: after each of them every thread may read and
//! write the same.

use proptest::prelude::*;

use lookaside_runtime::domains::{Compartment, CompartmentAccess, DomainsError, Policy, Thread, PAGE_BYTES};

use crate::fake::Fake;
use crate::naive::Naive;

const THREADS: usize = 4;
const MOST: usize = 64;

/// Numbers of compartments are of all that ever were, those destroyed included.
#[derive(Clone, Debug)]
enum Step {
    Create(usize),
    Destroy(usize),
    Enter(usize, usize),
    Leave(usize),
    LeaveOne(usize, usize),
    Share(usize, usize, CompartmentAccess),
    Ends(usize),
    Forked(usize),
    /// A call of pkey_mprotect fails, some calls from here on.
    Fails(u32),
    UnmapFails,
}

fn step() -> impl Strategy<Value = Step> {
    let thread = || 0..THREADS;
    let one = || 0..2 * MOST;
    let access =
        prop_oneof![Just(CompartmentAccess::None), Just(CompartmentAccess::Read), Just(CompartmentAccess::Write)];
    prop_oneof![
        6 => (0usize..4).prop_map(Step::Create),
        2 => one().prop_map(Step::Destroy),
        20 => (thread(), one()).prop_map(|(thread, one)| Step::Enter(thread, one)),
        14 => thread().prop_map(Step::Leave),
        1 => (thread(), one()).prop_map(|(thread, one)| Step::LeaveOne(thread, one)),
        8 => (one(), one(), access).prop_map(|(one, with, access)| Step::Share(one, with, access)),
        1 => thread().prop_map(Step::Ends),
        1 => thread().prop_map(Step::Forked),
        1 => (1u32..8).prop_map(Step::Fails),
        1 => Just(Step::UnmapFails),
    ]
}

struct Twin {
    policy: Policy,
    keys: Fake,
    threads: Vec<Thread>,
    naive: Naive,
    /// All that ever were.
    made: Vec<Compartment>,
    switches: u64,
    /// What a new thread may.
    fresh: u32,
}

impl Twin {
    fn new(free: Vec<u8>) -> Self {
        let (naive, keys) = (Naive::new(free.len(), THREADS), Fake::new(free, THREADS));
        Self {
            fresh: keys.registers[0],
            naive,
            policy: Policy::new(),
            keys,
            threads: (0..THREADS).map(|_| Thread::default()).collect(),
            made: Vec::new(),
            switches: 0,
        }
    }

    /// The same outcome by both, unless the system refused: then nothing has changed.
    fn same(&mut self, ours: Result<(), DomainsError>, naive: impl FnOnce(&mut Naive) -> Result<(), DomainsError>) {
        if let Err(DomainsError::System { errno, .. }) = ours {
            assert_eq!(errno, libc::ENOMEM);
            return;
        }
        let before = self.naive.clone();
        let expected = naive(&mut self.naive);
        assert!(expected.is_ok() || before == self.naive);
        assert_eq!(ours, expected);
    }

    fn step(&mut self, step: &Step) {
        let made = self.made.len();
        let at = |one: &usize| one % made.max(1);
        let id = |twin: &Self, one: &usize| twin.made.get(at(one)).copied();
        match step {
            Step::Create(pages) => {
                if self.naive.alive.len() == MOST {
                    return;
                }
                match self.policy.create(&mut self.keys, pages * PAGE_BYTES) {
                    Err(error) => assert_eq!((error, *pages), (DomainsError::Empty, 0)),
                    Ok(one) => {
                        assert_eq!(self.policy.memory(one).map(|(_, bytes)| bytes), Ok(pages * PAGE_BYTES));
                        self.made.push(one);
                        self.naive.alive.insert(made);
                    }
                }
            }
            Step::Destroy(one) => {
                let Some(compartment) = id(self, one) else { return };
                let ours = self.policy.destroy(&mut self.keys, compartment);
                self.same(ours, |naive| naive.destroy(at(one)));
            }
            Step::Enter(thread, one) => {
                let Some(compartment) = id(self, one) else { return };
                self.keys.thread = *thread;
                let ours = self.policy.enter(&mut self.keys, &mut self.threads[*thread], compartment);
                self.switches += u64::from(ours.is_ok());
                self.same(ours, |naive| naive.enter(*thread, at(one)));
            }
            Step::Leave(thread) => {
                let Some(inner) = self.naive.stacks[*thread].last() else { return };
                self.step(&Step::LeaveOne(*thread, *inner));
            }
            Step::LeaveOne(thread, one) => {
                let Some(compartment) = id(self, one) else { return };
                self.keys.thread = *thread;
                let ours = self.policy.leave(&mut self.keys, &mut self.threads[*thread], compartment);
                self.switches += u64::from(ours.is_ok());
                self.same(ours, |naive| naive.leave(*thread, at(one)));
            }
            Step::Share(one, with, access) => {
                let (Some(compartment), Some(other)) = (id(self, one), id(self, with)) else { return };
                let ours = self.policy.share(compartment, other, *access);
                self.same(ours, |naive| naive.share(at(one), at(with), *access));
            }
            Step::Ends(thread) => {
                self.keys.thread = *thread;
                self.switches += u64::from(!self.naive.stacks[*thread].is_empty());
                self.policy.ends(&mut self.keys, &mut self.threads[*thread]);
                self.naive.stacks[*thread].clear();
            }
            Step::Forked(thread) => {
                // The others are not there any more; new ones come, which the forking thread makes when it is in
                // nothing.
                self.policy.forked(&self.threads[*thread]);
                for other in (0..THREADS).filter(|other| other != thread) {
                    self.threads[other] = Thread::default();
                    self.naive.stacks[other].clear();
                    self.keys.registers[other] = self.fresh;
                }
            }
            Step::Fails(calls) => self.keys.fails_in = *calls,
            Step::UnmapFails => self.keys.unmap_fails = true,
        }
    }

    fn check(&self) {
        let alive = self.naive.alive.iter().map(|one| (*one, self.made[*one]));
        for (one, compartment) in alive {
            let (start, bytes) = self.policy.memory(compartment).expect("it is there");
            for thread in 0..THREADS {
                for address in [start, start + bytes / 2, start + bytes - 1] {
                    let (ours, expected) = (self.keys.may(thread, address), self.naive.may(thread, one));
                    assert_eq!(ours, expected, "thread {thread}, compartment {one} at {address:#x}");
                }
            }
        }
        // A key is on the pages of one compartment at most.
        for key in 1..16 {
            let pages = self.keys.pages_of(key);
            let owner = |page: &usize| {
                self.naive.alive.iter().find(|one| {
                    let (start, bytes) = self.policy.memory(self.made[**one]).expect("it is there");
                    (start..start + bytes).contains(&(page * PAGE_BYTES))
                })
            };
            assert!(pages.iter().all(|page| owner(page) == owner(&pages[0])), "key {key}: pages {pages:?}");
        }
        let counts = self.policy.counts();
        assert_eq!(counts.compartments, self.naive.alive.len() as u64);
        assert_eq!(counts.protect_calls, self.keys.protect_calls);
        assert_eq!(counts.switches, self.switches);
        assert!(counts.flushes <= counts.protect_calls && counts.keys <= self.naive.keys as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_schedule(
        free in proptest::sample::subsequence((1u8..16).collect::<Vec<_>>(), 1..=15).prop_shuffle(),
        first in 0usize..MOST,
        steps in proptest::collection::vec(step(), 1..250),
    ) {
        let mut twin = Twin::new(free);
        for _ in 0..first {
            twin.step(&Step::Create(1));
        }
        for step in &steps {
            twin.step(step);
            twin.check();
        }
    }
}
