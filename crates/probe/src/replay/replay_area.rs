//! Memory for pages of a chosen size.

use std::ffi::c_void;

use lookaside_host::Mapping;
use rustix::mm::{MapFlags, ProtFlags};

use super::error::ReplayError;

/// Bytes of a huge and of a small page.
pub const HUGE: u64 = 2 << 20;
pub const SMALL: u64 = 4096;

/// Memory whose first byte is at a multiple of 2 MiB.
pub struct ReplayArea {
    _mapping: Mapping,
    base: u64,
}

impl ReplayArea {
    /// Its first byte.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Maps so many bytes, none of them touched.
    pub fn new(bytes: u64) -> Result<Self, ReplayError> {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        let mapping = Mapping::anonymous((bytes + HUGE) as usize, rights, MapFlags::PRIVATE | MapFlags::NORESERVE)
            .map_err(|e| ReplayError::Mapping(e.to_string()))?;
        let base = mapping.address().next_multiple_of(HUGE);
        Ok(Self { _mapping: mapping, base })
    }

    /// Advice, which a system without huge pages refuses: what came of it is looked at later.
    pub fn advise(&self, from: u64, bytes: u64, advice: i32) {
        // SAFETY: a part of our own mapping, to which there are no references.
        unsafe { libc::madvise((self.base + from) as *mut c_void, bytes as usize, advice) };
    }

    /// Writes to the page of this line, all of whose other words stay zero. Each page has contents of its own, lest a
    /// host merge equal ones; the last word of a page is never read as a link.
    pub fn touch(&self, line: u32) {
        let page = self.base + (u64::from(line) << 6) / SMALL * SMALL;
        // SAFETY: an aligned word within our own mapping.
        unsafe { ((page + SMALL - 8) as *mut u64).write_volatile(page) };
    }
}
