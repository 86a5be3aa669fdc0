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

/// For the windows of 2 MiB that instructions lie in, where one lies wholly in a mapping of its file. Files that lie in
/// memory as they do in huge pages of a page cache come first: where there are any, the others' windows stay small.
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
    let file_of = |&(process, start): &(u32, u64)| {
        let files = outcome.regions.iter().filter(|row| row.source.is_file() && row.process == process);
        files.into_iter().find(|row| row.start <= start && start + bytes <= row.end)
    };
    let range = |(process, start)| ProcessRange { process: Some(process), start, end: start + bytes };
    let in_files = windows.into_iter().filter_map(|window| file_of(&window).map(|file| (range(window), fits(file))));
    let (ready, others): (Vec<_>, Vec<_>) = in_files.partition(|(_, fits)| *fits);
    let way = if ready.is_empty() { NOT_BY_A_SETTING } else { TMPFS };
    let chosen = if ready.is_empty() { others } else { ready };
    if chosen.is_empty() {
        return None;
    }
    let mut setup = base.clone();
    setup.os.pages = PagePolicy::SelectiveFiles(chosen.into_iter().map(|(range, _)| range).collect());
    let switch = Allocator::of(&outcome.regions).and_then(Allocator::code_switch);
    Some(RemedyVariant {
        kind: RemedyKind::HugeCode,
        what: "huge pages (2M) for code".into(),
        setup,
        how: switch.unwrap_or(way).into(),
        caveat: "of executable and libraries, 2M windows that lie wholly in one mapping, where the recorder had them"
            .into(),
        bloat_bytes: None,
    })
}

/// Whether a file's bytes lie in memory as in huge pages of its page cache: address and place in the file are the same but
/// for whole huge pages (`thp_vma_suitable_order` in Linux).
fn fits(file: &RegionRow) -> bool {
    match file.source {
        MapSource::File { offset, .. } => file.start.wrapping_sub(offset).is_multiple_of(PageSize::M2.bytes()),
        _ => false,
    }
}

/// The page cache of a tmpfs can have huge pages in any kernel with transparent ones (Linux,
/// Documentation/admin-guide/mm/transhuge.rst, "Hugepages in tmpfs/shmem"). Of cc1 run so, 10 of 12 MiB of code in memory
/// were (Linux 6.18).
const TMPFS: &str = "run a copy of the program in a tmpfs with huge pages: mount -t tmpfs -o huge=always tmpfs FOLDER";

/// Page caches of other file systems have huge pages where the kernel is built so (Linux 5.4; madvise(2), `MADV_COLLAPSE`),
/// and the segments are aligned for it (GNU C Library manual, "ELF Tunables").
const NOT_BY_A_SETTING: &str =
    "not by a setting on every system: GLIBC_TUNABLES=glibc.elf.thp=1 where ld.so --list-tunables has it and the kernel \
     CONFIG_READ_ONLY_THP_FOR_FS; or link with 2M alignment, or move the code to anonymous memory";

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
