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

pub(super) fn area(vma: &Vma) -> MappedArea {
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

/// Whether a huge page maps the window that begins there.
///
/// # Errors
/// There is no such process, it may not be looked at, or the kernel lacks `PAGEMAP_SCAN` (Linux 6.7).
pub(super) fn is_huge(pid: u32, start: u64) -> Result<bool, HugePageError> {
    let mut ranges = Vec::new();
    scan(pid, &open(pid)?, start, start.saturating_add(WINDOW_BYTES), &mut ranges)?;
    Ok(ranges.iter().any(|range| range.state == PageState::Huge))
}

/// Whether one mapping of the process holds all of the window.
pub(super) fn is_mapped(pid: u32, start: u64) -> bool {
    let Some(end) = start.checked_add(WINDOW_BYTES) else { return false };
    Process::of(pid).maps().is_ok_and(|vmas| vmas.iter().any(|vma| vma.start <= start && end <= vma.end))
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use lookaside_host::Mapping;
    use rustix::mm::{MapFlags, ProtFlags};

    use super::*;

    fn vma(rights: &str, name: &str, flags: &str) -> Vma {
        let resident_bytes = 3 << 12;
        let referenced_bytes = 2 << 12;
        Vma {
            start: 1 << 21,
            end: 3 << 21,
            rights: rights.into(),
            name: name.into(),
            flags: flags.into(),
            resident_bytes,
            referenced_bytes,
            ..Vma::default()
        }
    }

    /// The kernel's flags as `Documentation/filesystems/proc.rst` has them.
    #[test]
    fn private_anonymous_memory_is_fit_unless_a_flag_says_otherwise() {
        let of = |rights: &str, name: &str, flags: &str| unfit(&vma(rights, name, flags));
        for name in ["", "[heap]", "[anon:arena]"] {
            assert_eq!(of("rw-p", name, "rd wr mr mw me ac hg"), None, "{name}");
        }
        for name in ["[stack]", "[vdso]", "[vvar]", "[anon_shmem:x]"] {
            assert_eq!(of("rw-p", name, "rd wr"), Some(Unfit::Special), "{name}");
        }
        assert_eq!(of("rw-s", "", "rd sh"), Some(Unfit::Shared));
        assert_eq!(of("r--p", "/lib/libc.so", "rd"), Some(Unfit::File));
        for (flag, why) in [
            ("ht", Unfit::Reserved),
            ("gd", Unfit::Special),
            ("io", Unfit::Special),
            ("pf", Unfit::Special),
            ("mm", Unfit::Special),
            ("de", Unfit::Special),
            ("lo", Unfit::Locked),
            ("nh", Unfit::NoHugePage),
            ("um", Unfit::Watched),
            ("uw", Unfit::Watched),
        ] {
            assert_eq!(of("rw-p", "", &format!("rd {flag} wr")), Some(why), "{flag}");
        }
        // Reserved huge pages are a file's, too.
        assert_eq!(of("rw-s", "/dev/hugepages/x", "rd ht"), Some(Unfit::Reserved));
        let found = area(&vma("rw-p", "", "rd"));
        assert_eq!((found.start, found.end, found.name.as_str()), (1 << 21, 3 << 21, "[anonymous]"));
        assert_eq!((found.resident_bytes, found.referenced_bytes, found.unfit), (3 << 12, 2 << 12, None));
    }

    #[test]
    fn why_a_process_is_not_looked_at_is_said_in_a_line() {
        let of = |errno| refused(7, &HostError::io("/proc/7/smaps", Error::from_raw_os_error(errno))).to_string();
        assert_eq!(of(libc::ESRCH), "process 7: it has ended");
        assert_eq!(of(libc::ENOENT), "process 7: there is none");
        assert_eq!(of(libc::EACCES), format!("process 7: {OTHERS}"));
        assert!(of(libc::EIO).starts_with("process 7: /proc/7/smaps: Input/output error"), "{}", of(libc::EIO));
    }

    #[test]
    fn a_windows_pages_are_found_by_its_first_byte() {
        let window = |start, small_pages| FitWindow { start, area: 0, small_pages, huge_pages: 0, swapped_pages: 5 };
        let windows = vec![window(2 << 21, 3), window(4 << 21, 512), window(5 << 21, 1)];
        let memory = ProcessMemory { areas: Vec::new(), windows: windows.clone() };
        assert_eq!(memory.small_bytes(), 516 * 4096);
        assert_eq!(memory.window(4 << 21), Some(&windows[1]));
        assert_eq!([3 << 21, (4 << 21) + 1, 0].map(|start| memory.window(start)), [None; 3]);
        assert_eq!(ProcessMemory::default().small_bytes(), 0);
    }

    /// Of four windows each other page, which are more ranges than a call gives back; the pages between in the first
    /// are read alone, and so the system's page of zeros.
    #[test]
    fn pages_are_counted_in_their_windows_one_by_one() {
        let enabled = lookaside_host::TransparentHugePages::here().chosen("enabled");
        if enabled.ok().flatten().is_some_and(|word| word == "always") {
            return eprintln!("LEFT OUT: the system makes huge pages of what nobody asked it for");
        }
        let memory = Mapping::new(5 * WINDOW_BYTES as usize).expect("memory");
        let first = memory.address().next_multiple_of(WINDOW_BYTES);
        for page in 0..4 * u64::from(crate::hugepages::WINDOW_PAGES) {
            let at = (first + page * PAGE_BYTES) as *mut u8;
            // SAFETY: within the mapping.
            unsafe {
                if page.is_multiple_of(2) {
                    at.write_volatile(1);
                } else if page < 512 {
                    assert_eq!(at.read_volatile(), 0);
                }
            }
        }
        let found = match ProcessMemory::of(std::process::id()) {
            Ok(found) => found,
            Err(error) => return assert!(error.to_string().contains("PAGEMAP_SCAN"), "{error}"),
        };
        for at in 0..4 {
            let window = found.window(first + at * WINDOW_BYTES).expect("something is in it");
            assert_eq!((window.small_pages, window.huge_pages, window.swapped_pages), (256, 0, 0), "{at}");
            let area = &found.areas[window.area];
            assert!(area.start <= window.start && window.start + WINDOW_BYTES <= area.end && area.unfit.is_none());
        }
    }

    /// A page on either side has other rights, so that the system keeps it apart.
    #[test]
    fn a_window_is_mapped_where_one_mapping_holds_all_of_it() {
        let bytes = WINDOW_BYTES as usize + 2 * PAGE_BYTES as usize;
        let all = Mapping::anonymous(bytes, ProtFlags::empty(), MapFlags::PRIVATE).expect("addresses");
        let start = all.address() + PAGE_BYTES;
        // SAFETY: within the mapping, which is this test's own.
        let opened = unsafe {
            libc::mprotect(start as *mut libc::c_void, WINDOW_BYTES as usize, libc::PROT_READ | libc::PROT_WRITE)
        };
        assert_eq!(opened, 0);
        let of = |start| is_mapped(std::process::id(), start);
        assert_eq!([start, start + PAGE_BYTES, start - PAGE_BYTES].map(of), [true, false, false]);
        assert_eq!([1 << 60, u64::MAX, u64::MAX - WINDOW_BYTES + 1].map(of), [false; 3]);
        assert!(!is_mapped(4_194_305, start), "nobody's");
    }
}
