//! The kernel's own way through page tables: two calls of a stock kernel that read every entry of a range and, asked so, give
//! nothing back. No data come into the caches.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::Duration;

use super::small::{finding, Range};
use super::{BakeError, Target, PAGE_BYTES};

/// Bytes of addresses of one call: 4096 entries. The kernel holds `mmap_lock` for reading meanwhile, which keeps the program's mmap
/// and munmap waiting: some 20 µs at 4.6 ns an entry (measured on Linux 6.18).
pub const CHUNK_BYTES: u64 = 16 << 20;

/// Pause after a call that held `mmap_lock`: the next call, made at once, would take the lock again before a thread of the program
/// that waits for it is awake, until the kernel hands it over after 4 ms (kernel/locking/rwsem.c, RWSEM_WAIT_TIMEOUT).
pub const LET_IN: Duration = Duration::from_micros(50);

/// `_IOWR('f', 16, struct pm_scan_arg)` (Linux, include/uapi/linux/fs.h).
pub const PAGEMAP_SCAN: libc::c_ulong =
    3 << 30 | (size_of::<PmScanArg>() as libc::c_ulong) << 16 | (b'f' as libc::c_ulong) << 8 | 16;
/// A category of `PAGEMAP_SCAN` (the same file): pages that have a frame.
pub const PAGE_IS_PRESENT: u64 = 1 << 3;
/// Pages that are swapped out.
const PAGE_IS_SWAPPED: u64 = 1 << 4;
/// Parts of a page larger than a base page.
pub const PAGE_IS_HUGE: u64 = 1 << 6;

/// `struct pm_scan_arg` of Linux 6.7.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PmScanArg {
    /// Bytes of this structure.
    pub size: u64,
    /// None are used here.
    pub flags: u64,
    /// First byte; a multiple of a page.
    pub start: u64,
    /// The byte after the last; a multiple of a page.
    pub end: u64,
    /// Filled in: where the walk ended.
    pub walk_end: u64,
    /// Address of the ranges that are filled in: first byte, byte after the last, categories, a u64 each.
    pub vec: u64,
    /// Ranges that there is room for.
    pub vec_len: u64,
    /// The walk ends after so many pages found; 0 = no bound.
    pub max_pages: u64,
    /// Categories that are meant the other way round.
    pub category_inverted: u64,
    /// Categories that a page must all have.
    pub category_mask: u64,
    /// Categories of which a page must have one, if any is named.
    pub category_anyof_mask: u64,
    /// Categories that are told.
    pub return_mask: u64,
}

impl PmScanArg {
    /// Has the kernel read all entries from `start` to `end` and tell nothing: no page is both present and swapped out, so that each is
    /// looked at and none is found. `room` is for the one range that it may fill and never does.
    pub fn reading(start: u64, end: u64, room: &mut [u64; 3]) -> Self {
        Self {
            size: size_of::<Self>() as u64,
            start,
            end,
            vec: room.as_mut_ptr() as u64,
            vec_len: 1,
            category_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
            return_mask: PAGE_IS_PRESENT,
            ..Self::default()
        }
    }
}

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
                Err(BakeError::Unsupported(format!("{}: PAGEMAP_SCAN: {e}", pagemap_path(target))))
            }
        }
    }

    /// Finds small pages that have frames: how many ranges of them it found, and where it ended.
    pub(super) fn find(&self, range: Range, found: &mut [[u64; 3]]) -> Result<(usize, u64), i32> {
        let mut arg = finding(range, found);
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

fn pagemap_path(target: Target) -> String {
    match target {
        Target::Own => "/proc/self/pagemap".to_string(),
        Target::Process(pid) => format!("/proc/{pid}/pagemap"),
    }
}

/// The process's page map, which may be opened by those who may look at the process.
pub(super) fn open_pagemap(target: Target) -> Result<File, BakeError> {
    let path = pagemap_path(target);
    File::open(&path).map_err(|e| {
        let what = match e.kind() {
            std::io::ErrorKind::NotFound => "there is no such process",
            std::io::ErrorKind::PermissionDenied => "another user's process: needs root or CAP_SYS_PTRACE",
            _ => "the page map cannot be opened",
        };
        BakeError::Unsupported(format!("{path}: {what} ({e})"))
    })
}

/// Reads the entries from `start` to `end` (multiples of a page) of the caller's own memory by `mincore`. Of a range with a hole in it
/// those up to the hole.
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
    use super::*;

    #[test]
    fn the_call_has_the_kernels_number() {
        assert_eq!(size_of::<PmScanArg>(), 96);
        assert_eq!(PAGEMAP_SCAN, 0xc060_6610);
    }

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
