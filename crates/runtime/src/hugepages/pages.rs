//! A process's mappings and pages, as the kernel tells them.

use std::fs::File;
use std::os::fd::AsRawFd;

use lookaside_host::{HostError, Process, Vma};

use super::error::HugePageError;
use super::windows::{windows, FitWindow, MappedArea, PageRange, PageState, Unfit, WINDOW_BYTES};
use crate::bake::freestanding::{PmScanArg, CHUNK_BYTES, LET_IN, PAGEMAP_SCAN, PAGE_IS_HUGE, PAGE_IS_PRESENT};
use crate::bake::PAGE_BYTES;

/// Categories of `PAGEMAP_SCAN` (Linux, include/uapi/linux/fs.h): pages that are swapped out.
const PAGE_IS_SWAPPED: u64 = 1 << 4;
/// Pages that share the system's page of zeros: read, never written.
const PAGE_IS_PFNZERO: u64 = 1 << 5;
/// Who may look at another user's process.
const OTHERS: &str = "another user's; needs root, or CAP_SYS_PTRACE and CAP_SYS_NICE";
/// Ranges that a scan gives back at a time.
const RANGES: usize = 512;

/// What a process's memory is like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Its mappings, by address.
    pub areas: Vec<MappedArea>,
    /// Its windows with something in memory, by address.
    pub windows: Vec<FitWindow>,
}

impl ProcessMemory {
    /// Looks at the process. That takes the kernel some 10 ms a GiB in small pages, without keeping the program from
    /// anything for longer than some 20 µs.
    ///
    /// # Errors
    /// There is no such process, it may not be looked at, or the kernel lacks `PAGEMAP_SCAN` (Linux 6.7).
    pub fn of(pid: u32) -> Result<Self, HugePageError> {
        let areas = areas(pid)?;
        let windows = windows_of(pid, &areas)?;
        Ok(Self { areas, windows })
    }

    /// Small pages in windows that could be chosen, in bytes.
    pub fn small_bytes(&self) -> u64 {
        self.windows.iter().map(|window| u64::from(window.small_pages) * PAGE_BYTES).sum()
    }

    /// The window that begins there.
    pub fn window(&self, start: u64) -> Option<&FitWindow> {
        let at = self.windows.binary_search_by_key(&start, |window| window.start).ok()?;
        self.windows.get(at)
    }
}

/// The windows of these mappings of a process.
///
/// # Errors
/// As [`ProcessMemory::of`].
pub(super) fn windows_of(pid: u32, areas: &[MappedArea]) -> Result<Vec<FitWindow>, HugePageError> {
    let pagemap = open(pid)?;
    let mut ranges = Vec::new();
    for area in areas.iter().filter(|area| area.unfit.is_none() && area.end - area.start >= WINDOW_BYTES) {
        scan(pid, &pagemap, area.start, area.end, &mut ranges)?;
    }
    Ok(windows(areas, &ranges))
}

/// A process's mappings, by address, with what is referenced of them.
///
/// # Errors
/// There is no such process, or it may not be looked at.
pub(super) fn areas(pid: u32) -> Result<Vec<MappedArea>, HugePageError> {
    let vmas = Process::of(pid).smaps().map_err(|e| refused(pid, &e))?;
    Ok(vmas.iter().map(area).collect())
}

fn refused(pid: u32, error: &HostError) -> HugePageError {
    HugePageError::Bad(match () {
        // Nobody has waited for it yet.
        () if error.is_ended() => format!("process {pid}: it has ended"),
        () if error.is_missing() => format!("process {pid}: there is none"),
        () if error.is_forbidden() => format!("process {pid}: {OTHERS}"),
        () => format!("process {pid}: {error}"),
    })
}

fn area(vma: &Vma) -> MappedArea {
    MappedArea {
        start: vma.start,
        end: vma.end,
        name: vma.shown_name().into(),
        resident_bytes: vma.resident_bytes,
        referenced_bytes: vma.referenced_bytes,
        unfit: unfit(vma),
    }
}

/// By the kernel's flags (`VmFlags`, Documentation/filesystems/proc.rst).
fn unfit(vma: &Vma) -> Option<Unfit> {
    // Names that a program gives itself are `[anon:NAME]` (PR_SET_VMA_ANON_NAME).
    let is_anonymous = matches!(vma.name.as_str(), "" | "[heap]") || vma.name.starts_with("[anon:");
    if vma.has_flag(&["ht"]) {
        Some(Unfit::Reserved)
    } else if !vma.is_private() {
        Some(Unfit::Shared)
    } else if vma.is_file() {
        Some(Unfit::File)
    } else if !is_anonymous || vma.has_flag(&["gd", "io", "pf", "mm", "de"]) {
        Some(Unfit::Special)
    } else if vma.has_flag(&["lo"]) {
        Some(Unfit::Locked)
    } else if vma.has_flag(&["nh"]) {
        Some(Unfit::NoHugePage)
    } else if vma.has_flag(&["um", "uw"]) {
        Some(Unfit::Watched)
    } else {
        None
    }
}

fn open(pid: u32) -> Result<File, HugePageError> {
    Process::of(pid).open("pagemap").map_err(|e| refused(pid, &e))
}

/// Adds the pages between two addresses that are in memory or swapped out.
fn scan(pid: u32, pagemap: &File, start: u64, end: u64, found: &mut Vec<PageRange>) -> Result<(), HugePageError> {
    let mut room = vec![[0u64; 3]; RANGES];
    let mut from = start;
    while from < end {
        let mut arg = PmScanArg {
            size: size_of::<PmScanArg>() as u64,
            start: from,
            end: end.min(from + CHUNK_BYTES),
            vec: room.as_mut_ptr() as u64,
            vec_len: RANGES as u64,
            // Of the page of zeros none is found: it is not the program's.
            category_inverted: PAGE_IS_PFNZERO,
            category_mask: PAGE_IS_PFNZERO,
            category_anyof_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
            return_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED | PAGE_IS_HUGE,
            ..PmScanArg::default()
        };
        // SAFETY: the structure that the call takes; its vector has room for as many ranges as it says.
        let ranges = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN as _, &mut arg) };
        let Ok(ranges) = usize::try_from(ranges) else {
            let e = std::io::Error::last_os_error();
            return Err(HugePageError::Bad(match e.raw_os_error() {
                Some(libc::ENOTTY | libc::EINVAL) => "needs PAGEMAP_SCAN (Linux 6.7 and later)".into(),
                Some(libc::ESRCH) => format!("process {pid}: it has ended"),
                _ => format!("process {pid}: PAGEMAP_SCAN: {e}"),
            }));
        };
        for [start, end, is] in room.iter().take(ranges) {
            let state = match () {
                () if is & PAGE_IS_SWAPPED != 0 => PageState::Swapped,
                () if is & PAGE_IS_HUGE != 0 => PageState::Huge,
                () => PageState::Small,
            };
            found.push(PageRange { start: *start, end: *end, state });
        }
        // A walk that could not go on would go on for ever here.
        from = if arg.walk_end > from { arg.walk_end } else { arg.end };
        std::thread::sleep(LET_IN);
    }
    Ok(())
}

/// Whether one mapping of the process holds all of the window.
pub(super) fn is_mapped(pid: u32, start: u64) -> bool {
    let Some(end) = start.checked_add(WINDOW_BYTES) else { return false };
    Process::of(pid).maps().is_ok_and(|vmas| vmas.iter().any(|vma| vma.start <= start && end <= vma.end))
}
