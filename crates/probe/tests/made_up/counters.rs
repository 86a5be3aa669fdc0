//! Hardware counters that are made up: what counts as its name says is used, what does not is told apart.

use crate::sim::{Array, Costs, Noise, Sim};
use lookaside_machine::{PageSize, Replacement};
use lookaside_probe::{
    try_events, usable_events, ChainBench, CoreUse, CountedMisses, Finding, FirstLevelFlood, Geometry, LevelMeter,
    Metal, MetalError, PageChain, PmuEvent, TriedEvent,
};

/// What the made-up PMU does with an event, by its code.
const WORKS: u64 = 1;
const COUNTS_NOTHING: u64 = 2;
const COUNTS_LOADS: u64 = 3;
const COUNTS_ANOTHER_LEVEL: u64 = 4;
const COUNTS_HALF: u64 = 5;
const REFUSES: u64 = 6;

struct WithPmu(Sim);

impl Metal for WithPmu {
    fn page_bits(&self, size: PageSize) -> u32 {
        self.0.page_bits(size)
    }

    fn max_pages(&self, size: PageSize) -> usize {
        self.0.max_pages(size)
    }

    fn chase(&mut self, chain: &PageChain<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        self.0.chase(chain, rounds, samples)
    }

    fn cycles_per_tick(&self) -> f64 {
        1.0
    }

    fn count(&mut self, chain: &PageChain<'_>, rounds: u32, event: &PmuEvent) -> Result<u64, MetalError> {
        let accesses = chain.pages.len() as u64 * u64::from(rounds);
        let some = accesses / 1000; // interrupts and what else is counted by mistake
        let other = match event.counts {
            CountedMisses::Walks => CountedMisses::FirstMisses,
            _ => CountedMisses::Walks,
        };
        match event.code {
            WORKS => Ok(self.0.count(chain, rounds, event)? + some),
            COUNTS_NOTHING => Ok(0),
            COUNTS_LOADS => Ok(accesses),
            COUNTS_ANOTHER_LEVEL => self.0.count(chain, rounds, &PmuEvent { counts: other, ..*event }),
            COUNTS_HALF => Ok(self.0.count(chain, rounds, event)? / 2),
            _ => Err(MetalError::Cannot("no PMU here".into())),
        }
    }
}

const BITS: u32 = 24;

fn masks(sets_log2: u32) -> Vec<u64> {
    (0..sets_log2).map(|bit| 1 << bit | 1 << (bit + 10)).collect()
}

fn geometry(sets_log2: u32, ways: u32) -> Geometry {
    Geometry { entries: ways << sets_log2, ways, sets: 1 << sets_log2, masks: masks(sets_log2) }
}

/// What becomes of events that do this, with both levels known or neither.
fn tried(code: u64, levels: bool) -> Vec<TriedEvent> {
    let (first, second) = (geometry(4, 4), geometry(7, 12));
    let array = |geometry: &Geometry| Array {
        sets: geometry.sets,
        ways: geometry.ways,
        masks: geometry.masks.clone(),
        replacement: Replacement::Lru,
    };
    let costs = Costs { hit: 4.0, second: 6.0, walk: 35.0 };
    let noise = Noise { sigma: 0.003, bias: 0.001, outliers: 0.01, interrupts: 0.0, grain: 1.0 };
    let mut metal = WithPmu(Sim::new(&[array(&first), array(&second)], BITS, costs, noise, 3));
    let mut bench = ChainBench::new(&mut metal, PageSize::K4, 1, &|| None);
    let above = FirstLevelFlood::new(first.masks.clone(), first.ways, 2.0, BITS);
    let level = LevelMeter {
        hit_ticks: costs.hit,
        miss_ticks: costs.second,
        above_ticks: 0.0,
        above: None,
        core: CoreUse::Own,
        lanes: Vec::new(),
    };
    let mut below =
        LevelMeter { miss_ticks: costs.walk, above_ticks: costs.second, above: Some(above), ..level.clone() };
    below.know_masks(&second.masks);
    let events = [CountedMisses::FirstMisses, CountedMisses::SecondHits, CountedMisses::Walks].map(|counts| PmuEvent {
        name: "made up",
        code,
        counts,
        source: "this test",
    });
    let known = if levels { (Some((&first, &level)), Some((&second, &below))) } else { (None, None) };
    try_events(&mut bench, &events, known.0, known.1).expect("nothing halts it")
}

fn reasons(tried: &[TriedEvent]) -> Vec<&str> {
    tried.iter().map(|counted| counted.proof.reason().expect("not proven")).collect()
}

#[test]
fn what_works_is_proven_and_confirms_the_sets() {
    let tried = tried(WORKS, true);
    for counted in &tried {
        let proof = counted.proof.value().unwrap_or_else(|| panic!("{:?}", counted.proof));
        let middle = proof.middle_per_kilo_access.expect("both levels are known");
        let high = |count: f64| (730.0..=1100.0).contains(&count);
        assert!(proof.near_per_kilo_access <= 1.0);
        assert_eq!(
            (high(middle), high(proof.far_per_kilo_access)),
            match counted.event.counts {
                CountedMisses::FirstMisses => (true, true),
                CountedMisses::SecondHits => (true, false),
                CountedMisses::Walks => (false, true),
            }
        );
        let [set] = counted.sets[..] else { panic!("{:?}", counted.sets) };
        let expected = if counted.event.counts == CountedMisses::Walks { (2, 12) } else { (1, 4) };
        assert_eq!((set.level, set.ways), expected);
        assert!(set.confirms(), "{counted:?}");
    }
    assert_eq!(usable_events(tried.clone()), Finding::confirmed(tried, Vec::new()));
}

#[test]
fn what_opens_and_counts_nothing_is_said() {
    assert_eq!(reasons(&tried(COUNTS_NOTHING, true)), ["opens, but does not count"; 3]);
    assert_eq!(reasons(&tried(COUNTS_NOTHING, false)), ["opens, but does not count"; 3]);
}

#[test]
fn what_counts_something_else_is_told_apart() {
    for code in [COUNTS_LOADS, COUNTS_ANOTHER_LEVEL, COUNTS_HALF] {
        let tried = tried(code, true);
        for reason in reasons(&tried) {
            assert!(reason.starts_with("opens, but counts something else"), "{reason}");
        }
        assert!(tried.iter().all(|counted| counted.sets.is_empty()));
    }
}

#[test]
fn without_levels_only_what_can_be_proven_is() {
    let tried = tried(WORKS, false);
    let proven: Vec<bool> = tried.iter().map(|counted| counted.proof.value().is_some()).collect();
    assert_eq!(proven, [true, false, true]); // no chain is known to hit the second level
    assert!(tried.iter().all(|counted| counted.sets.is_empty()));
}

#[test]
fn one_line_says_why_there_are_none() {
    let tried = tried(REFUSES, true);
    let found = usable_events(tried);
    assert_eq!(found.reason(), Some("none of 3 can be used: no PMU here"));
    assert!(found.is_missing() && !found.unasked().is_missing());
}
