//! The windows of a program's memory that one huge page could map each: which there are, and what of them is in memory.

use serde::Serialize;

use crate::bake::PAGE_BYTES;

/// Bytes of a window: what one entry of a page directory maps (x86-64, and ARM with 4 KiB pages).
pub const WINDOW_BYTES: u64 = 2 << 20;

/// Small pages of a window.
pub const WINDOW_PAGES: u32 = (WINDOW_BYTES / PAGE_BYTES) as u32;

/// The window that holds an address.
pub const fn window_of(addr: u64) -> u64 {
    addr & !(WINDOW_BYTES - 1)
}

/// Why a mapping gets no huge pages from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Unfit {
    /// Shared with other processes.
    Shared,
    /// Of a file.
    File,
    /// A stack that grows, a device, the kernel's own.
    Special,
    /// Reserved huge pages map it already (hugetlbfs).
    Reserved,
    /// Locked in memory (`mlock`).
    Locked,
    /// The program refused huge pages for it (`MADV_NOHUGEPAGE`).
    NoHugePage,
    /// The program watches its faults (`userfaultfd`).
    Watched,
}

impl Unfit {
    /// In a few words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Shared => "shared memory",
            Self::File => "files",
            Self::Special => "stacks, devices and kernel mappings",
            Self::Reserved => "reserved huge pages (hugetlbfs)",
            Self::Locked => "locked memory",
            Self::NoHugePage => "memory that the program excluded (MADV_NOHUGEPAGE)",
            Self::Watched => "memory under userfaultfd",
        }
    }
}

/// A mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MappedArea {
    /// Its first byte.
    pub start: u64,
    /// The byte after its last.
    pub end: u64,
    /// The file, or what the kernel calls it.
    pub name: String,
    /// Bytes of it in memory.
    pub resident_bytes: u64,
    /// Of those, bytes accessed since the referenced bits were last cleared.
    pub referenced_bytes: u64,
    /// Why none of it can be chosen; private anonymous memory can.
    pub unfit: Option<Unfit>,
}

/// Pages in a row that are in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRange {
    /// First byte; a multiple of a page.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
    /// What they are.
    pub state: PageState,
}

/// What a page is. Pages that were never touched, and those that share the system's page of zeros, are none of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    /// In memory, mapped as a small page.
    Small,
    /// In memory, part of a huge page.
    Huge,
    /// Swapped out.
    Swapped,
}

/// A window that lies whole in one mapping that is fit, with something in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct FitWindow {
    /// Its first byte; a multiple of [`WINDOW_BYTES`].
    pub start: u64,
    /// Its mapping, by its place in the list.
    pub area: usize,
    /// Small pages in memory.
    pub small_pages: u32,
    /// Pages in memory that a huge page maps: none, or all.
    pub huge_pages: u32,
    /// Pages swapped out; a collapse brings them back.
    pub swapped_pages: u32,
}

impl FitWindow {
    /// A huge page maps it.
    pub fn is_huge(&self) -> bool {
        self.huge_pages > 0
    }

    /// Bytes that a huge page here adds to what the program has in memory: of pages that were never touched, and of
    /// those swapped out.
    pub fn bloat_bytes(&self) -> u64 {
        u64::from(WINDOW_PAGES - (self.small_pages + self.huge_pages).min(WINDOW_PAGES)) * PAGE_BYTES
    }
}

/// The windows with something in memory, by address. Mappings and ranges are in order of their addresses and do not
/// overlap.
pub fn windows(areas: &[MappedArea], ranges: &[PageRange]) -> Vec<FitWindow> {
    let mut found: Vec<FitWindow> = Vec::new();
    let mut at = 0;
    for (index, area) in areas.iter().enumerate().filter(|(_, area)| area.unfit.is_none()) {
        let Some(first) = area.start.checked_next_multiple_of(WINDOW_BYTES) else { continue };
        let last = window_of(area.end);
        while ranges.get(at).is_some_and(|range| range.end <= first) {
            at += 1;
        }
        // The last range of this mapping may go on in the next one.
        for range in ranges[at..].iter().take_while(|range| range.start < last) {
            let (mut from, to) = (range.start.max(first), range.end.min(last));
            while from < to {
                let start = window_of(from);
                let until = to.min(start + WINDOW_BYTES);
                if found.last().is_none_or(|window| window.start != start) {
                    found.push(FitWindow { start, area: index, small_pages: 0, huge_pages: 0, swapped_pages: 0 });
                }
                if let Some(window) = found.last_mut() {
                    let pages = ((until - from) / PAGE_BYTES) as u32;
                    match range.state {
                        PageState::Small => window.small_pages += pages,
                        PageState::Huge => window.huge_pages += pages,
                        PageState::Swapped => window.swapped_pages += pages,
                    }
                }
                from = until;
            }
        }
    }
    // What is swapped out whole would only be brought back for a huge page's sake.
    found.retain(|window| window.small_pages + window.huge_pages > 0);
    found
}
