//! The heap that grows: what its runs of pages can hold lies in them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lookaside_host::Mapping;
use lookaside_runtime::color::{BadFree, GrowingHeap, Outside};
use proptest::prelude::*;

/// A heap of a partition's line; one that cannot be made is an error. It keeps up to 4 TiB of addresses as long as the
/// program runs, of which there are 128: a heap a test, not a case.
fn heap_of(line: &'static str) -> GrowingHeap {
    let heap = GrowingHeap::new();
    heap.ready(|| Some(line.as_bytes()), |why| panic!("{why}"));
    heap
}

fn stats(heap: &GrowingHeap) -> (u64, u64, u64) {
    let stats = heap.stats();
    (stats.capacity_bytes, stats.allocations, stats.refused)
}

#[test]
fn the_longest_run_is_given_whole() {
    // The first sets of 128; lengths on both sides of the classes' steps, and 1.
    for pages in [1usize, 2, 31, 33, 40, 67, 101] {
        // A line is read for as long as the program runs, and the heap's memory stays.
        let line: &'static str = format!("12;-;1,2,4,8,10,20,40/0-{}=*", pages - 1).leak();
        let heap = GrowingHeap::new();
        heap.ready(|| Some(line.as_bytes()), |why| panic!("{why}"));
        for alignment in [1, 8, 16] {
            // A block's header and the first bytes of a run are 24.
            let at = heap.malloc(alignment, pages * 4096 - 24);
            assert!(!at.is_null());
            assert_eq!(at as usize >> 12 & 127, 0, "{pages}");
        }
        assert_eq!(heap.outside(), Outside::default(), "{pages}");
        assert!(!heap.malloc(1, pages * 4096 - 23).is_null());
        assert_eq!(heap.outside().allocations, 1, "{pages}");
        assert_eq!(heap.stats().refused, 0);
    }
}

#[test]
fn threads_begin_and_share_it() {
    let heap = GrowingHeap::new();
    std::thread::scope(|scope| {
        for thread in 1..=4u8 {
            let heap = &heap;
            scope.spawn(move || {
                heap.ready(|| Some(b"12;-;1,2,4,8,10,20,40/0-63=*"), |why| panic!("{why}"));
                let mut held = Vec::new();
                for round in 0..2_000usize {
                    let bytes = 1 + round * 37 % 700;
                    let at = heap.malloc(1, bytes);
                    assert!(!at.is_null());
                    // SAFETY: this thread's own allocation of that size.
                    unsafe { at.write_bytes(thread, bytes) };
                    held.push((at, bytes));
                    if held.len() > 20 {
                        let (at, bytes) = held.swap_remove(round % 20);
                        // SAFETY: as above, until it is given back.
                        let kept = unsafe { std::slice::from_raw_parts(at, bytes).iter().all(|byte| *byte == thread) };
                        assert!(kept, "another thread wrote into it");
                        // SAFETY: nobody uses it any more.
                        unsafe { heap.free(at) }.expect("its own");
                    }
                }
            });
        }
    });
    assert_eq!(heap.outside(), Outside::default());
    assert_eq!(heap.stats().refused, 0);
}

/// It grows by a mebibyte, and by more where more is asked for: 8 MiB and a header are 2049 pages.
#[test]
fn it_grows_by_256_pages_or_by_what_is_asked_for() {
    let heap = heap_of("12;-");
    assert_eq!(stats(&heap), (0, 0, 0), "what it knows is in a page of its own");
    let small = heap.malloc(1, 100);
    assert_eq!(stats(&heap), (1 << 20, 1, 0));
    assert!(!heap.malloc(1, (1 << 20) - 4096).is_null());
    assert_eq!(stats(&heap), (1 << 20, 2, 0), "there was room");
    assert!(!heap.malloc(1, 8 << 20).is_null());
    assert_eq!(stats(&heap), ((1 << 20) + 2049 * 4096, 3, 0));
    // SAFETY: it came from there, and nobody uses it.
    assert_eq!(unsafe { heap.free(small) }, Ok(()));
    assert_eq!(stats(&heap).1, 2);
    assert_eq!(heap.outside(), Outside::default());
}

#[test]
fn it_has_no_more_pages_than_its_partition() {
    // One for what it knows, ten for others: no more than the line says, in runs of at most four.
    let heap = heap_of("12;11;1,2,4,8,10,20,40/0-3=*");
    let pages: Vec<*mut u8> =
        std::iter::from_fn(|| Some(heap.malloc(1, 4000))).take_while(|at| !at.is_null()).collect();
    assert_eq!(pages.len(), 10);
    assert!(pages.iter().all(|at| *at as usize >> 12 & 127 < 4));
    assert_eq!(stats(&heap), (10 * 4096, 10, 1), "what the partition could hold is refused");
    assert_eq!(heap.outside(), Outside::default());
    // A fifth page in a row it never has: that comes from elsewhere.
    let large = heap.malloc(1, 5 * 4096);
    assert!(!large.is_null() && (large as usize).is_multiple_of(4096));
    assert_eq!((heap.outside(), stats(&heap).2), (Outside { allocations: 1, bytes: 5 * 4096 }, 1));
    // SAFETY: they came from there, and nobody uses them.
    unsafe {
        assert_eq!(heap.free(large), Ok(()));
        assert_eq!(heap.free(pages[3]), Ok(()));
    }
    assert_eq!(heap.malloc(1, 4000), pages[3], "what was given back is given again");
}

#[test]
fn sets_have_no_more_pages_than_their_ways() {
    // Two pages in each of sets 1 and 2, one of which is for what it knows.
    let heap = heap_of("12;-;1,2,4,8,10,20,40/1-2=2");
    let pages: Vec<*mut u8> =
        std::iter::from_fn(|| Some(heap.malloc(1, 4000))).take_while(|at| !at.is_null()).collect();
    let mut sets: Vec<usize> = pages.iter().map(|at| *at as usize >> 12 & 127).collect();
    sets.sort_unstable();
    assert!(sets == [1, 2, 2] || sets == [1, 1, 2], "{sets:?}");
}

#[test]
fn without_a_partition_all_comes_from_elsewhere_and_it_is_said_why_once() {
    for (line, why) in [
        (None, "no partition is named"),
        (Some("12;-;zz/0-3=*"), "LOOKASIDE_COLOR cannot be read"),
        (Some("11;-"), "LOOKASIDE_COLOR cannot be read"),
        (Some("21;-"), "only pages of 4 KiB can be given to a whole program"),
        (Some("12;0"), "the partition has no page"),
    ] {
        let (heap, said) = (GrowingHeap::new(), RefCell::new(Vec::new()));
        heap.ready(|| line.map(str::as_bytes), |why| said.borrow_mut().push(why.to_string()));
        heap.ready(|| panic!("it was made"), |why| panic!("{why}"));
        assert_eq!(*said.borrow(), [why]);
        let at = heap.malloc(1, 100);
        assert!(!at.is_null(), "{why}");
        assert_eq!((heap.outside(), stats(&heap)), (Outside { allocations: 1, bytes: 100 }, (0, 0, 0)));
        // SAFETY: it came from there, and nobody uses it.
        unsafe {
            at.write_bytes(1, 100);
            assert!(heap.usable(at).is_ok_and(|usable| usable >= 100));
            assert_eq!(heap.free(at), Ok(()));
        }
    }
}

/// A partition of one set: a run is a page, whose first bytes are the heap's.
#[test]
fn what_lies_outside_is_aligned_and_changes_its_size_where_half_of_it_is_used() {
    let heap = heap_of("12;-;1,2,4,8,10,20,40/5-5=*");
    for alignment in [1, 16, 4096, 1 << 16, 1 << 21] {
        let at = heap.malloc(alignment, 100_000);
        assert!(!at.is_null() && (at as usize).is_multiple_of(alignment.max(4096)), "{alignment}: {at:p}");
        // SAFETY: it came from there, and is given back once.
        unsafe {
            let usable = heap.usable(at).expect("an allocation");
            assert!((100_000..100_000 + alignment.max(4096) + 4096).contains(&usable), "{alignment}: {usable}");
            at.write_bytes(7, usable);
            assert_eq!(heap.free(at), Ok(()));
        }
    }
    let at = heap.malloc(1, 100_000);
    // SAFETY: it came from there; what was moved is not used any more.
    unsafe {
        at.write_bytes(7, 100_000);
        let had = heap.usable(at).expect("an allocation");
        assert_eq!(heap.realloc(at, had), Ok(at));
        assert_eq!(heap.realloc(at, had / 2 + 1), Ok(at));
        let less = heap.realloc(at, had / 2).expect("an allocation");
        assert!(less != at && std::slice::from_raw_parts(less, had / 2).iter().all(|byte| *byte == 7));
        let more = heap.realloc(less, 200_000).expect("an allocation");
        assert!(more != less && std::slice::from_raw_parts(more, had / 2).iter().all(|byte| *byte == 7));
        // Where it fits a page again it comes back to the partition.
        let inside = heap.realloc(more, 1_000).expect("an allocation");
        assert_eq!(inside as usize >> 12 & 127, 5);
        assert!(std::slice::from_raw_parts(inside, 1_000).iter().all(|byte| *byte == 7));
        assert_eq!((heap.free(inside), heap.free(std::ptr::null_mut())), (Ok(()), Ok(())));
    }
    assert_eq!(stats(&heap).1, 0);
    assert!(heap.malloc(1, usize::MAX).is_null() && heap.malloc(1 << 63, 1 << 62).is_null());
    assert!(heap.malloc(1, isize::MAX as usize).is_null(), "more than there are addresses");
}

#[test]
fn what_never_came_from_it_is_told() {
    let heap = heap_of("12;-;1,2,4,8,10,20,40/0-3=*");
    let (inside, outside) = (heap.malloc(1, 100), heap.malloc(1, 100_000));
    let foreign = Mapping::new(2 * 4096).expect("memory");
    let page = foreign.start().as_ptr().wrapping_add(4096);
    // SAFETY: nothing of these is an allocation's begin, so that nothing is given back; the bytes in front can be read.
    unsafe {
        assert_eq!(heap.free(page), Err(BadFree::Foreign));
        assert_eq!(heap.usable(page), Err(BadFree::Foreign));
        assert_eq!(heap.free(outside.wrapping_add(16)), Err(BadFree::Foreign));
        assert_eq!(heap.free(outside.wrapping_add(4096)), Err(BadFree::Foreign), "no begin, but of a page");
        assert_eq!(heap.realloc(outside.wrapping_add(4096), 1), Err(BadFree::Foreign));
        assert_eq!(heap.free(inside.wrapping_add(4)), Err(BadFree::NoStart));
        assert_eq!(heap.realloc(inside.wrapping_add(4), 1), Err(BadFree::NoStart));
        assert_eq!((heap.free(inside), heap.free(outside)), (Ok(()), Ok(())));
        assert_eq!(heap.free(inside), Err(BadFree::FreedBefore));
    }
}

#[test]
fn nobody_gets_memory_while_the_process_is_copied() {
    let heap = heap_of("12;-");
    let (asks, has) = (AtomicBool::new(false), AtomicBool::new(false));
    heap.before_fork();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            asks.store(true, Ordering::SeqCst);
            let at = heap.malloc(1, 100);
            has.store(true, Ordering::SeqCst);
            assert!(!at.is_null());
        });
        while !asks.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(50));
        assert!(!has.load(Ordering::SeqCst), "it did not wait");
        heap.after_fork(false);
    });
    // As in the child: the lock is new, whoever had it.
    heap.before_fork();
    heap.after_fork(true);
    assert!(!heap.malloc(1, 100).is_null());
    assert_eq!(heap.stats().allocations, 2);
}

#[derive(Clone, Debug)]
enum Step {
    Malloc(u32, usize),
    Realloc(usize, usize),
    Free(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = || prop_oneof![4 => 0usize..300, 3 => 0usize..17_000, 1 => 16_000usize..17_000, 1 => 0usize..200_000];
    prop_oneof![
        4 => (0u32..15, bytes()).prop_map(|(log2, bytes)| Step::Malloc(log2, bytes)),
        2 => (any::<usize>(), bytes()).prop_map(|(which, bytes)| Step::Realloc(which, bytes)),
        3 => any::<usize>().prop_map(Step::Free),
    ]
}

/// Four pages in a row, again and again.
static FOURS: GrowingHeap = GrowingHeap::new();

/// An allocation as its owner knows it.
struct Owned {
    bytes: usize,
    fill: u8,
    is_outside: bool,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// What fits lies in four pages, each byte has one owner, and none is lost.
    #[test]
    fn it_does_as_a_list_of_what_was_given_out(steps in proptest::collection::vec(step(), 1..120)) {
        let heap = &FOURS;
        heap.ready(|| Some(b"12;-;1,2,4,8,10,20,40/8-11=*"), |why| panic!("{why}"));
        let at_first = heap.stats();
        let mut owned = BTreeMap::<usize, Owned>::new();
        for (number, step) in steps.iter().enumerate() {
            let nth = |which: usize| owned.keys().nth(which % owned.len().max(1)).copied();
            let before = heap.outside();
            let (at, bytes, alignment, had) = match *step {
                Step::Malloc(log2, bytes) => (heap.malloc(1 << log2, bytes), bytes, 1 << log2, None),
                Step::Realloc(which, bytes) => {
                    let Some(old) = nth(which) else { continue };
                    let had = owned.remove(&old).expect("it is there");
                    // SAFETY: an allocation in use.
                    let new = unsafe { heap.realloc(old as *mut u8, bytes) }.expect("an allocation");
                    (new, bytes, 1, Some((old, had)))
                }
                Step::Free(which) => {
                    let Some(old) = nth(which) else { continue };
                    let Owned { bytes, fill, .. } = owned.remove(&old).expect("it is there");
                    // SAFETY: an allocation in use of that size, which is given back once.
                    unsafe {
                        let all = std::slice::from_raw_parts(old as *const u8, bytes);
                        prop_assert!(all.iter().all(|byte| *byte == fill), "written by somebody else");
                        prop_assert_eq!(heap.free(old as *mut u8), Ok(()));
                    }
                    continue;
                }
            };
            let start = at as usize;
            prop_assert!(start != 0 && start.is_multiple_of(alignment.max(16)));
            let stayed = had.as_ref().filter(|(old, _)| *old == start).map(|(_, had)| had.is_outside);
            // What a run of four pages has room for, beside its own 16 bytes: a header, and space to move forward.
            let room = if alignment > 16 { alignment + 32 } else { 0 };
            let need = (bytes + 8).next_multiple_of(16).max(32) + room;
            let is_outside = stayed.unwrap_or(need > 4 * 4096 - 16);
            let went_outside = u64::from(is_outside && stayed.is_none());
            prop_assert_eq!(heap.outside().allocations - before.allocations, went_outside);
            prop_assert_eq!(heap.outside().bytes - before.bytes, went_outside * bytes as u64);
            // SAFETY: an allocation in use.
            let usable = unsafe { heap.usable(at) }.expect("an allocation");
            let (first, last) = (start >> 12 & 127, (start + usable.max(1) - 1) >> 12 & 127);
            prop_assert!(usable >= bytes && (is_outside || (8 <= first && first <= last && last < 12)));
            prop_assert!(owned.range(..start).next_back().is_none_or(|(before, had)| before + had.bytes <= start));
            prop_assert!(owned.range(start..).next().is_none_or(|(behind, _)| start + usable <= *behind));
            // SAFETY: as many bytes, of this test's own.
            let all = unsafe { std::slice::from_raw_parts_mut(at, usable) };
            if let Some((_, had)) = had {
                prop_assert!(all[..had.bytes.min(bytes)].iter().all(|byte| *byte == had.fill), "it was not copied");
            }
            let fill = number as u8;
            all[..bytes].fill(fill);
            owned.insert(start, Owned { bytes, fill, is_outside });
            let inside = owned.values().filter(|owned| !owned.is_outside).count() as u64;
            let now = heap.stats();
            prop_assert_eq!((now.allocations - at_first.allocations, now.refused), (inside, 0));
        }
        for (at, _) in owned {
            // SAFETY: an allocation in use, which is given back once.
            prop_assert_eq!(unsafe { heap.free(at as *mut u8) }, Ok(()));
        }
        let now = heap.stats();
        prop_assert_eq!((now.allocations, now.used_bytes), (at_first.allocations, at_first.used_bytes));
    }
}
