//! Layouts written by hand, and random ones whose partners are known.

use lookaside_trace::{Block, Event, FileId, Granularity, Kind, MapSource, Region};
use proptest::prelude::*;

use super::layout::{RecordedLayout, RegionLayout, Role, Runner};
use super::regions::{map_page, name, Confidence, MatchedPage, Reason, RegionMatching, Unmapped};

const PAGE: u64 = 4096;

/// A plain run of a program with two libraries.
const NATIVE: &str = "\
555555554000-555555555000 r--p 00000000 fe:00 10 /home/u/prog
555555555000-555555557000 r-xp 00001000 fe:00 10 /home/u/prog
555555557000-555555559000 rw-p 00003000 fe:00 10 /home/u/prog
555555559000-55555555c000 rw-p 00000000 00:00 0 
55555555c000-55555557d000 rw-p 00000000 00:00 0 [heap]
7ffff7c00000-7ffff7c05000 r-xp 00000000 fe:00 12 /lib/libm.so.6
7ffff7c05000-7ffff7c06000 rw-p 00005000 fe:00 12 /lib/libm.so.6
7ffff7d00000-7ffff7d09000 r-xp 00000000 fe:00 11 /lib/libc.so.6
7ffff7d09000-7ffff7d0b000 rw-p 00009000 fe:00 11 /lib/libc.so.6
7ffff7d0b000-7ffff7d0e000 rw-p 00000000 00:00 0 
7ffff7e00000-7ffff7e10000 rw-p 00000000 00:00 0 
7ffff7e20000-7ffff7e30000 rw-p 00000000 00:00 0 
7ffff7e40000-7ffff7e47000 rw-p 00000000 00:00 0 
7ffff7fc2000-7ffff7fc6000 r--p 00000000 00:00 0 [vvar]
7ffff7fc8000-7ffff7fca000 r-xp 00000000 00:00 0 [vdso]
7ffff7fca000-7ffff7ff1000 r-xp 00001000 fe:00 13 /lib/ld-linux-x86-64.so.2
7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0 [stack]
";

/// The same under Valgrind: everything elsewhere, its own in between, equal regions in the other order, no names for
/// heap and stack.
const VALGRIND: &str = "\
00108000-00109000 r--p 00000000 fe:00 10 /home/u/prog
00109000-0010b000 r-xp 00001000 fe:00 10 /home/u/prog
0010b000-0010d000 rw-p 00003000 fe:00 10 /home/u/prog
0010d000-00110000 rw-p 00000000 00:00 0 
04000000-04027000 r-xp 00001000 fe:00 13 /lib/ld-linux-x86-64.so.2
04035000-04056000 rwxp 00000000 00:00 0 
04838000-04839000 r-xp 00001000 fe:00 90 /usr/libexec/valgrind/vgpreload_core-amd64-linux.so
0483b000-0483c000 rw-p 00003000 fe:00 90 /usr/libexec/valgrind/vgpreload_core-amd64-linux.so
0483c000-0484c000 rw-p 00000000 00:00 0 
0484d000-0485d000 rw-p 00000000 00:00 0 
04860000-04869000 r-xp 00000000 fe:00 11 /lib/libc.so.6
04869000-0486b000 rw-p 00009000 fe:00 11 /lib/libc.so.6
0486b000-0486e000 rw-p 00000000 00:00 0 
04870000-04877000 rw-p 00000000 00:00 0 
04900000-04905000 r-xp 00000000 fe:00 12 /lib/libm.so.6
04905000-04906000 rw-p 00005000 fe:00 12 /lib/libm.so.6
58000000-58198000 r-xp 00001000 fe:00 91 /usr/libexec/valgrind/lackey-amd64-linux
5822a000-5822f000 rw-p 0022a000 fe:00 91 /usr/libexec/valgrind/lackey-amd64-linux
5822f000-58c22000 rw-p 00000000 00:00 0 
1002001000-100278c000 rwxp 00000000 00:00 0 
1002890000-1002891000 rw-s 00000000 fe:00 92 /tmp/vgdb-pipe-shared-mem-vgdb-1-by-u-on-h
1ffeffe000-1fff001000 rw-p 00000000 00:00 0 
7ff5b6681000-7ff5b6685000 r--p 00000000 00:00 0 [vvar]
7ffc4caf7000-7ffc4cb18000 rw-p 00000000 00:00 0 [stack]
";

fn native() -> RegionLayout {
    RegionLayout::from_listing(NATIVE, Runner::Native, Some(0x7fff_ffff_e2b0))
}

fn valgrind() -> RegionLayout {
    RegionLayout::from_listing(VALGRIND, Runner::Valgrind, Some(0x1f_ff00_0d50))
}

fn mapped(profiled: &RegionLayout, native: &RegionLayout, address: u64) -> MatchedPage {
    map_page(profiled, native, address).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn regions_are_found_whatever_the_order_of_libraries_and_between_valgrinds_own() {
    for (address, there, reasons) in [
        (0x10_a123, 0x5555_5555_6123, &[Reason::SameFile][..]),
        (0x10_c000, 0x5555_5555_8000, &[Reason::SameFile]),
        (0x10_f008, 0x5555_5555_b008, &[Reason::BssOffset]),
        (0x486_c000, 0x7fff_f7d0_c000, &[Reason::BssOffset]),
        (0x486_a000, 0x7fff_f7d0_a000, &[Reason::SameFile]),
        (0x490_5000, 0x7fff_f7c0_5000, &[Reason::SameFile]),
        (0x403_7010, 0x5555_5555_e010, &[Reason::HeapOffset]),
        (0x487_1000, 0x7fff_f7e4_1000, &[Reason::SizeAlone]),
        // The kernel maps downwards, Valgrind upwards.
        (0x483_d000, 0x7fff_f7e2_1000, &[Reason::OrderAmongEquals { count: 2 }]),
        (0x484_e000, 0x7fff_f7e0_1000, &[Reason::OrderAmongEquals { count: 2 }]),
    ] {
        let found = mapped(&valgrind(), &native(), address);
        assert_eq!((found.address, &found.reasons[..]), (there, reasons), "{address:#x}");
        assert_eq!(found.region.start + found.offset, there);
        assert_eq!(found.confidence() == Confidence::Exact, reasons[0].confidence() == Confidence::Exact);
    }
}

#[test]
fn the_profilers_own_is_refused_by_name() {
    for address in [0x483_8000, 0x5800_0000, 0x5823_0000, 0x10_0200_1000, 0x10_0289_0000, 0x7ffc_4cb0_0000] {
        let error = map_page(&valgrind(), &native(), address).unwrap_err();
        assert!(matches!(error, Unmapped::Profilers { .. }), "{address:#x}: {error}");
    }
    let error = map_page(&valgrind(), &native(), 0x483_8000).unwrap_err().to_string();
    assert_eq!(error, "0x4838000: the profiler's own memory: vgpreload_core-amd64-linux.so r-x +0x1000");
    assert_eq!(map_page(&valgrind(), &native(), 0x3000_0000), Err(Unmapped::NotThere { address: 0x3000_0000 }));
}

#[test]
fn the_stack_is_measured_from_the_first_stack_pointer() {
    // 0x150 below it; and what the environment moved.
    let found = mapped(&valgrind(), &native(), 0x1f_ff00_0c00);
    let shift = (0x7fff_ffff_e2b0u64 - 0x1f_ff00_0d50) % PAGE;
    assert_eq!(found.address, 0x7fff_ffff_e160);
    assert_eq!(found.reasons, [Reason::StackDepth, Reason::StackShifted { bytes: shift }]);
    let longer = RegionLayout { entry_stack: Some(0x7fff_ffff_b000), ..native() };
    assert_eq!(mapped(&valgrind(), &longer, 0x1f_ff00_0c00).address, 0x7fff_ffff_aeb0);
    // The environment itself.
    let strings = mapped(&valgrind(), &native(), 0x1f_ff00_0ff8);
    assert_eq!((strings.address, strings.confidence()), (0x7fff_ffff_eff8, Confidence::Guess));
    // From the pointer itself on they are.
    let at_pointer = mapped(&valgrind(), &native(), 0x1f_ff00_0d50);
    assert_eq!((at_pointer.address, &at_pointer.reasons[..]), (0x7fff_ffff_ed50, &[Reason::StackStrings][..]));
    assert_eq!(mapped(&valgrind(), &native(), 0x1f_ff00_0d48).address, 0x7fff_ffff_e2a8);
    // Unknown pointers.
    let unknown = RegionLayout { entry_stack: None, ..native() };
    let found = mapped(&valgrind(), &unknown, 0x1f_ff00_0c00);
    assert_eq!((found.address, &found.reasons[..]), (0x7fff_ffff_ec00, &[Reason::StackEndOnly][..]));
}

#[test]
fn a_moved_vdso_and_a_renamed_file_are_themselves() {
    let moved = NATIVE.replace("7ffff7fc8000-7ffff7fca000", "7ffff7fb8000-7ffff7fba000");
    let moved = RegionLayout::from_listing(&moved, Runner::Native, None);
    let found = mapped(&native(), &moved, 0x7fff_f7fc_9000);
    assert_eq!((found.address, found.confidence()), (0x7fff_f7fb_9000, Confidence::Exact));

    let renamed = RegionLayout::from_listing(&NATIVE.replace("libm.so.6", "libm-2.so"), Runner::Native, None);
    let found = mapped(&valgrind(), &renamed, 0x490_1000);
    assert_eq!((found.address, &found.reasons[..]), (0x7fff_f7c0_1000, &[Reason::SameInode][..]));
    // Another file by that name is told; one that is gone is still named.
    let other = RegionLayout::from_listing(&NATIVE.replace("fe:00 12", "fe:00 99"), Runner::Native, None);
    assert_eq!(mapped(&valgrind(), &other, 0x490_1000).reasons, [Reason::OtherInode]);
    let deleted = RegionLayout::from_listing(&NATIVE.replace("libm.so.6", "libm.so.6 (deleted)"), Runner::Native, None);
    assert_eq!(mapped(&valgrind(), &deleted, 0x490_1000).reasons, [Reason::SameFile]);
}

#[test]
fn a_part_of_a_file_that_is_mapped_twice_is_told_by_age() {
    let line = |start: u64| format!("{start:x}-{:x} r--p 00002000 fe:00 20 /home/u/data\n", start + 4 * PAGE);
    let listed = |text: String, runner| RegionLayout::from_listing(&text, runner, None);
    let profiled = listed(line(0x500_0000) + &line(0x600_0000), Runner::Valgrind);
    let native = listed(line(0x7fff_f000_0000) + &line(0x7fff_f100_0000), Runner::Native);
    for (address, there) in [(0x500_1008, 0x7fff_f100_1008), (0x600_1008, 0x7fff_f000_1008)] {
        let found = mapped(&profiled, &native, address);
        let reasons = [Reason::SameFile, Reason::OrderAmongEquals { count: 2 }];
        assert_eq!((found.address, &found.reasons[..]), (there, &reasons[..]));
    }
    let once = listed(line(0x7fff_f000_0000), Runner::Native);
    let error = map_page(&profiled, &once, 0x500_1008).unwrap_err().to_string();
    assert!(error.ends_with("the native run maps that part of the file more or fewer times"), "{error}");
}

#[test]
fn what_either_run_unmapped_is_said_to_be_gone() {
    let gone = |mut layout: RegionLayout| {
        layout.areas.iter_mut().filter(|area| area.role == Role::Heap).for_each(|heap| heap.region.gone = true);
        layout
    };
    for (profiled, native) in [(gone(valgrind()), native()), (valgrind(), gone(native()))] {
        assert_eq!(mapped(&profiled, &native, 0x403_7010).reasons, [Reason::HeapOffset, Reason::Gone]);
    }
}

#[test]
fn what_has_no_partner_is_refused_with_its_region() {
    let without = |part: &str| {
        let text: String = NATIVE.lines().filter(|line| !line.contains(part)).map(|line| format!("{line}\n")).collect();
        RegionLayout::from_listing(&text, Runner::Native, None)
    };
    let error = map_page(&valgrind(), &without("libm"), 0x490_1000).unwrap_err().to_string();
    assert!(error.contains("no partner of libm.so.6 r-x +0x0"), "{error}");
    assert!(map_page(&valgrind(), &without("[heap]"), 0x403_7000).unwrap_err().to_string().contains("heap rwx"));
    // Another permission is another region; one equal too few leaves all of them unknown.
    let other = NATIVE.replace("7ffff7c05000-7ffff7c06000 rw-p", "7ffff7c05000-7ffff7c06000 r--p");
    let other = RegionLayout::from_listing(&other, Runner::Native, None);
    assert!(map_page(&valgrind(), &other, 0x490_5000).is_err());
    let fewer = without("7ffff7e00000");
    assert!(map_page(&valgrind(), &fewer, 0x483_d000).is_err() && map_page(&valgrind(), &fewer, 0x484_e000).is_err());
}

#[test]
fn regions_that_the_kernel_lists_as_one_are_told_apart() {
    // 16 pages, 7 pages, mapped one after the other, each below the one before.
    let merged = NATIVE
        .replace("7ffff7e20000-7ffff7e30000 rw-p 00000000 00:00 0 \n", "")
        .replace("7ffff7e40000-7ffff7e47000", "7ffff7e30000-7ffff7e47000");
    let merged = RegionLayout::from_listing(&merged, Runner::Native, None);
    // By age: 16 pages at 483c000, 16 at 484d000, 7 at 4870000. The merged one is the last two; the other is the first.
    let found = mapped(&valgrind(), &merged, 0x484_e000);
    assert_eq!((found.address, &found.reasons[..]), (0x7fff_f7e3_8000, &[Reason::Merged][..]));
    assert_eq!(mapped(&valgrind(), &merged, 0x487_0000).address, 0x7fff_f7e3_0000);
    // And back.
    let back = mapped(&merged, &valgrind(), 0x7fff_f7e3_8000);
    assert_eq!((back.address, &back.reasons[..]), (0x484_e000, &[Reason::Merged][..]));

    // Heap and .bss as one region, under the heap's name or none.
    let one = NATIVE
        .replace("555555559000-55555555c000 rw-p 00000000 00:00 0 \n", "")
        .replace("55555555c000-55555557d000", "555555559000-55555557d000");
    for text in [one.clone(), one.replace(" [heap]", "")] {
        let one = RegionLayout::from_listing(&text, Runner::Native, None);
        assert_eq!(mapped(&valgrind(), &one, 0x10_f008).address, 0x5555_5555_b008);
        let heap = mapped(&valgrind(), &one, 0x403_7010);
        assert_eq!((heap.address, &heap.reasons[..]), (0x5555_5555_e010, &[Reason::HeapOffset][..]));
        assert_eq!(mapped(&one, &valgrind(), 0x5555_5555_e010).address, 0x403_7010);
    }
}

#[test]
fn heap_past_the_brk_cap_is_looked_for_behind_as_much_heap() {
    let capped = VALGRIND.replace("04035000-04056000", "04035000-04833000").replace("0490", "0690").replace(
        "58000000-",
        "04a00000-04b00000 rwxp 00000000 00:00 0 \n04b00000-04b21000 rwxp 00000000 00:00 0 \n58000000-",
    );
    let profiled = RegionLayout::from_listing(
        &capped.replace("rwxp", "rw-p").replace("04035000-04833000 rw-p", "04035000-04833000 rwxp"),
        Runner::Valgrind,
        None,
    );
    let heap_end = 0x5555_5555_c000u64 + (12 << 20);
    let native = NATIVE.replace("55555555c000-55555557d000", &format!("55555555c000-{heap_end:x}"));
    let native = RegionLayout::from_listing(&native, Runner::Native, None);
    let bytes = 0x483_3000 - 0x403_5000;
    let found = mapped(&profiled, &native, 0x4a0_1000);
    assert_eq!(
        (found.address, &found.reasons[..]),
        (0x5555_5555_c000 + bytes + 0x1000, &[Reason::HeapAfterBrkCap][..])
    );
    assert_eq!(mapped(&profiled, &native, 0x4b0_0000).address, 0x5555_5555_c000 + bytes + (1 << 20));
    assert!(matches!(
        mapped(&profiled, &native, 0x403_5000).reasons[..],
        [Reason::HeapOffset, Reason::RegionGrew { .. }]
    ));
    // No cap met: no guess.
    let short =
        RegionLayout::from_listing(&capped.replace("04035000-04833000", "04035000-04133000"), Runner::Valgrind, None);
    assert!(map_page(&short, &native, 0x4a0_1000).is_err());
}

#[test]
fn interpreters_and_static_programs_are_told() {
    let python = |text: &str| text.replace("/home/u/prog", "/usr/bin/python3.12");
    let profiled = RegionLayout::from_listing(&python(VALGRIND), Runner::Valgrind, None);
    let native = RegionLayout::from_listing(&python(NATIVE), Runner::Native, None);
    let found = mapped(&profiled, &native, 0x403_7010);
    assert_eq!((found.confidence(), found.reasons.last()), (Confidence::Guess, Some(&Reason::InterpretersHeap)));
    assert_eq!(mapped(&profiled, &native, 0x10_c000).confidence(), Confidence::Exact);

    let alone = |text: &str| {
        text.lines().filter(|line| !line.contains("ld-linux")).map(|line| format!("{line}\n")).collect::<String>()
    };
    let profiled = RegionLayout::from_listing(&alone(VALGRIND), Runner::Valgrind, None);
    let native = RegionLayout::from_listing(&alone(NATIVE), Runner::Native, None);
    assert_eq!(mapped(&profiled, &native, 0x403_7010).reasons, [Reason::HeapOffset, Reason::HeapWithoutVdso]);
}

#[test]
fn arenas_are_found_though_they_grew() {
    let arena = |start: u64, used: u64| {
        let (border, end) = (start + used, start + (64 << 20));
        format!("{start:x}-{border:x} rw-p 00000000 00:00 0 \n{border:x}-{end:x} ---p 00000000 00:00 0 \n")
    };
    let profiled =
        RegionLayout::from_listing(&(VALGRIND.to_owned() + &arena(0x800_0000, 0x21000)), Runner::Valgrind, None);
    let native =
        RegionLayout::from_listing(&(NATIVE.to_owned() + &arena(0x7fff_f000_0000, 0x42000)), Runner::Native, None);
    let found = mapped(&profiled, &native, 0x800_1000);
    let grew = Reason::RegionGrew { from_bytes: 0x21000, to_bytes: 0x42000 };
    assert_eq!((found.address, found.reasons.contains(&grew)), (0x7fff_f000_1000, true));
}

#[test]
fn a_recording_gives_its_layout_and_its_first_stack_pointer() {
    let map = |addr, len, prot, source| Event::Map { addr, len, prot, source, site: 0 };
    let file = |offset| MapSource::File { path: "/p".into(), offset };
    let mut block = Block { process: 7, thread: 7, ..Block::default() };
    block.push_event(Event::Exec { path: "/p".into() });
    block.push_event(map(0x40_0000, 0x2000, 5, file(0)));
    block.push_event(map(0x40_2000, 0x1000, 3, file(0x2000)));
    block.push_event(map(0x40_3000, 0x2000, 3, MapSource::Anonymous));
    block.push_event(map(0x7000_0000, 0x10000, 3, MapSource::Stack));
    for (kind, addr) in
        [(Kind::Fetch, 0x40_0100), (Kind::Load, 0x40_2000), (Kind::Store, 0x7000_ff48), (Kind::Store, 0x7000_0000)]
    {
        block.push(kind, addr);
    }
    block.push_event(map(0x6000_0000, 0x8000, 3, MapSource::Stack));
    block.push_event(Event::Brk { start: 0x50_0000, end: 0x50_0000 });
    block.push_event(Event::Brk { start: 0x50_0000, end: 0x52_1000 });
    let mut recorded = RecordedLayout::new(Runner::Valgrind, Granularity::Page);
    assert_eq!(recorded.process(), None);
    recorded.observe(&block);
    let mut others = block.clone();
    others.process = 8;
    others.events.push((4, Event::Exec { path: "/other".into() }));
    recorded.observe(&others);
    assert_eq!(recorded.process(), Some(7));
    let layout = recorded.layout();
    assert_eq!(layout.entry_stack, Some(0x7000_ff50));
    let role = |addr| layout.find(addr).map(|area| area.role.clone());
    assert_eq!(role(0x40_4000), Some(Role::Bss { path: "/p".into() }));
    assert_eq!((role(0x7000_0000), role(0x6000_0000)), (Some(Role::Stack), Some(Role::Anonymous)));
    assert_eq!((role(0x50_0000), role(0x52_1000)), (Some(Role::Heap), None));
    assert_eq!(layout.program(), Some("/p"));
    // Lines have no low bits to tell it by.
    let mut lines = RecordedLayout::new(Runner::Valgrind, Granularity::Line);
    lines.observe(&block);
    assert_eq!(lines.layout().entry_stack, None);
}

/// One mapping of a random program: which file (`None` = memory), permission, pages, and the first page in its file.
type Piece = (Option<u8>, u8, u64, u64);

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let piece = (prop::option::weighted(0.7, 0u8..4), prop::sample::select(vec![1u8, 3, 5, 7]), 1u64..6, 0u64..8);
    prop::collection::vec(piece, 1..14)
}

/// The pieces from `base` on, in the order of `keys`, with `gaps` pages between; `where_is[piece]` = its start.
fn place(pieces: &[Piece], keys: &[u16], gaps: &[u64], base: u64, runner: Runner) -> (RegionLayout, Vec<u64>) {
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by_key(|&i| keys[i]);
    let (mut at, mut regions, mut starts) = (base, vec![], vec![0; pieces.len()]);
    for i in order {
        let (file, prot, pages, first) = pieces[i];
        let source = file.map_or(MapSource::Anonymous, |file| MapSource::File {
            path: format!("/lib/{file}"),
            offset: first * PAGE,
        });
        let id = file.map(|file| FileId { device: (1, 2), inode: u64::from(file) + 1 });
        let end = at + pages * PAGE;
        regions.push(Region { file: id, made: i as u64 + 1, ..Region::new(at, end, prot, source) });
        starts[i] = at;
        at = end + gaps[i] * PAGE;
    }
    (RegionLayout::new(regions, runner, None), starts)
}

proptest! {
    /// Against pieces that are known by their number: who is there and back the same, and nobody is taken for another.
    #[test]
    fn pages_come_to_their_own_piece_and_back(
        pieces in pieces(),
        keys in prop::collection::vec((any::<u16>(), any::<u16>()), 14),
        // No piece lies at another, so that a file's end makes no .bss.
        gaps in prop::collection::vec((1u64..4, 1u64..4), 14),
        bases in (1u64..1000, 1u64..1000),
    ) {
        let (one, other): (Vec<u16>, Vec<u16>) = keys.into_iter().unzip();
        let (gap, other_gap): (Vec<u64>, Vec<u64>) = gaps.into_iter().unzip();
        let (profiled, from) = place(&pieces, &one, &gap, bases.0 * PAGE, Runner::Valgrind);
        let (native, to) = place(&pieces, &other, &other_gap, bases.1 * PAGE, Runner::Native);
        let (there, back) = (RegionMatching::new(&profiled, &native), RegionMatching::new(&native, &profiled));
        for (i, piece) in pieces.iter().enumerate() {
            for page in 0..piece.2 {
                let address = from[i] + page * PAGE + 8;
                let found = there.map_page(address);
                prop_assert!(found.is_ok(), "{:?}", found);
                let found = found.unwrap();
                // Both runs made the same regions in the same order.
                prop_assert_eq!(found.address, to[i] + page * PAGE + 8, "{:?}", found.reasons);
                prop_assert_eq!(back.map_page(found.address).map(|mapped| mapped.address), Ok(address));
                let unique = piece.0.is_some()
                    && pieces.iter().filter(|other| other.0 == piece.0 && other.1 == piece.1).count() == 1;
                prop_assert!(!unique || found.confidence() == Confidence::Exact);
            }
        }
    }

    /// Two programs that have nothing to do with each other: no page changes its file or its permission, and what is
    /// exact is exact in both directions.
    #[test]
    fn no_page_is_mapped_into_another_kind_of_region(
        (one, other) in (pieces(), pieces()),
        keys in prop::collection::vec(any::<u16>(), 14),
        gaps in prop::collection::vec(0u64..3, 14),
    ) {
        let (profiled, _) = place(&one, &keys, &gaps, PAGE, Runner::Valgrind);
        let (native, _) = place(&other, &keys, &gaps, 777 * PAGE, Runner::Native);
        let (there, back) = (RegionMatching::new(&profiled, &native), RegionMatching::new(&native, &profiled));
        for area in &profiled.areas {
            for address in (area.region.start..area.region.end).step_by(PAGE as usize) {
                let Ok(found) = there.map_page(address) else { continue };
                let (here, landed) = (area.region.tail(address), found.region.tail(found.address));
                prop_assert_eq!((&here.source, here.prot), (&landed.source, landed.prot), "{}", name(&found.region));
                prop_assert!(found.region.holds(found.address));
                if found.confidence() == Confidence::Exact {
                    prop_assert_eq!(back.map_page(found.address).map(|mapped| mapped.address), Ok(address));
                }
            }
        }
    }
}
