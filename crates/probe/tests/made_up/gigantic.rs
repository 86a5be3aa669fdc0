//! Made-up machines with pages of 1 GiB: what an entry covers of one, and how many there are, is found as it is or not
//! at all.

use crate::sim::{Array, Costs, Noise, Sim};
use crate::sim_hierarchy::{self, Gigantic, Shape};
use lookaside_machine::{PageSize, Replacement};
use lookaside_probe::{
    gigantic_levels, probe, Finding, GiganticPages, Halt, LineChain, MeasuredRange, MemoryArea, Metal, MetalError,
    PageChain, ProbeOptions, ProbeStep, PteLocation, WalkCosts, WalkReport,
};

/// Cycles of a hit of the data cache, what one of the second level adds, and what a walk adds to that.
const COSTS: Costs = Costs { hit: 4.0, second: 7.0, walk: 31.0 };
/// Entries for small pages: of the first level, and sets and ways of the second.
const SMALL: (u32, u64, u32) = (48, 128, 8);

/// A machine whose chains and whose steps are made up apart.
struct Machine {
    chains: Sim,
    steps: sim_hierarchy::Sim,
    /// Most pages of 1 GiB in a chain; 0 = there are none.
    pages: usize,
}

impl Metal for Machine {
    fn page_bits(&self, size: PageSize) -> u32 {
        if size == PageSize::G1 && self.pages > 0 {
            BITS
        } else {
            0
        }
    }

    fn max_pages(&self, _: PageSize) -> usize {
        self.pages
    }

    fn chase(&mut self, chain: &PageChain<'_>, rounds: u32, samples: usize) -> Result<Vec<f64>, MetalError> {
        let distinct: std::collections::BTreeSet<u64> = chain.pages.iter().copied().collect();
        if chain.size != PageSize::G1 || distinct.len() > self.pages {
            return Err(MetalError::Cannot(format!("{} pages of {}", distinct.len(), chain.size)));
        }
        self.chains.chase(chain, rounds, samples)
    }

    fn cycles_per_tick(&self) -> f64 {
        1.0
    }

    fn area_bytes(&mut self, area: MemoryArea) -> u64 {
        self.steps.area_bytes(area)
    }

    fn steps(&mut self, steps: &LineChain<'_>, samples: usize) -> Result<Vec<f64>, MetalError> {
        assert!(steps.area != MemoryArea::Gigantic || self.pages > 0, "there are no such pages");
        self.steps.steps(steps, samples)
    }
}

/// A machine whose entries cover so many small pages; there are so many: sets (log2) and ways of each level.
fn machine(covers: [u64; 2], arrays: [(u32, u32); 2], lru: bool, pages: usize) -> Machine {
    let seed = 1;
    let noise = Noise { sigma: 0.005, bias: 0.002, outliers: 0.03, interrupts: 0.01, grain: 26.0 };
    let policy = if lru { Replacement::Lru } else { Replacement::Random };
    // A level without entries is one in which nothing stays.
    let array = |(sets, ways): (u32, u32)| Array::linear(sets, ways.max(1), policy);
    let shape = Shape {
        line: 64,
        caches: vec![(64, 8, COSTS.hit), (2048, 8, 14.0)],
        memory: 200.0,
        first: SMALL.0 as usize,
        second: (SMALL.1, SMALL.2 as usize, COSTS.second),
        base: COSTS.second + COSTS.walk - COSTS.hit,
        first_cache_level: 1,
        lru,
        noise: (0.005, 0.02),
        neighbour: 0,
        area: 0,
        coalesce: 1,
        nested: false,
        second_cache: None,
        folded: false,
        upper: None,
        gigantic: Some(Gigantic { covers, entries: arrays.map(|(sets, ways)| (ways as usize) << sets) }),
    };
    let chains = Sim::new(&arrays.map(array), BITS, COSTS, noise, seed);
    Machine { chains, steps: sim_hierarchy::Sim::new(shape, seed), pages }
}

/// What is found there.
fn found(covers: [u64; 2], arrays: [(u32, u32); 2], lru: bool, pages: usize) -> GiganticPages {
    let seen = |cycles| Finding::confirmed(MeasuredRange { low: cycles, high: cycles, passes: 2 }, Vec::new());
    let walk = WalkReport { place: PteLocation::Cache(1), table_bytes: 0, cycles: seen(COSTS.second + COSTS.walk) };
    let walks = WalkCosts {
        second_level_cycles: seen(COSTS.second),
        walks: vec![walk],
        base_cycles: seen(COSTS.second + COSTS.walk - COSTS.hit),
        first_cache_level: Finding::confirmed(1, Vec::new()),
    };
    let small = [SMALL.0, SMALL.1 as u32 * SMALL.2];
    let mut machine = machine(covers, arrays, lru, pages);
    gigantic_levels(&mut machine, small, &walks, 1, &|| None).expect("nobody halts")
}

fn parts(found: &GiganticPages) -> [Option<PageSize>; 2] {
    [0, 1].map(|level| found.parts[level].value().copied())
}

/// Entries and sets of the levels, where they are known.
fn geometry(found: &GiganticPages) -> Vec<Option<(u32, u32)>> {
    found.levels.iter().map(|level| level.geometry.value().map(|found| (found.entries, found.sets))).collect()
}

/// Bits of a page's number.
const BITS: u32 = 14;
/// No entries.
const NONE: (u32, u32) = (0, 0);
const WHOLE: u64 = 1 << 18;
const IN_2M: u64 = 512;

#[test]
fn whole_pages_have_entries_that_are_counted_by_one_page_at_many_addresses() {
    for lru in [true, false] {
        let whole = found([WHOLE, WHOLE], [(0, 8), (4, 8)], lru, 1 << BITS);
        assert_eq!(parts(&whole), [Some(PageSize::G1); 2], "{whole:?}");
        assert_eq!(geometry(&whole), [Some((8, 1)), Some((128, 16))], "{whole:?}");
    }
}

#[test]
fn parts_that_entries_cover_are_told_for_each_level() {
    for lru in [true, false] {
        // A host of small pages; entries of 2 MiB; whole in the first level and of 2 MiB in the second, as on Zen 3.
        let small = found([1, 1], [NONE, NONE], lru, 1 << BITS);
        assert_eq!(parts(&small), [Some(PageSize::K4); 2], "{small:?}");
        let middle = found([IN_2M, IN_2M], [(0, 32), (6, 16)], lru, 1 << BITS);
        assert_eq!(parts(&middle), [Some(PageSize::M2); 2], "{middle:?}");
        let mixed = found([WHOLE, IN_2M], [(0, 16), (7, 8)], lru, 1 << BITS);
        assert_eq!(parts(&mixed), [Some(PageSize::G1), Some(PageSize::M2)], "{mixed:?}");
        assert_eq!(geometry(&mixed), [Some((16, 1)), None], "{mixed:?}");
        for found in [small, middle, mixed] {
            assert!(found.levels.iter().all(|level| !level.geometry.is_missing()), "{found:?}");
        }
    }
}

#[test]
fn a_level_without_entries_for_them_and_too_few_addresses_say_nothing_wrong() {
    // As on Haswell: four in the first level, none in the second.
    let none = found([WHOLE, WHOLE], [(0, 4), NONE], true, 1 << BITS);
    assert_eq!(parts(&none), [Some(PageSize::G1), None], "{none:?}");
    assert!(none.parts[1].reason().is_some_and(|why| why.contains("miss already")), "{none:?}");
    let few = found([WHOLE, WHOLE], [(0, 8), (4, 8)], true, 8);
    assert_eq!((parts(&few)[0], geometry(&few)), (Some(PageSize::G1), vec![None, None]), "{few:?}");
}

#[test]
fn where_there_is_none_nobody_misses_it_and_the_reason_is_said() {
    let options = ProbeOptions { only: Some(ProbeStep::Large), ..ProbeOptions::default() };
    let report = |pages| {
        let mut machine = machine([WHOLE, WHOLE], [(0, 8), (4, 8)], true, pages);
        probe(&mut machine, &options, &|| Some(Halt::Interrupted), &mut |_| ()).gigantic.expect("it was asked for")
    };
    let lacks = report(0);
    assert_eq!(lacks.lacks.as_deref(), Some("no 1G pages can be had"));
    assert!(lacks.parts.iter().all(|part| !part.is_missing()), "{lacks:?}");
    let halted = report(1 << BITS);
    assert!(
        halted.lacks.is_none() && halted.parts.iter().all(|part| part.reason() == Some("interrupted")),
        "{halted:?}"
    );
}
