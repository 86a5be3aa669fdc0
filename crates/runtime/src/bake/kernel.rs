//! The kernel's own way through page tables: two calls of a stock kernel that read every entry of a range and, asked
//! so, give nothing back. No data come into the caches.

use std::fs::File;
use std::os::fd::AsRawFd;

use super::address_range::AddressRange;
use super::error::BakeError;
use super::pm_scan::{PmScanArg, PAGEMAP_SCAN};
use super::region::{Target, PAGE_BYTES};

/// A process's page map (Documentation/admin-guide/mm/pagemap.rst).
const PAGEMAP: &str = "pagemap";

/// Reads page-table entries by `PAGEMAP_SCAN`.
#[derive(Debug)]
pub(crate) struct Scanner(File);

impl Scanner {
    /// Opens the process's page map and tries the call.
    pub(crate) fn open(target: Target) -> Result<Self, BakeError> {
        let scanner = Self(open_pagemap(target)?);
        match scanner.scan(0, PAGE_BYTES) {
            Ok(()) => Ok(scanner),
            Err(libc::ENOTTY | libc::EINVAL) => Err(BakeError::Unsupported(
                "scan: needs PAGEMAP_SCAN (Linux 6.7 and later); mincore and prefetch work without".into(),
            )),
            Err(errno) => {
                let e = std::io::Error::from_raw_os_error(errno);
                Err(BakeError::Unsupported(format!("{}: PAGEMAP_SCAN: {e}", target.process().path(PAGEMAP).display())))
            }
        }
    }

    /// Finds small pages that have frames: how many ranges of them it found, and where it ended.
    pub(super) fn find(&self, range: AddressRange, found: &mut [[u64; 3]]) -> Result<(usize, u64), i32> {
        let mut arg = PmScanArg::small_pages(range, found);
        // SAFETY: the structure that the call takes; it fills at most the ranges that there is room for.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), PAGEMAP_SCAN as _, &mut arg) };
        match result {
            0.. => Ok((result as usize, arg.walk_end)),
            _ => Err(errno()),
        }
    }

    /// Reads the entries from `start` to `end` (multiples of a page); unmapped parts cost nothing.
    pub(crate) fn scan(&self, start: u64, end: u64) -> Result<(), i32> {
        let mut room = [0u64; 3];
        let mut arg = PmScanArg::reading(start, end, &mut room);
        // SAFETY: the structure that the call takes, its vector with room for the one region it may fill.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), PAGEMAP_SCAN as _, &mut arg) };
        match result {
            0.. => Ok(()),
            _ => Err(errno()),
        }
    }
}

/// The process's page map, which may be opened by those who may look at the process.
pub(super) fn open_pagemap(target: Target) -> Result<File, BakeError> {
    target.process().open(PAGEMAP).map_err(|e| {
        let what = match () {
            () if e.is_missing() => "there is no such process",
            () if e.is_forbidden() => "another user's process: needs root or CAP_SYS_PTRACE",
            () => "the page map cannot be opened",
        };
        BakeError::Unsupported(format!("{}: {what} ({})", e.path.display(), e.problem))
    })
}

/// Reads the entries from `start` to `end` (multiples of a page) of the caller's own memory by `mincore`. Of a range
/// with a hole in it those up to the hole.
pub(crate) fn mincore(start: u64, end: u64, resident: &mut Vec<u8>) -> Result<(), i32> {
    let pages = ((end - start) / PAGE_BYTES) as usize;
    if resident.len() < pages {
        resident.resize(pages, 0);
    }
    // SAFETY: the call only reads tables of the range, mapped or not, and fills a byte a page, for which there is room.
    let result =
        unsafe { libc::mincore(start as *mut libc::c_void, (end - start) as usize, resident.as_mut_ptr().cast()) };
    match result {
        0 => Ok(()),
        _ => Err(errno()),
    }
}

/// This thread's error number.
pub(super) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

#[cfg(test)]
mod tests {
    use super::super::pm_scan::CHUNK_BYTES;
    use super::*;
    use crate::rights::without_rights;

    #[test]
    fn entries_are_read_and_nothing_is_faulted_in() {
        let data = vec![0u8; 1 << 20]; // untouched: the system's page of zeros is not even mapped
        let (start, end) = (data.as_ptr() as u64 & !4095, (data.as_ptr() as u64 & !4095) + (1 << 20));
        let mut resident = Vec::new();
        mincore(start, end, &mut resident).expect("mapped memory");
        assert_eq!(resident.len(), 256);
        let before = resident.iter().filter(|&&byte| byte & 1 == 1).count();
        match Scanner::open(Target::Own) {
            Ok(scanner) => {
                scanner.scan(start, end).expect("a scan");
                scanner.scan(1 << 46, (1 << 46) + CHUNK_BYTES).expect("a scan of nothing");
            }
            Err(e) => assert!(e.to_string().contains("Linux 6.7"), "{e}"),
        }
        mincore(start, end, &mut resident).expect("mapped memory");
        assert_eq!(resident.iter().filter(|&&byte| byte & 1 == 1).count(), before);
        assert_eq!(mincore(1 << 46, (1 << 46) + 4096, &mut resident), Err(libc::ENOMEM));
    }

    #[test]
    fn each_page_of_a_range_is_told_by_itself_and_a_hole_ends_it() {
        let bytes = 32 * PAGE_BYTES as usize;
        let memory = lookaside_host::Mapping::new(bytes).expect("memory");
        let _ = memory.advise_huge(false);
        let (start, end) = (memory.address(), memory.address() + bytes as u64);
        for page in [3, 4, 31] {
            // SAFETY: within the mapping.
            unsafe { ((start + page * PAGE_BYTES) as *mut u8).write_volatile(1) };
        }
        let mut resident = vec![7; 40];
        assert_eq!(mincore(start, end, &mut resident), Ok(()));
        let told: Vec<usize> = (0..32).filter(|&page| resident[page] & 1 == 1).collect();
        assert_eq!((told, &resident[32..]), (vec![3, 4, 31], &[7; 8][..]));
        // From half of it on.
        assert_eq!(mincore(start + 16 * PAGE_BYTES, end, &mut resident), Ok(()));
        assert_eq!(
            resident[..16].iter().map(|byte| byte & 1).collect::<Vec<u8>>(),
            [[0; 15].as_slice(), &[1]].concat()
        );
        // Two pages where the system maps nothing by itself, and nothing behind them.
        let (at, bytes) = (1u64 << 45, 2 * PAGE_BYTES);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: a new mapping, in place of none.
        let map = unsafe { libc::mmap(at as *mut libc::c_void, bytes as usize, libc::PROT_READ, flags, -1, 0) };
        if map as u64 != at {
            return eprintln!("LEFT OUT: nothing can be mapped at {at:#x}");
        }
        assert_eq!(mincore(at, at + bytes, &mut resident), Ok(()));
        assert_eq!(mincore(at, at + bytes + PAGE_BYTES, &mut resident), Err(libc::ENOMEM));
        // SAFETY: the mapping above, which nobody uses.
        unsafe { libc::munmap(map, bytes as usize) };
    }

    #[test]
    fn small_pages_with_frames_are_found_and_what_is_no_page_is_refused() {
        let scanner = match Scanner::open(Target::Own) {
            Ok(scanner) => scanner,
            Err(e) => return assert!(e.to_string().contains("Linux 6.7"), "{e}"),
        };
        let memory = lookaside_host::Mapping::new(1 << 20).expect("memory");
        let _ = memory.advise_huge(false);
        let page = |n: u64| memory.address() + n * PAGE_BYTES;
        for n in [3, 4, 10] {
            // SAFETY: within the mapping.
            unsafe { (page(n) as *mut u8).write_volatile(1) };
        }
        let all = AddressRange { start: page(0), end: page(256) };
        let mut found = [[0; 3]; 8];
        assert_eq!(scanner.find(all, &mut found), Ok((2, page(256))));
        assert_eq!(
            found[..2].iter().map(|range| (range[0], range[1])).collect::<Vec<_>>(),
            [(page(3), page(5)), (page(10), page(11))]
        );
        // With room for one it ends before the other.
        let (count, next) = scanner.find(all, &mut found[..1]).expect("a scan");
        assert!(count == 1 && (page(5)..=page(10)).contains(&next), "{count} {next:#x}");
        let none = AddressRange { start: page(5), end: page(10) };
        assert_eq!(scanner.find(none, &mut found), Ok((0, page(10))));
        assert_eq!(scanner.scan(page(0) + 1, page(2)), Err(libc::EINVAL), "no page begins there");
        assert_eq!(scanner.find(AddressRange { start: page(0) + 1, end: page(2) }, &mut found), Err(libc::EINVAL));
    }

    #[test]
    fn a_process_that_is_not_there_is_named() {
        let error = Scanner::open(Target::Process(u32::MAX)).expect_err("no such process");
        assert!(error.to_string().contains("no such process"), "{error}");
    }

    /// The first process is root's, whose rights the calling thread has not.
    #[test]
    fn a_process_that_may_not_be_looked_at_is_anothers() {
        match without_rights(|| open_pagemap(Target::Process(1)).map(|_| ())) {
            Ok(()) => eprintln!("LEFT OUT: the first process has no rights either"),
            Err(error) => {
                let words = "another user's process: needs root or CAP_SYS_PTRACE";
                assert!(error.to_string().contains(words), "{error}");
            }
        }
    }
}
