//! Parts of the model worked out by hand, or beside the plainest form of them.

use lookaside_machine::{preset, Machine};
use lookaside_stats::SplitMix64;

use super::cache::SimulatedCache;
use super::dram::Dram;
use super::stride::Stride;
use super::*;
use crate::interface::Version;

fn a7() -> Machine {
    preset("cortex-a7").unwrap()
}

fn gem5() -> Machine {
    preset("gem5-armv7").unwrap()
}

/// 150 cycles, 92 from line to line, 3 for the main TLB and for a hit in L1.
#[test]
fn the_third_pld_waits_for_the_first_ones_line() {
    let mut core = CortexA7::new(&a7(), 1).unwrap();
    core.prefetching = false;
    for page in 0..8 {
        core.tables.map(0x4_0000 + page, 0x1_0000 + page, 3).unwrap();
    }
    let mut took = Vec::new();
    for page in 0..6 {
        core.pld((0x4_0000 + page) << PAGE_SHIFT).unwrap();
        took.push(core.cycles());
    }
    // Two references of 150. Then hits. Lines come at 453 and, 92 apart, at 545, 637, 729: these are what the third pld
    // on waits for.
    assert_eq!(took, [303, 312, 453, 545, 637, 729]);
    assert_eq!((core.accesses, core.lines()), (6, 8));
    // Translations are there, and the lines.
    core.settle();
    let start = core.cycles();
    core.load(0x4_0000 << PAGE_SHIFT).unwrap();
    assert_eq!(core.cycles() - start, 3, "micro TLB, L1");
    assert!(core.translates(0x4_0005 << PAGE_SHIFT) && !core.translates(0x4_0006 << PAGE_SHIFT));
    core.flush();
    assert!(!core.translates(0x4_0000 << PAGE_SHIFT));
}

#[test]
fn from_the_eighteenth_on_pld_only_walks() {
    let mut benchmark = A7Benchmark::new(&a7(), 18, STRIDE_4K, 3).unwrap();
    let found = benchmark.preload().unwrap();
    // 17 lines of pages; a first-level line, and descriptors 4 to 21 in two lines.
    assert_eq!((found.accesses, found.misses), (17, 20));
}

#[test]
fn loads_wait_and_are_prefetched_from_the_third_on() {
    let mut core = CortexA7::new(&a7(), 1).unwrap();
    for page in 0..8 {
        core.tables.map(0x4_0000 + page, 0x1_0000 + page, 3).unwrap();
    }
    let load = |core: &mut CortexA7, page: u32| {
        let start = core.cycles();
        core.load((0x4_0000 + page) << PAGE_SHIFT).unwrap();
        core.cycles() - start
    };
    // Walk and line; then 3 + 3 + 3 of a walk that hits, and a line. The fourth and fifth were asked for one access
    // ahead.
    assert_eq!([0, 1, 2].map(|page| load(&mut core, page)), [453, 159, 159]);
    assert!(load(&mut core, 3) <= 150);
    assert_eq!(load(&mut core, 4), 92);
}

#[test]
fn entries_take_ten_cycles_to_read_and_the_loop_three() {
    let mut benchmark = A7Benchmark::new(&a7(), 1, STRIDE_4K, 1).unwrap();
    for (entries, cycles) in [(1, 13), (2, 23), (4, 43), (8, 83), (16, 163), (32, 323), (64, 643)] {
        assert_eq!(benchmark.read_entries(entries).unwrap(), cycles);
    }
}

#[test]
fn strides_are_seen_at_the_third_access() {
    let mut stride = Stride::default();
    assert_eq!(
        [100, 200, 300, 400, 350, 300, 250].map(|addr| stride.access(addr)),
        [None, None, Some(400), Some(500), None, Some(250), Some(200)]
    );
    let mut still = Stride::default();
    assert_eq!([7, 7, 7, 7].map(|addr| still.access(addr)), [None; 4], "a line is not its own successor");
}

#[test]
fn refresh_holds_memory_up_for_130_ns_of_3900() {
    let mut dram = Dram::new(150, 92);
    dram.refresh(0);
    assert_eq!(dram.request(0), 117 + 150);
    assert_eq!(dram.request(1000), 1150);
    assert_eq!(dram.request(1010), 1150 + 92, "behind the one before");
    assert_eq!(dram.request(3509), 3659);
    assert_eq!(dram.request(3520), 3510 + 117 + 150);
}

#[test]
fn caches_that_are_not_modelled_are_refused() {
    use lookaside_machine::{IndexFn, Replacement};
    let shape = gem5().caches.into_iter().find(|cache| cache.name == "l1d-cache").unwrap();
    let bits = shape.sets().trailing_zeros();
    let hashed = IndexFn::Masks((0..bits).map(|bit| (1 | 1 << bits) << bit).collect());
    for shape in [
        lookaside_machine::Cache { index: hashed, ..shape.clone() },
        lookaside_machine::Cache { replacement: Replacement::Fifo, ..shape },
    ] {
        let Err(error) = SimulatedCache::new(&shape, "m", 1) else { panic!("it is another cache") };
        let error = error.to_string();
        assert!(error.contains("LRU or random replacement, indexed by the low bits"), "{error}");
    }
}

/// LRU caches beside lists of lines, most recent first.
#[test]
fn a_cache_is_a_list_a_set() {
    let machine = gem5();
    let shape = machine.caches.iter().find(|cache| cache.name == "l1d-cache").unwrap();
    let mut cache = SimulatedCache::new(shape, &machine.name, 1).unwrap();
    let mut lists = vec![Vec::new(); shape.sets() as usize];
    let mut random = SplitMix64::new(5);
    for step in 0..20_000 {
        // Few sets, so that they overflow.
        let line = (random.next_u64() % 4 + (random.next_u64() % 5) * u64::from(shape.sets())) as u32;
        let list = &mut lists[(line & (shape.sets() - 1)) as usize];
        let at = list.iter().position(|of| *of == line);
        assert_eq!(cache.find(line * 64 + step % 64).is_some(), at.is_some(), "step {step}");
        match at {
            Some(at) => drop(list.remove(at)),
            None => cache.fill(line * 64, 0),
        }
        list.insert(0, line);
        list.truncate(2);
        match random.next_u64() % 500 {
            0 => {
                cache.flush();
                lists.iter_mut().for_each(Vec::clear);
            }
            1 => {
                cache.drop_line(line * 64);
                lists[(line & (shape.sets() - 1)) as usize].retain(|of| *of != line);
            }
            _ => {}
        }
    }
}

/// Seven other entries and one page, by the listings' instructions of 3 cycles, hits of 2, and memory of 110.
#[test]
fn one_page_through_each_interface_as_added_up_by_hand() {
    let steps = |version| Gem5Benchmark::new(&gem5(), 1, STRIDE_68K).unwrap().six_steps(version).unwrap();
    // Two references of a walk, not by way of L1; the page's line; five instructions.
    let clean = 2 * 108 + 110 + 5 * 3;
    let entering = 4 * 110;
    // Words stored: a line's first waits.
    let words = |count: u64| count.div_ceil(16) * 110 + (count - count.div_ceil(16)) * 2;
    for (version, save, restore) in [
        (Version::V1, 64 * 9 * 3 + 8 * 3 * 3 + words(24), 8 * 8 * 3 + words(24)),
        (Version::V2, 64 * 9 * 3 + 8 * 2 * 3 + words(16), 8 * 6 * 3 + words(16)),
        (Version::V3, 3 + 9 * 6 * 3 + words(16), 3 + 8 * 5 * 3 + words(16)),
        (Version::V4, 3 + 8 * 6 * 3 + words(14), 3 + 7 * 5 * 3 + words(14) + 2 * 3),
    ] {
        let expected = Steps {
            clean_cycles: clean,
            save_cycles: entering + save,
            restore_cycles: entering + restore,
            migrated_cycles: 110 + 5 * 3,
            saved_entries: 8,
        };
        assert_eq!(steps(version), expected, "{version}");
    }
}
