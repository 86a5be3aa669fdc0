//! Rows for huge pages: in all memory, for code, of 1 GiB, and on the host of a virtual machine.

use std::collections::BTreeSet;

use lookaside_engine::{Outcome, PagePolicy, PageRow, ProcessRange, RegionRow, Setup};
use lookaside_machine::{PageSize, Serves, Tlb};
use lookaside_trace::MapSource;

use super::variant::RemedyVariant;
use crate::allocator::{Allocator, ALWAYS};
use crate::visits::HugeWindows;
use crate::RemedyKind;

/// Said of each row for huge pages.
pub(super) const NOT_COUNTED: &str = "zeroing at first touch is not counted";
/// The row for code is there where walks of fetches take this part of the translation cycles.
const FETCHES_MATTER: f64 = 0.01;

/// The huge page that the OS model would use, if the format has one.
pub(super) fn page(base: &Setup) -> Option<PageSize> {
    let sizes = base.machine.page_table.format.page_sizes();
    base.os.huge_page.or_else(|| sizes.into_iter().find(|size| *size >= PageSize::M1))
}

/// The same with huge pages in all memory; `None` where it has them already.
pub(super) fn with_huge_pages(base: &Setup) -> Option<Setup> {
    let mut setup = base.clone();
    setup.os.pages = PagePolicy::Thp;
    (base.os.pages != PagePolicy::Thp).then_some(setup)
}

/// In all memory that is no file's and no stack.
pub(super) fn everywhere(base: &Setup, outcome: &Outcome) -> Option<RemedyVariant> {
    let size = page(base)?;
    let costs = size != PageSize::M2 || costs_something(outcome);
    costs.then(|| in_all_memory(base, outcome, size)).flatten()
}

fn in_all_memory(base: &Setup, outcome: &Outcome, size: PageSize) -> Option<RemedyVariant> {
    let setup = with_huge_pages(base)?;
    let switch = Allocator::of(&outcome.regions).and_then(Allocator::switch);
    Some(RemedyVariant {
        kind: RemedyKind::HugeEverywhere,
        what: format!("huge pages ({size}) everywhere"),
        setup,
        how: switch.map_or(ALWAYS.into(), |switch| format!("{switch}; or {ALWAYS}")),
        caveat: NOT_COUNTED.into(),
        bloat_bytes: bloat(outcome, size),
    })
}

/// Whether translation costs anything in a page that may lie in a huge one of 2 MiB.
fn costs_something(outcome: &Outcome) -> bool {
    let huge = HugeWindows::new(&outcome.regions, &|_| true);
    // Where no mapping is known the model takes memory for anonymous.
    let may_be_huge = |page: &PageRow| page.region.is_none() || huge.holds(page.process, page.addr);
    outcome.pages.iter().any(|page| page.cost.cycles() > 0.0 && may_be_huge(page))
}

/// Bytes that huge pages in all memory add to what is resident; `None` where they are not of 2 MiB.
fn bloat(outcome: &Outcome, size: PageSize) -> Option<u64> {
    let (pages, windows) = HugeWindows::new(&outcome.regions, &|_| true).touched(outcome);
    let added = (windows * PageSize::M2.bytes()).saturating_sub(pages * PageSize::K4.bytes());
    (size == PageSize::M2).then_some(added)
}

/// For the windows of 2 MiB that instructions lie in, where one lies wholly in a mapping of its file.
pub(super) fn code(base: &Setup, outcome: &Outcome) -> Option<RemedyVariant> {
    let fetches = outcome.fetch.cost.walk_cycles;
    if base.os.pages != PagePolicy::Base
        || page(base) != Some(PageSize::M2)
        || fetches < FETCHES_MATTER * outcome.translation_cycles()
    {
        return None;
    }
    let bytes = PageSize::M2.bytes();
    let windows: BTreeSet<(u32, u64)> =
        outcome.instructions_rows.iter().map(|row| (row.process, row.ip & !(bytes - 1))).collect();
    let is_in_a_file = |&(process, start): &(u32, u64)| {
        let mut files = outcome.regions.iter().filter(|row| row.source.is_file() && row.process == process);
        files.any(|row| row.start <= start && start + bytes <= row.end)
    };
    let range = |(process, start)| ProcessRange { process: Some(process), start, end: start + bytes };
    let chosen: Vec<ProcessRange> = windows.into_iter().filter(is_in_a_file).map(range).collect();
    if chosen.is_empty() {
        return None;
    }
    let mut setup = base.clone();
    setup.os.pages = PagePolicy::SelectiveFiles(chosen);
    let switch = Allocator::of(&outcome.regions).and_then(Allocator::code_switch);
    Some(RemedyVariant {
        kind: RemedyKind::HugeCode,
        what: "huge pages (2M) for code".into(),
        setup,
        how: switch.unwrap_or(BY_A_COPY).into(),
        caveat:
            "2M windows of the executable and libraries that lie wholly in one mapping, where the recorder saw them"
                .into(),
        bloat_bytes: None,
    })
}

/// In any kernel with transparent huge pages: where the file's own cache can't have them, the code is copied.
const BY_A_COPY: &str = "lookaside hugepages run --text CMD";

/// Of 1 GiB, where a mapping holds such a page and the TLB an entry for it.
pub(super) fn gigabyte(base: &Setup, outcome: &Outcome) -> Option<RemedyVariant> {
    let size = PageSize::G1;
    let machine = &base.machine;
    let has_entries =
        machine.tlbs.iter().any(|tlb| tlb.serves.contains(&Serves::Load) && tlb.page_sizes.contains(&size));
    let host_has_them = machine.page_table.host.as_ref().is_none_or(|host| host.page_size >= size);
    let is_possible = machine.page_table.format.page_sizes().contains(&size) && has_entries && host_has_them;
    if !is_possible || base.os.pages != PagePolicy::Base {
        return None;
    }
    let is_memory = |row: &&RegionRow| !row.source.is_file() && row.source != MapSource::Stack;
    let held: Vec<&RegionRow> = outcome.regions.iter().filter(is_memory).filter(|row| holds(row, size)).collect();
    if held.iter().all(|row| row.cost.cycles() <= 0.0) {
        return None;
    }
    let in_one = |page: &&PageRow| {
        let start = page.addr & !(size.bytes() - 1);
        held.iter().any(|row| row.process == page.process && row.start <= start && start + size.bytes() <= row.end)
    };
    let places: BTreeSet<(u32, u64)> =
        outcome.pages.iter().filter(in_one).map(|page| (page.process, page.addr >> PageSize::K4.shift())).collect();
    let huge: BTreeSet<(u32, u64)> =
        places.iter().map(|&(process, page)| (process, page >> (size.shift() - PageSize::K4.shift()))).collect();
    let mut setup = base.clone();
    (setup.os.pages, setup.os.huge_page) = (PagePolicy::Thp, Some(size));
    Some(RemedyVariant {
        kind: RemedyKind::HugeGigabyte,
        what: format!("pages of 1 GiB ({}), all else small", huge.len()),
        setup,
        // mmap(2), and the kernel's Documentation/admin-guide/mm/hugetlbpage.rst.
        how: format!(
            "mmap with MAP_HUGETLB | MAP_HUGE_1GB, or hugetlbfs, and hugepagesz=1G hugepages={} on the kernel's command \
             line",
            huge.len()
        ),
        caveat: NOT_COUNTED.into(),
        bloat_bytes: Some(
            (huge.len() as u64 * size.bytes()).saturating_sub(places.len() as u64 * PageSize::K4.bytes()),
        ),
    })
}

/// Whether an aligned page of this size fits in the region.
fn holds(region: &RegionRow, size: PageSize) -> bool {
    let first = region.start.div_ceil(size.bytes()).saturating_mul(size.bytes());
    first.checked_add(size.bytes()).is_some_and(|end| end <= region.end)
}

/// Huge pages here, and on a host that has smaller ones: where it has, no entry of the TLB holds a whole huge page.
pub(super) fn on_the_host(base: &Setup, outcome: &Outcome) -> Option<RemedyVariant> {
    let host = base.machine.page_table.host.as_ref()?;
    let here = in_all_memory(base, outcome, PageSize::M2)?;
    if host.page_size >= PageSize::M2 || !host.format.page_sizes().contains(&PageSize::M2) {
        return None;
    }
    let small = host.page_size;
    let mut setup = here.setup.clone();
    setup.machine.page_table.host.as_mut()?.page_size = PageSize::M2;
    let assumed = entries_hold_huge_pages(&mut setup.machine.tlbs);
    let assumption = if assumed { "; that a TLB entry holds a whole 2M page then is assumed" } else { "" };
    Some(RemedyVariant {
        caveat: format!("{NOT_COUNTED}{assumption}"),
        kind: RemedyKind::HugeOnHost,
        what: "huge pages (2M) here and on the host".into(),
        setup,
        how: format!(
            "the host backs this VM by {small} pages: ask there for transparent or hugetlb pages of 2M; here: {}",
            here.how
        ),
        ..here
    })
}

/// Where no array of a level holds pages of 2 MiB, since none was seen behind a host with small ones, those for small
/// pages do. Whether there was such a level.
fn entries_hold_huge_pages(tlbs: &mut [Tlb]) -> bool {
    let holds = |tlb: &Tlb, size| tlb.serves.contains(&Serves::Load) && tlb.page_sizes.contains(&size);
    let known: Vec<u32> = tlbs.iter().filter(|tlb| holds(tlb, PageSize::M2)).map(|tlb| tlb.level).collect();
    let mut assumed = false;
    for tlb in tlbs.iter_mut().filter(|tlb| holds(tlb, PageSize::K4) && !known.contains(&tlb.level)) {
        tlb.page_sizes.push(PageSize::M2);
        assumed = true;
    }
    assumed
}

#[cfg(test)]
mod tests {
    use lookaside_engine::{Cost, IpRow, Side};
    use lookaside_machine::TableFormat;

    use super::super::tests::{cortex_a9, file, guest, page as page_of, region, skylake, walks};
    use super::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    fn thp() -> Setup {
        let mut setup = skylake();
        setup.os.pages = PagePolicy::Thp;
        setup
    }

    #[test]
    fn the_huge_page_is_the_one_that_is_asked_for_or_the_formats_smallest() {
        let mut asked = skylake();
        asked.os.huge_page = Some(PageSize::G1);
        let sizes = [skylake(), cortex_a9(), asked].map(|setup| page(&setup));
        assert_eq!(sizes, [PageSize::M2, PageSize::M1, PageSize::G1].map(Some));
    }

    #[test]
    fn huge_pages_everywhere_are_worth_a_row_where_memory_that_could_have_them_costs() {
        let regions = vec![
            region(1, 2 * MIB, 6 * MIB, MapSource::Heap),
            region(1, 8 * MIB, 12 * MIB, file("/usr/bin/cc1", 0)),
            region(2, 2 * MIB, 4 * MIB - 4096, MapSource::Anonymous),
        ];
        let row = |base: &Setup, pages: Vec<PageRow>| {
            everywhere(base, &Outcome { pages, regions: regions.clone(), ..Outcome::default() })
        };
        let in_region = |number: u32, page: PageRow| PageRow { region: Some(number), ..page };
        let heap = in_region(0, page_of(1, 2 * MIB, 3.0));
        let found = row(&skylake(), vec![heap.clone()]).expect("a row");
        assert_eq!((found.kind, &*found.what), (RemedyKind::HugeEverywhere, "huge pages (2M) everywhere"));
        assert_eq!((&found.setup, &*found.how, &*found.caveat), (&thp(), ALWAYS, NOT_COUNTED));
        // The one page of its window is there already; and of both windows three pages, one of them seen twice.
        assert_eq!(found.bloat_bytes, Some(2 * MIB - 4096));
        let pages = [0, 0, 4096, 2 * MIB].map(|at| in_region(0, page_of(1, 2 * MIB + at, 1.0))).to_vec();
        assert_eq!(row(&skylake(), pages).expect("a row").bloat_bytes, Some(4 * MIB - 3 * 4096));
        // Hits of the second level cost, too.
        let mut hits = PageRow { cost: Cost::default(), ..heap.clone() };
        assert_eq!(row(&skylake(), vec![hits.clone()]), None);
        hits.cost.tlb_hit_cycles = 1.0;
        assert!(row(&skylake(), vec![hits]).is_some());
        let small = [in_region(1, page_of(1, 8 * MIB, 3.0)), in_region(2, page_of(2, 2 * MIB, 3.0))];
        assert_eq!(row(&skylake(), small.to_vec()), None);
        assert!(row(&skylake(), vec![page_of(1, 8 * MIB, 3.0)]).is_some(), "its mapping is not known");
        assert_eq!(row(&thp(), vec![heap]), None);
        // Which memory pages of other sizes could lie in is not looked at.
        let sections = row(&cortex_a9(), small.to_vec()).expect("a row");
        assert_eq!((&*sections.what, sections.bloat_bytes), ("huge pages (1M) everywhere", None));
    }

    /// What the rows for code have as their ranges, of instructions at these places.
    fn code_ranges(base: &Setup, outcome: &Outcome) -> Option<(Vec<(u64, u64)>, String)> {
        let row = code(base, outcome)?;
        let PagePolicy::SelectiveFiles(ranges) = row.setup.os.pages else { return None };
        assert!(ranges.iter().all(|range| range.process == Some(1)), "{ranges:?}");
        Some((ranges.iter().map(|range| (range.start / MIB, range.end / MIB)).collect(), row.how))
    }

    /// A program whose code takes one of a hundred translation cycles.
    fn running(regions: Vec<RegionRow>, instructions: &[(u32, u64)]) -> Outcome {
        let row = |&(process, ip): &(u32, u64)| IpRow { process, ip, cost: Cost::default() };
        Outcome {
            data: Side { cost: walks(99.0), ..Side::default() },
            fetch: Side { cost: walks(1.0), ..Side::default() },
            regions,
            instructions_rows: instructions.iter().map(row).collect(),
            ..Outcome::default()
        }
    }

    #[test]
    fn code_is_huge_in_windows_that_lie_in_one_mapping_of_a_file() {
        let instructions =
            [(1, MIB), (1, 2 * MIB + 0x1234), (1, 4 * MIB), (1, 6 * MIB), (1, 6 * MIB - 1), (1, 8 * MIB), (2, 2 * MIB)];
        let regions = |offset| {
            vec![
                region(1, 2 * MIB, 7 * MIB, file("/usr/bin/cc1", offset)),
                region(1, 8 * MIB, 10 * MIB, MapSource::Anonymous),
                region(2, 2 * MIB, 3 * MIB, file("/usr/bin/cc1", offset)),
            ]
        };
        let windows = vec![(2, 4), (4, 6)];
        for offset in [0, 0x1000] {
            let outcome = running(regions(offset), &instructions);
            assert_eq!(code_ranges(&skylake(), &outcome), Some((windows.clone(), BY_A_COPY.into())));
        }
        let mut both = regions(0);
        both.push(region(1, 20 * MIB, 24 * MIB, file("/usr/lib/libc.so.6", 0x1000)));
        let outcome = running(both, &[&instructions[..], &[(1, 20 * MIB)]].concat());
        let with_libraries = [&windows[..], &[(20, 22)]].concat();
        assert_eq!(code_ranges(&skylake(), &outcome), Some((with_libraries, BY_A_COPY.into())));
        assert_eq!(code(&skylake(), &running(regions(0), &instructions[5..])), None);
    }

    #[test]
    fn code_has_a_row_where_it_takes_a_hundredth_of_the_cycles_in_small_pages() {
        let fetches = |base: &Setup, cycles: f64| {
            let regions = vec![region(1, 2 * MIB, 4 * MIB, file("/usr/bin/cc1", 0))];
            let mut outcome = running(regions, &[(1, 2 * MIB)]);
            (outcome.data.cost, outcome.fetch.cost) = (walks(100.0 - cycles), walks(cycles));
            code(base, &outcome).is_some()
        };
        assert_eq!([0.75, 1.0, 2.0].map(|cycles| fetches(&skylake(), cycles)), [false, true, true]);
        assert!(!fetches(&thp(), 2.0) && !fetches(&cortex_a9(), 2.0));
    }

    /// Two pages of the first of two windows, one of the second; one behind them, and one of another process.
    fn gigabytes(source: MapSource) -> Outcome {
        let mut held = region(1, GIB, 3 * GIB, source);
        held.cost = walks(5.0);
        let places = [(1, GIB), (1, GIB), (1, GIB + 0x1_0000), (1, 2 * GIB), (1, 3 * GIB), (2, GIB)];
        let pages = places.map(|(process, addr)| page_of(process, addr, 1.0)).to_vec();
        Outcome { pages, regions: vec![held], ..Outcome::default() }
    }

    #[test]
    fn pages_of_a_gigabyte_are_as_many_as_are_touched() {
        let row = gigabyte(&skylake(), &gigabytes(MapSource::Anonymous)).expect("a row");
        assert_eq!((row.kind, &*row.what), (RemedyKind::HugeGigabyte, "pages of 1 GiB (2), all else small"));
        assert!(row.how.ends_with(" hugepages=2 on the kernel's command line"), "{}", row.how);
        assert_eq!(row.bloat_bytes, Some(2 * GIB - 3 * 4096));
        let mut expected = thp();
        expected.os.huge_page = Some(PageSize::G1);
        assert_eq!(row.setup, expected);
    }

    #[test]
    fn pages_of_a_gigabyte_need_memory_that_costs_and_hardware_that_has_them() {
        let memory = gigabytes(MapSource::Anonymous);
        let has_row = |base: &Setup| gigabyte(base, &memory).is_some();
        assert!(has_row(&guest(PageSize::G1)));
        assert!(!has_row(&guest(PageSize::M2)) && !has_row(&thp()) && !has_row(&cortex_a9()));
        let mut fetches = skylake();
        fetches.machine.tlbs.retain(|tlb| !tlb.page_sizes.contains(&PageSize::G1));
        assert!(!has_row(&fetches));
        // An entry for code is none for memory.
        let code = fetches.machine.tlbs.iter_mut().find(|tlb| tlb.serves == [Serves::Fetch]).expect("an array");
        code.page_sizes.push(PageSize::G1);
        assert!(!has_row(&fetches));
        for source in [MapSource::Stack, file("/var/data", 0)] {
            assert_eq!(gigabyte(&skylake(), &gigabytes(source)), None);
        }
        let with = |change: &dyn Fn(&mut RegionRow)| {
            let mut outcome = memory.clone();
            change(&mut outcome.regions[0]);
            gigabyte(&skylake(), &outcome).is_some()
        };
        assert!(with(&|_| {}));
        assert!(!with(&|region| region.cost = Cost::default()));
        assert!(with(&|region| region.end = 2 * GIB) && !with(&|region| region.end = 2 * GIB - 4096));
        assert!(!with(&|region| (region.start, region.end) = (GIB + 4096, 3 * GIB - 4096)));
    }

    #[test]
    fn the_host_needs_huge_pages_too() {
        let outcome = Outcome { pages: vec![page_of(1, MIB, 2.0)], ..Outcome::default() };
        let row = on_the_host(&guest(PageSize::K4), &outcome).expect("a row");
        assert_eq!((row.kind, &*row.what), (RemedyKind::HugeOnHost, "huge pages (2M) here and on the host"));
        let how = "the host backs this VM by 4K pages: ask there for transparent or hugetlb pages of 2M; here: ";
        assert_eq!((row.how, &*row.caveat), (format!("{how}{ALWAYS}"), NOT_COUNTED));
        let mut huge = guest(PageSize::M2);
        huge.os.pages = PagePolicy::Thp;
        assert_eq!(row.setup, huge);
        let mut with_sections = guest(PageSize::K4);
        with_sections.machine.page_table.host.as_mut().expect("a host").format = TableFormat::Armv7Short;
        for base in [skylake(), guest(PageSize::M2), guest(PageSize::G1), with_sections, huge] {
            assert_eq!(on_the_host(&base, &outcome), None, "{base:?}");
        }
    }

    #[test]
    fn entries_hold_huge_pages_at_the_levels_where_none_was_seen_to() {
        let sizes =
            |tlbs: &[Tlb]| tlbs.iter().map(|tlb| (tlb.name.clone(), tlb.page_sizes.clone())).collect::<Vec<_>>();
        let mut seen = skylake().machine.tlbs;
        assert!(!entries_hold_huge_pages(&mut seen));
        assert_eq!(seen, skylake().machine.tlbs);
        // At the second level only fetches find them.
        let mut tlbs = seen;
        let stlb = tlbs.iter().position(|tlb| tlb.name == "stlb").expect("an array");
        tlbs[stlb].page_sizes = vec![PageSize::K4];
        let mut code = tlbs[stlb].clone();
        (code.name, code.serves, code.page_sizes) = ("code".into(), vec![Serves::Fetch], vec![PageSize::M2]);
        tlbs.push(code);
        let mut expected = sizes(&tlbs);
        expected[stlb].1.push(PageSize::M2);
        assert!(entries_hold_huge_pages(&mut tlbs));
        assert_eq!(sizes(&tlbs), expected);
        let mut guest = guest(PageSize::K4);
        guest.machine.tlbs.retain(|tlb| tlb.name != "l1d-2m");
        let outcome = Outcome { pages: vec![page_of(1, MIB, 2.0)], ..Outcome::default() };
        let row = on_the_host(&guest, &outcome).expect("a row");
        assert!(row.caveat.ends_with("; that a TLB entry holds a whole 2M page then is assumed"), "{}", row.caveat);
        assert_eq!(row.setup.machine.tlbs[0].page_sizes, [PageSize::K4, PageSize::M2]);
    }
}
