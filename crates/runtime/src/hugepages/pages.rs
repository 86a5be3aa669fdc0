//! A process's mappings and pages, as the kernel tells them.

use std::fs::File;
use std::os::fd::AsRawFd;

use procfs::process::{MMPermissions, MMapPath, MemoryMap, Process, VmFlags};
use procfs::ProcError;

use super::error::HugePageError;
use super::windows::{windows, MappedArea, PageRange, PageState, Unfit, Window, WINDOW_BYTES};
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
    pub windows: Vec<Window>,
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
    pub fn window(&self, start: u64) -> Option<&Window> {
        let at = self.windows.binary_search_by_key(&start, |window| window.start).ok()?;
        self.windows.get(at)
    }
}

/// The windows of these mappings of a process.
///
/// # Errors
/// As [`ProcessMemory::of`].
pub(super) fn windows_of(pid: u32, areas: &[MappedArea]) -> Result<Vec<Window>, HugePageError> {
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
    let number = i32::try_from(pid).map_err(|_| HugePageError::Bad(format!("process {pid}: not a process number")))?;
    let maps = Process::new(number).and_then(|process| process.smaps()).map_err(|e| refused(pid, &e))?;
    Ok(maps.iter().map(area).collect())
}

fn refused(pid: u32, error: &ProcError) -> HugePageError {
    HugePageError::Bad(match error {
        ProcError::NotFound(_) => format!("process {pid}: there is none"),
        ProcError::PermissionDenied(_) => format!("process {pid}: {OTHERS}"),
        other => format!("process {pid}: {other}").replace('\n', " "),
    })
}

fn area(map: &MemoryMap) -> MappedArea {
    let bytes = |field: &str| map.extension.map.get(field).copied().unwrap_or(0);
    MappedArea {
        start: map.address.0,
        end: map.address.1,
        name: match &map.pathname {
            MMapPath::Path(path) => path.display().to_string(),
            MMapPath::Heap => "[heap]".into(),
            MMapPath::Stack => "[stack]".into(),
            MMapPath::Anonymous => "[anonymous]".into(),
            MMapPath::Other(name) => format!("[{name}]"),
            other => format!("{other:?}").to_lowercase(),
        },
        resident_bytes: bytes("Rss"),
        referenced_bytes: bytes("Referenced"),
        unfit: unfit(map),
    }
}

fn unfit(map: &MemoryMap) -> Option<Unfit> {
    let flags = map.extension.vm_flags;
    let has = |any: VmFlags| flags.intersects(any);
    // Names that a program gives itself are `anon:NAME` (PR_SET_VMA_ANON_NAME).
    let anonymous = match &map.pathname {
        MMapPath::Anonymous | MMapPath::Heap => true,
        MMapPath::Other(name) => name.starts_with("anon:"),
        _ => false,
    };
    if has(VmFlags::HT) {
        Some(Unfit::Reserved)
    } else if !map.perms.contains(MMPermissions::PRIVATE) {
        Some(Unfit::Shared)
    } else if matches!(map.pathname, MMapPath::Path(_)) {
        Some(Unfit::File)
    } else if !anonymous || has(VmFlags::GD | VmFlags::IO | VmFlags::PF | VmFlags::MM | VmFlags::DE) {
        Some(Unfit::Special)
    } else if has(VmFlags::LO) {
        Some(Unfit::Locked)
    } else if has(VmFlags::NH) {
        Some(Unfit::NoHugePage)
    } else if has(VmFlags::UM | VmFlags::UW) {
        Some(Unfit::Watched)
    } else {
        None
    }
}

fn open(pid: u32) -> Result<File, HugePageError> {
    lookaside_host::Process::of(pid).open("pagemap").map_err(|e| {
        HugePageError::Bad(match () {
            // Nobody has waited for it yet.
            () if e.is_ended() => format!("process {pid}: it has ended"),
            () if e.is_missing() => format!("process {pid}: there is none"),
            () if e.is_forbidden() => format!("process {pid}: {OTHERS}"),
            () => e.to_string(),
        })
    })
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
    let Ok(maps) = i32::try_from(pid).map_err(|_| ()).and_then(|pid| Process::new(pid).map_err(|_| ())) else {
        return false;
    };
    let Some(end) = start.checked_add(WINDOW_BYTES) else { return false };
    maps.maps().is_ok_and(|maps| maps.iter().any(|map| map.address.0 <= start && end <= map.address.1))
}
