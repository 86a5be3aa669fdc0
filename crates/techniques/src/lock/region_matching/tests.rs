//! Small layouts, in pages, whose partners are worked out by hand.

use lookaside_trace::{source_of, MapSource, Region};

use super::{by_age, PAGE_BYTES};
use crate::lock::layout::{RegionLayout, Runner};
use crate::lock::regions::{map_page, Reason};

/// First page, pages, permission, and the name in `/proc/PID/maps`.
type Lines<'a> = [(u64, u64, u8, &'a str)];

fn regions(lines: &Lines) -> Vec<Region> {
    let region = |&(at, pages, prot, name): &(u64, u64, u8, &str)| {
        Region::new(at * PAGE_BYTES, (at + pages) * PAGE_BYTES, prot, source_of(name, 0))
    };
    lines.iter().map(region).collect()
}

fn layout(runner: Runner, lines: &Lines) -> RegionLayout {
    RegionLayout::new(regions(lines), runner, None)
}

fn valgrind(lines: &Lines) -> RegionLayout {
    layout(Runner::Valgrind, lines)
}

fn native(lines: &Lines) -> RegionLayout {
    layout(Runner::Native, lines)
}

/// The regions in the order of the lines, all seen being made.
fn native_made(lines: &Lines) -> RegionLayout {
    let made = (1..).zip(regions(lines)).map(|(made, region)| Region { made, ..region });
    RegionLayout::new(made.collect(), Runner::Native, None)
}

/// The page in the native run, and why.
fn page(profiled: &RegionLayout, native: &RegionLayout, page: u64) -> Option<(u64, Vec<Reason>)> {
    let found = map_page(profiled, native, page * PAGE_BYTES).ok()?;
    Some((found.address / PAGE_BYTES, found.reasons))
}

fn grew(from: u64, to: u64) -> Reason {
    Reason::RegionGrew { from_bytes: from * PAGE_BYTES, to_bytes: to * PAGE_BYTES }
}

#[test]
fn qemu_maps_downwards_where_all_lies_below_4_gib() {
    let pages_by_age = |last: u64| -> Vec<u64> {
        let layout = layout(Runner::Qemu, &[(10, 1, 3, ""), (20, 1, 3, ""), (last, 1, 3, "")]);
        let starts = by_age(&layout).map(|area| area.region.start / PAGE_BYTES);
        starts.collect()
    };
    let end = 1 << 20;
    assert_eq!(pages_by_age(end - 1), [end - 1, 20, 10]);
    assert_eq!(pages_by_age(end), [10, 20, end]);
}

#[test]
fn a_longer_bss_is_no_heap_where_both_runs_show_theirs_or_neither_does() {
    let heap = (20, 5, 3, "[heap]");
    let profiled = [(10, 2, 3, "/p"), (12, 3, 3, ""), heap];
    let longer = [(10, 2, 3, "/p"), (12, 4, 3, ""), heap];
    let expected = Some((13, vec![Reason::BssOffset, grew(3, 4)]));
    assert_eq!(page(&valgrind(&profiled), &native(&longer), 13), expected);
    assert_eq!(page(&valgrind(&profiled[..2]), &native(&longer[..2]), 13), expected);
    // The heap is looked for behind the program alone.
    let library = [(10, 2, 3, "/p"), heap, (100, 1, 3, "/lib"), (101, 3, 3, "")];
    let longer = [(10, 2, 3, "/p"), (100, 1, 3, "/lib"), (101, 4, 3, "")];
    assert_eq!(page(&valgrind(&library), &native(&longer), 102), Some((102, vec![Reason::BssOffset, grew(3, 4)])));
}

#[test]
fn bss_and_heap_listed_as_one_are_told_apart_by_size() {
    let profiled = valgrind(&[(10, 2, 3, "/p"), (12, 3, 3, ""), (15, 8, 3, "[heap]")]);
    let found = |native: &RegionLayout, page: u64| {
        map_page(&profiled, native, page * PAGE_BYTES).map(|found| found.region).map_err(|error| error.to_string())
    };
    for name in ["", "[heap]"] {
        let one = native(&[(30, 2, 3, "/p"), (32, 11, 3, name)]);
        let parts = [(32, 3, 3, MapSource::Anonymous), (35, 8, 3, MapSource::Heap)];
        let [bss, heap] = parts
            .map(|(at, pages, prot, source)| Region::new(at * PAGE_BYTES, (at + pages) * PAGE_BYTES, prot, source));
        assert_eq!((found(&one, 13), found(&one, 16)), (Ok(bss), Ok(heap)), "{name}");
    }
    // As long as the .bss: no heap is left.
    let none = found(&native(&[(30, 2, 3, "/p"), (32, 3, 3, "")]), 16);
    assert_eq!(none, Err("0x10000: no partner of heap rw-: the native run has no heap".into()));
    // No .bss lies behind what is not written, or before a gap: all of it is the heap.
    for native in [native(&[(30, 2, 1, "/p"), (32, 8, 3, "[heap]")]), native(&[(30, 1, 3, "/p"), (32, 8, 3, "[heap]")])]
    {
        assert_eq!(page(&profiled, &native, 16), Some((33, vec![Reason::HeapOffset])));
    }
}

#[test]
fn what_nobody_can_use_has_no_partner() {
    assert_eq!(page(&valgrind(&[(10, 4, 0, "")]), &native(&[(30, 4, 0, "")]), 11), None);
    // Nor does it, or the stack, count among regions of a size.
    let profiled = valgrind(&[(10, 4, 3, ""), (20, 4, 3, "[stack]"), (30, 4, 0, "")]);
    assert_eq!(page(&profiled, &native(&[(50, 4, 3, "")]), 11), Some((51, vec![Reason::SizeAlone])));
}

#[test]
fn what_lies_at_a_file_is_told_by_it() {
    // Of four pages, one before /m; of five, one behind /x, which is not written: no .bss.
    let (p, m, x) = ((1, 1, 5, "/p"), (14, 1, 5, "/m"), (30, 1, 5, "/x"));
    let profiled = valgrind(&[p, (10, 4, 3, ""), m, (20, 4, 3, ""), x, (31, 5, 3, ""), (40, 5, 3, "")]);
    let native = native(&[
        p,
        (110, 4, 3, ""),
        (114, 1, 5, "/m"),
        (120, 4, 3, ""),
        (130, 4, 3, ""),
        (140, 1, 5, "/x"),
        (141, 5, 3, ""),
        (150, 5, 3, ""),
        (160, 5, 3, ""),
    ]);
    let found = [11, 21, 32, 41].map(|at| page(&profiled, &native, at));
    let neighbours = |at| Some((at, vec![Reason::Neighbours]));
    assert_eq!(found, [neighbours(111), None, neighbours(142), None]);
}

#[test]
fn a_listing_merges_what_was_made_one_after_the_other() {
    // Two and three pages are five, the later ones lower; an arena beside them stays for its own partner.
    let profiled = valgrind(&[(10, 2, 3, ""), (20, 3, 3, ""), (40, 6, 3, ""), (46, 9, 0, "")]);
    let lines = [(200, 7, 3, ""), (207, 9, 0, ""), (100, 5, 3, "")];
    let merged = native(&lines);
    let arena =
        |to, from_pages, to_pages| Some((to, vec![Reason::OrderAmongEquals { count: 1 }, grew(from_pages, to_pages)]));
    let part = |to| Some((to, vec![Reason::Merged]));
    assert_eq!([11, 21, 41].map(|at| page(&profiled, &merged, at)), [part(104), part(101), arena(201, 6, 7)]);
    assert_eq!([104, 101, 201].map(|at| page(&merged, &profiled, at)), [part(11), part(21), arena(41, 7, 6)]);
    // What was seen being made is one.
    let made = native_made(&lines);
    assert_eq!([11, 21, 41].map(|at| page(&profiled, &made, at)), [None, None, arena(201, 6, 7)]);
    assert_eq!([104, 101].map(|at| page(&made, &profiled, at)), [None, None]);
    // Two and three, or three and two.
    let either = valgrind(&[(10, 2, 3, ""), (20, 3, 3, ""), (30, 2, 3, "")]);
    assert_eq!([11, 21, 31].map(|at| page(&either, &native(&[(100, 5, 3, "")]), at)), [None, None, None]);
}

#[test]
fn as_many_arenas_in_both_runs_are_each_others_by_age() {
    let here = [(10, 2, 3, ""), (12, 9, 0, ""), (30, 4, 3, ""), (34, 9, 0, "")];
    // The last has no room behind it.
    let there = [(100, 5, 3, ""), (105, 9, 0, ""), (200, 7, 3, ""), (207, 9, 0, ""), (300, 11, 3, "")];
    let profiled = valgrind(&here);
    let found = |native: &RegionLayout| [11, 31].map(|at| page(&profiled, native, at));
    let arena =
        |to, from_pages, to_pages| Some((to, vec![Reason::OrderAmongEquals { count: 2 }, grew(from_pages, to_pages)]));
    assert_eq!(found(&native(&there)), [arena(201, 2, 7), arena(101, 4, 5)]);
    // One fewer, or with other rights.
    assert_eq!(found(&native(&there[..2])), [None, None]);
    let all_rights = there.map(|(at, pages, prot, name)| (at, pages, if prot == 0 { 0 } else { 7 }, name));
    assert_eq!(found(&native(&all_rights)), [None, None]);
}

#[test]
fn only_a_heap_that_met_valgrinds_cap_goes_on_elsewhere() {
    // 8 MiB less two steps of 132 KiB; and a MiB.
    const CAP: u64 = 2048 - 66;
    const MIB: u64 = 256;
    let heap = native(&[(50_000, 4000, 3, "[heap]")]);
    let found = |runner: Runner, heap_pages: u64, mapped: (u64, u64, u8, &str), at: u64| {
        let lines = [(1000, heap_pages, 3, "[heap]"), mapped, (9000 + MIB, 10, 3, ""), (9300, 10, 3, "")];
        page(&layout(runner, &lines), &heap, at)
    };
    let all = (9000, MIB, 3, "");
    let after = |pages| Some((50_000 + CAP + pages, vec![Reason::HeapAfterBrkCap]));
    assert_eq!(found(Runner::Valgrind, CAP, all, 9001), after(1));
    // What is small must touch what came before.
    assert_eq!(found(Runner::Valgrind, CAP, all, 9000 + MIB + 1), after(MIB + 1));
    assert_eq!(found(Runner::Valgrind, CAP, all, 9301), None);
    assert_eq!(found(Runner::Valgrind, CAP, (9001, MIB - 1, 3, ""), 9001), None);
    // No cap met, not Valgrind, other rights.
    assert_eq!(found(Runner::Valgrind, CAP - 1, all, 9001), None);
    assert_eq!(found(Runner::Qemu, CAP, all, 9001), None);
    assert_eq!(found(Runner::Valgrind, CAP, (9000, MIB, 7, ""), 9001), None);
    // The native heap ends between.
    let shorter = native(&[(50_000, CAP + 100, 3, "[heap]")]);
    let profiled = valgrind(&[(1000, CAP, 3, "[heap]"), all]);
    assert_eq!([9099, 9100].map(|at| page(&profiled, &shorter, at)), [after(99), None]);
}
