//! Which pages colours get: the paper's equations, and what cannot be had.

use std::collections::BTreeMap;

use lookaside_machine::{preset, presets, ColorLevel, IndexFn, PageSize, Partitions};
use lookaside_runtime::color::{ColoredHeap, HeapOptions, SharedHeap};
use proptest::prelude::*;

use crate::support::{hashed, options, paper, partition, xeon};

const M: u32 = 16;
const PAGE: usize = 4096;

/// What chapter 3 says of R reserved sets of a level.
fn equations_hold(level: &ColorLevel, reserved: u32) {
    let (m, n) = (level.sets, level.ways);
    let options = HeapOptions::paper(PageSize::K4, vec![level.clone()], reserved).expect("colours");
    let mut heap = ColoredHeap::new(&options).expect("a heap");
    // Equation 3.2: M − R colours of up to a page. Corollary 1: N colours beyond.
    let small = m - reserved;
    assert_eq!(heap.colors(), small + if reserved == 0 { 0 } else { n });
    let set = |vpn: &u64| level.set_of(*vpn);
    let mut reserved_pages = BTreeMap::<u32, u32>::new();
    for color in 0..small {
        let vpns = heap.vpns(color);
        assert_eq!(vpns.len(), n as usize);
        assert!(vpns.iter().all(|vpn| set(vpn) == reserved + color));
        // Each page once, whole: N allocations of a page, and no more.
        let pages: Vec<*mut u8> = (0..n).map(|_| heap.malloc(PAGE, color)).collect();
        assert!(pages.iter().all(|page| !page.is_null()));
        assert!(heap.malloc(1, color).is_null());
    }
    for color in small..heap.colors() {
        let vpns = heap.vpns(color);
        vpns.iter().for_each(|vpn| *reserved_pages.entry(set(vpn)).or_default() += 1);
        assert!(vpns.windows(2).all(|pair| pair[1] == pair[0] + 1));
        // Equation 3.1: R pages at most.
        assert!(heap.malloc(reserved as usize * PAGE + 1, color).is_null());
        assert!(!heap.malloc(reserved as usize * PAGE, color).is_null(), "R = {reserved}");
    }
    // Each reserved set is full, and no other has any of them.
    assert!(reserved_pages.into_iter().eq((0..reserved).map(|set| (set, n))), "R = {reserved}");
}

#[test]
fn equations_and_corollary_of_chapter_3() {
    for reserved in 0..=M {
        equations_hold(&xeon()[0], reserved);
    }
}

/// Rows of more pages than the classes of sizes have steps of a page. (From R = 4 on: a heap has up to 256 colours.)
#[test]
fn equations_hold_for_256_sets() {
    let level = ColorLevel { name: "l1".into(), sets: 256, ways: 4, index: IndexFn::Linear };
    for reserved in [0, 4, 256].into_iter().chain((33..256).step_by(6)) {
        equations_hold(&level, reserved);
    }
}

/// Of every preset with sets in a data TLB, some R that can be: of a linear index all where nothing is coalesced, and
/// the multiples of what is; for any other the nearest are named, and are right.
#[test]
fn the_equations_hold_for_each_preset() {
    let mut tried = 0;
    for name in presets().iter().map(|preset| preset.name) {
        let machine = preset(name).expect("a preset");
        let Some(level) = machine.color_levels(PageSize::K4).into_iter().find(|level| level.sets > 1) else { continue };
        tried += 1;
        let tlb = machine.tlbs.iter().find(|tlb| tlb.name == level.name).expect("the level");
        let (coalesced, is_linear) = (tlb.coalesce_pages, tlb.index == IndexFn::Linear);
        let colors = |reserved: u32| level.sets - reserved + if reserved == 0 { 0 } else { level.ways };
        let some = [0, 1, 2, 3, 4, 6, 8, 12, level.sets / 2, level.sets - 1, level.sets];
        for reserved in some.into_iter().filter(|&reserved| reserved <= level.sets && colors(reserved) <= 256) {
            match HeapOptions::paper(PageSize::K4, vec![level.clone()], reserved) {
                Ok(_) => equations_hold(&level, reserved),
                Err(error) => {
                    assert!(!is_linear || !reserved.is_multiple_of(coalesced), "{name}, R = {reserved}: {error}");
                    let text = error.to_string();
                    let nearest = text.rsplit_once("reserve ").expect("what to do").1;
                    for other in nearest.split(" or ") {
                        let other = other.parse().expect("a number of sets");
                        HeapOptions::paper(PageSize::K4, vec![level.clone()], other).expect(&text);
                    }
                }
            }
        }
    }
    assert!(tried > 5);
}

#[test]
fn any_index_has_its_pages() {
    let machine = preset("skylake").expect("a preset");
    let levels = machine.color_levels(PageSize::K4);
    assert!(levels.len() == 2 && levels[1].index.masks(levels[1].sets).iter().any(|mask| mask.count_ones() > 1));
    let stlb: Vec<u32> = (32..48).collect();
    let own = [partition("p", None, 1, &[(&levels[0].name, &[3, 7], Some(2)), (&levels[1].name, &stlb, Some(1))])];
    let heap = ColoredHeap::new(&options(levels.clone(), own.to_vec())).expect("a heap");
    let vpns = heap.vpns(0);
    // Four by the first level, whose sets decide first.
    assert_eq!(vpns.len(), 4);
    for vpn in &vpns {
        assert!([3, 7].contains(&levels[0].set_of(*vpn)) && stlb.contains(&levels[1].set_of(*vpn)));
    }
    let sets: std::collections::BTreeSet<u32> = vpns.iter().map(|vpn| levels[1].set_of(*vpn)).collect();
    assert_eq!(sets.len(), 4);
}

#[test]
fn bookkeeping_keeps_to_its_own_sets() {
    let levels = vec![hashed("l1", 4, 4)];
    let colors = (0..15).map(|set| partition(&format!("c{set}"), None, 1, &[("l1", &[set], Some(4))])).collect();
    let own = partition("bookkeeping", None, 1, &[("l1", &[15], None)]);
    let heap =
        ColoredHeap::new(&HeapOptions { bookkeeping: Some(own), ..options(levels.clone(), colors) }).expect("a heap");
    assert!(heap.bookkeeping_vpns().iter().all(|vpn| levels[0].set_of(*vpn) == 15));
    // All that fifteen colours of four pages need.
    assert!(heap.bookkeeping_vpns().len() <= 6, "{:?}", heap.bookkeeping_vpns());
}

/// A file's partitions leave room for the heap itself, or the heap is refused.
#[test]
fn bookkeeping_takes_what_is_left() {
    let file = |ways| Partitions {
        machine: "m".into(),
        page_size: PageSize::K4,
        levels: xeon(),
        partitions: vec![
            partition("a", None, 1, &[("l1d-4k", &(0..15).collect::<Vec<_>>(), Some(4))]),
            partition("b", None, 1, &[("l1d-4k", &[15], Some(ways))]),
        ],
    };
    let heap = ColoredHeap::new(&HeapOptions::of(&file(1))).expect("a heap");
    let own = heap.bookkeeping_vpns();
    assert!(own.len() <= 3 && own.iter().all(|vpn| vpn % 16 == 15), "{own:?}");
    let said = ColoredHeap::new(&HeapOptions::of(&file(4))).expect_err("no room").to_string();
    assert_eq!(
        said,
        "bookkeeping: no 1 contiguous pages lie in its sets; leave 3 pages to the heap itself, or give it a partition called bookkeeping"
    );
}

#[test]
fn what_cannot_be_had_is_said() {
    let said = |color| ColoredHeap::new(&options(xeon(), vec![color])).expect_err("no such heap").to_string();
    let l1 = "l1d-4k";
    assert_eq!(said(partition("a", Some(5), 1, &[(l1, &[0], Some(4))])), "a: 4 of 5 pages lie in its sets");
    assert_eq!(said(partition("a", Some(2), 2, &[(l1, &[0, 2], Some(4))])), "a: no 2 contiguous pages lie in its sets");
    assert_eq!(
        said(partition("a", None, 1, &[(l1, &[0], None)])),
        "a: has sets without a number of ways: say how many pages it has"
    );
    assert_eq!(
        HeapOptions::paper(PageSize::K4, xeon(), 17).expect_err("too many").to_string(),
        "17 reserved sets are more than the 16 of l1d-4k"
    );
}

#[test]
fn a_stack_has_a_guard_and_is_given_back() {
    let mut heap = paper(8);
    let row = M - 8;
    let (lowest, bytes) = heap.stack(20_000, row).expect("a stack");
    assert_eq!((bytes, lowest as usize % PAGE), (5 * PAGE, 0));
    let vpns = heap.vpns(row);
    assert!((0..5).all(|page| vpns.contains(&((lowest as u64 >> 12) + page))));
    let rights = |at: *mut u8| {
        let vmas = lookaside_host::Process::own().maps().expect("its mappings");
        let vma = vmas.into_iter().find(|vma| vma.start <= at as u64 && (at as u64) < vma.end).expect("it is mapped");
        vma.rights
    };
    let guard = lowest.wrapping_sub(PAGE);
    let ends = [guard, guard.wrapping_add(PAGE - 1), lowest, lowest.wrapping_add(bytes - 1)];
    assert_eq!(ends.map(rights), ["---p", "---p", "rw-p", "rw-p"]);
    // A thread runs on it, and sees an address in it.
    // SAFETY: attributes and a thread of this function's own, which has ended before the stack is given back.
    let inside = unsafe {
        extern "C" fn main(_: *mut libc::c_void) -> *mut libc::c_void {
            let local = 0u8;
            std::ptr::from_ref(std::hint::black_box(&local)) as *mut libc::c_void
        }
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        assert_eq!(libc::pthread_attr_setstack(&mut attributes, lowest.cast(), bytes), 0);
        let mut thread = 0;
        assert_eq!(libc::pthread_create(&mut thread, &attributes, main, std::ptr::null_mut()), 0);
        let mut seen = std::ptr::null_mut();
        assert_eq!(libc::pthread_join(thread, &mut seen), 0);
        seen as usize
    };
    assert!((lowest as usize..lowest as usize + bytes).contains(&inside));
    assert!(heap.stack(20_000, row).is_err());
    // SAFETY: nobody is on it.
    unsafe { heap.end_stack(lowest) }.expect("an end");
    assert_eq!([guard, lowest].map(rights), ["rw-p"; 2], "both are the heap's again");
    assert!(heap.stack(20_000, row).is_ok());
    assert!(heap
        .stack(1, 0)
        .expect_err("one page and a guard")
        .to_string()
        .contains("colour 0 has no 1 contiguous bytes"));
}

/// Four pages of a set, each a run by itself: a block aligned to a page does not fit beside its header.
#[test]
fn what_is_had_as_a_page_after_all_is_not_counted_as_refused() {
    let mut heap = paper(4);
    for n in 1..=4 {
        let at = heap.aligned(PAGE, 100, 0);
        assert!(!at.is_null() && (at as usize).is_multiple_of(PAGE));
        let stats = heap.stats(0).expect("a colour");
        assert_eq!((stats.refused, stats.allocations, stats.used_bytes), (0, n, n * PAGE as u64));
    }
    assert!(heap.aligned(PAGE, 100, 0).is_null() && heap.aligned(2 * PAGE, 100, 0).is_null());
    // Of no bytes no page is taken.
    assert!(heap.aligned(PAGE, 0, 0).is_null());
    assert_eq!(heap.stats(0).expect("a colour").refused, 3);
}

/// More runs than eight pages of the table have: every fourth page is one.
#[test]
fn colours_of_addresses_among_2400_runs() {
    let level = ColorLevel { name: "l1".into(), sets: 4, ways: 4000, index: IndexFn::Linear };
    let colors = vec![partition("a", Some(2400), 1, &[("l1", &[2], None)])];
    let heap = SharedHeap::new(&options(vec![level], colors)).expect("a heap");
    let vpns = heap.vpns(0);
    assert_eq!(vpns.len(), 2400);
    for vpn in vpns {
        let of = [vpn - 1, vpn, vpn + 1].map(|vpn| heap.color_of((vpn << 12) as *const u8));
        assert_eq!(of, [None, Some(0), None], "{vpn:#x}");
    }
}

/// A heap that threads share says of itself what it would say to one.
#[test]
fn a_shared_heap_tells_its_colours_and_its_own_pages() {
    let colors = vec![partition("a", Some(3), 3, &[]), partition("b", None, 1, &[("l1d-4k", &[3], Some(4))])];
    let heap = SharedHeap::new(&options(xeon(), colors)).expect("a heap");
    assert_eq!((heap.colors(), heap.vpns(0).len(), heap.vpns(1).len()), (2, 3, 4));
    let own = heap.bookkeeping_vpns();
    assert!(own.len() >= 3 && own.iter().all(|vpn| *vpn > 1 && heap.color_of((vpn << 12) as *const u8).is_none()));
    assert_eq!(heap.huge_bytes(), Ok(0));
}

/// A page's colour is found among any number of runs, those of several pages of the table too.
#[test]
fn colours_of_addresses() {
    let level = ColorLevel { name: "l1".into(), sets: 64, ways: 400, index: IndexFn::Linear };
    for ways in [1, 2, 3, 127, 128, 129, 300] {
        let one = |name, sets: &[u32], row| partition(name, None, row, &[("l1", sets, Some(ways))]);
        let colors = vec![one("a", &[1], 1), one("b", &[5, 6], 2)];
        let heap = SharedHeap::new(&options(vec![level.clone()], colors)).expect("a heap");
        let of: BTreeMap<u64, u32> =
            (0..2).flat_map(|color| heap.vpns(color).into_iter().map(move |vpn| (vpn, color))).collect();
        let (first, last) = (of.keys().min().expect("a page") - 2, of.keys().max().expect("a page") + 2);
        for vpn in first..=last {
            for byte in [0, 1, 4095] {
                assert_eq!(heap.color_of((vpn << 12 | byte) as *const u8), of.get(&vpn).copied(), "{vpn:#x}");
            }
        }
        assert_eq!(heap.color_of(std::ptr::null()), None);
    }
}

proptest! {
    /// An empty colour of up to 16 runs gives its longest one, as a block and as pages, also after other allocations
    /// came and went.
    #[test]
    fn an_empty_colour_gives_its_longest_run(
        pages in 1u32..400, ways in 1u32..=16, checked: bool, others in proptest::collection::vec(0usize..100_000, 0..20)
    ) {
        let level = ColorLevel { name: "l1".into(), sets: 512, ways: 16, index: IndexFn::Linear };
        let row: Vec<u32> = (0..pages).collect();
        let color = partition("rows", None, u64::from(pages), &[("l1", &row, Some(ways))]);
        let mut heap = ColoredHeap::new(&HeapOptions { checked, ..options(vec![level], vec![color]) }).expect("a heap");
        let run = pages as usize * PAGE;
        let others: Vec<*mut u8> = others.into_iter().map(|bytes| heap.malloc(bytes, 0)).collect();
        // SAFETY: allocations of this heap, each once.
        others.into_iter().rev().for_each(|at| unsafe { heap.free(at) }.expect("a free"));
        // Header and first bytes of a run are 24; a sixteenth less is in the class of the whole.
        for bytes in [run - 24, run - 23, run - run / 16, run] {
            let all: Vec<*mut u8> = (0..ways).map(|_| heap.malloc(bytes, 0)).collect();
            prop_assert!(all.iter().all(|at| !at.is_null()), "{} bytes", bytes);
            prop_assert!(heap.is_sound());
            // SAFETY: as above.
            all.into_iter().for_each(|at| unsafe { heap.free(at) }.expect("a free"));
        }
    }

    /// Colours of one partition file never have a page in common, nor more pages of a set than ways were promised.
    #[test]
    fn promises_are_kept(ways in proptest::collection::vec(1u32..3, 4), sets in proptest::collection::vec(1u32..255, 4)) {
        let level = hashed("l1", 3, 8);
        let own: Vec<Vec<u32>> = sets.iter().map(|sets| (0..8).filter(|set| sets >> set & 1 == 1).collect()).collect();
        let own: Vec<Vec<u32>> = own.into_iter().map(|sets| if sets.is_empty() { vec![0] } else { sets }).collect();
        let colors = (0..4).map(|i| partition(&i.to_string(), None, 1, &[("l1", &own[i], Some(ways[i]))])).collect();
        let heap = ColoredHeap::new(&options(vec![level.clone()], colors)).expect("a heap");
        let mut seen = std::collections::BTreeSet::new();
        for color in 0..4u32 {
            let vpns = heap.vpns(color);
            for set in 0..8 {
                let here = vpns.iter().filter(|vpn| level.set_of(**vpn) == set).count() as u32;
                prop_assert_eq!(here, if own[color as usize].contains(&set) { ways[color as usize] } else { 0 });
            }
            prop_assert!(vpns.iter().all(|vpn| seen.insert(*vpn)));
        }
        prop_assert!(heap.bookkeeping_vpns().iter().all(|vpn| seen.insert(*vpn)));
    }
}
