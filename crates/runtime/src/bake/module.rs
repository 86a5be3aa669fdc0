//! The kernel module's way through page tables (`kernel/` of this repository): every n-th entry, no data.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};

use super::error::BakeError;
use super::kernel::{errno, open_pagemap};
use super::region::{Target, PAGE_BYTES};

/// The module's device.
pub const DEVICE: &std::ffi::CStr = c"/dev/lookaside";
/// `LOOKASIDE_VERSION` of `kernel/lookaside.h`, which these are held against by a test.
pub const VERSION: u32 = 1;
/// `LOOKASIDE_MAX_NOPS`.
pub(super) const MOST_NOPS: u32 = 1 << 16;
/// `LOOKASIDE_WALK`, `_IOWR(0xBA, 0, struct lookaside_walk)`.
pub const WALK: libc::c_ulong = 3 << 30 | (size_of::<Walk>() as libc::c_ulong) << 16 | 0xBA << 8;
/// Steps of a call: some 40 µs, below half a millisecond if each entry comes from memory. The module itself gives
/// `mmap_lock` up more often, and lets those in who wait for it.
const CHUNK_STEPS: u32 = 4096;

/// `struct lookaside_walk`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// [`VERSION`].
    pub version: u32,
    /// None are there.
    pub flags: u32,
    /// An open `/proc/PID/pagemap`; -1 = the caller's own tables.
    pub pagemap: i32,
    /// Pages from one entry to the next.
    pub stride: u32,
    /// NOPs after each touch.
    pub nops: u32,
    /// Bound of the call; 0 = the greatest.
    pub steps: u32,
    /// First byte; a multiple of a page.
    pub start: u64,
    /// Bytes; a multiple of a page.
    pub len: u64,
    /// Filled in: where to go on.
    pub next: u64,
    /// Filled in: entries read.
    pub touched: u64,
    /// Filled in: of these, entries of pages that have a frame.
    pub present: u64,
    /// Filled in: tables that they are in.
    pub tables: u64,
    /// Filled in: entries of huge pages.
    pub huge: u64,
    /// Filled in: why the walk ended.
    pub ended: u32,
    /// 0.
    pub reserved: u32,
}

impl Walk {
    /// A walk of at most `CHUNK_STEPS` steps from `start` to `end` (multiples of a page) of the caller's own tables, or
    /// of those whose page map is open.
    pub fn chunk(pagemap: Option<RawFd>, start: u64, end: u64, stride_pages: u32, nops: u32) -> Self {
        Self {
            version: VERSION,
            pagemap: pagemap.unwrap_or(-1),
            stride: stride_pages,
            nops,
            steps: CHUNK_STEPS,
            start,
            len: end.saturating_sub(start),
            ..Self::default()
        }
    }
}

/// Reads page-table entries by the module.
#[derive(Debug)]
pub(crate) struct Module {
    device: File,
    /// The process's; none for the caller's own tables.
    pagemap: Option<File>,
}

impl Module {
    /// Opens the device and tries the call.
    pub(crate) fn open(target: Target) -> Result<Self, BakeError> {
        let path = DEVICE.to_string_lossy();
        let device = File::open(&*path).map_err(|e| {
            let what = match e.kind() {
                std::io::ErrorKind::NotFound => {
                    "the kernel module is not loaded; build and load it, as root in Lookaside's folder: make -C kernel load (docs/reference/kernel-module.md)"
                }
                std::io::ErrorKind::PermissionDenied => "this user may not use the kernel module",
                _ => "the kernel module cannot be used",
            };
            BakeError::Unsupported(format!("module: {path}: {what} ({e})"))
        })?;
        let pagemap = match target {
            Target::Own => None,
            Target::Process(_) => Some(open_pagemap(target)?),
        };
        let module = Self { device, pagemap };
        match module.walk(PAGE_BYTES, 2 * PAGE_BYTES, 1, 0) {
            Ok(_) => Ok(module),
            Err(libc::EPROTO | libc::ENOTTY) => Err(BakeError::Unsupported(format!(
                "module: {path}: the module that is loaded is not of this version; as root: make -C kernel unload load"
            ))),
            Err(libc::EOPNOTSUPP) => Err(BakeError::Unsupported(format!(
                "module: {path}: other processes cannot be reached: /proc was not mounted when the module was loaded, or has no pagemap"
            ))),
            Err(libc::ESRCH) => Err(BakeError::Unsupported("module: the process has ended".into())),
            Err(errno) => {
                let e = std::io::Error::from_raw_os_error(errno);
                Err(BakeError::Unsupported(format!("module: {path}: {e}")))
            }
        }
    }

    /// Reads entries from `start` to `end` (multiples of a page), as many as a call does; gives where to go on and how
    /// many were read.
    pub(crate) fn walk(&self, start: u64, end: u64, stride_pages: u32, nops: u32) -> Result<Walk, i32> {
        let pagemap = self.pagemap.as_ref().map(File::as_raw_fd);
        let mut walk = Walk::chunk(pagemap, start, end, stride_pages, nops);
        // SAFETY: the structure that the call takes and fills; of what is mapped it changes nothing.
        let result = unsafe { libc::ioctl(self.device.as_raw_fd(), WALK as _, &mut walk) };
        match result {
            0.. => Ok(walk),
            _ => Err(errno()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What works where the module is loaded is tested in virtual machines (`tools/check-kernel`).
    #[test]
    fn without_the_module_one_line_says_how_to_load_it() {
        if std::path::Path::new("/dev/lookaside").exists() {
            return eprintln!("LEFT OUT: the module is loaded");
        }
        let error = Module::open(Target::Own).expect_err("no module").to_string();
        assert!(error.contains("/dev/lookaside") && error.contains("make -C kernel load"), "{error}");
        assert!(!error.contains('\n'));
    }

    #[test]
    fn a_chunk_is_as_the_module_wants_it() {
        let walk = Walk::chunk(None, 4096, 12288, 8, 5);
        let expected = Walk {
            version: 1,
            pagemap: -1,
            stride: 8,
            nops: 5,
            steps: CHUNK_STEPS,
            start: 4096,
            len: 8192,
            ..Walk::default()
        };
        assert_eq!(walk, expected);
        assert_eq!(Walk::chunk(Some(3), 4096, 8192, 1, 0).pagemap, 3);
    }
}
