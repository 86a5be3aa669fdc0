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
    fn a_process_that_is_not_there_is_named() {
        let error = Scanner::open(Target::Process(u32::MAX)).expect_err("no such process");
        assert!(error.to_string().contains("no such process"), "{error}");
    }
}
