//! Anonymous memory for a workload's arrays, with the page sizes that are asked of the system.

use std::io;
use std::ptr::NonNull;

use rustix::mm::{madvise, mmap_anonymous, mprotect, munmap, Advice, MapFlags, MprotectFlags, ProtFlags};
use schemars::JsonSchema;
use serde::Serialize;

use crate::stream::PAGE_BYTES;

/// Arrays begin on a multiple of this, so that with huge pages all of an array can be in them: 2 MiB, x86-64's smaller kind.
pub(crate) const ALIGN_BYTES: u64 = 2 << 20;

/// Page sizes asked of the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pages {
    /// Base pages only: transparent huge pages are switched off for the arrays.
    #[default]
    Base,
    /// Transparent huge pages are switched on for the arrays.
    Thp,
    /// As a program that knows nothing of huge pages: it neither asks for them nor refuses them. There are as many as the system gives,
    /// or somebody makes from outside. Where glibc's `malloc` is told to ask for them (`GLIBC_TUNABLES=glibc.malloc.hugetlb=1`), it is
    /// done for the arrays, too: such a program has its memory from there.
    AsIs,
}

/// Anonymous memory of this process.
#[derive(Debug)]
pub(crate) struct ArrayMapping {
    /// First byte, on a multiple of [`ALIGN_BYTES`].
    start: NonNull<u8>,
    /// What was mapped, with what lies before and behind.
    mapped: (NonNull<u8>, usize),
}

// SAFETY: the memory is the mapping's alone, whatever thread it is used by.
unsafe impl Send for ArrayMapping {}

impl ArrayMapping {
    /// Its first byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Whole pages, all touched. What is before and behind can't be accessed, so that the kernel lists each array as a region of its
    /// own: as long as it is in the stream, and found again there by a plan that was made of the stream.
    pub(crate) fn new(bytes: usize, pages: Pages) -> io::Result<Self> {
        let (align, page) = (ALIGN_BYTES as usize, PAGE_BYTES as usize);
        // Where huge pages are asked for, to the end of the last one.
        let used = if pages == Pages::Thp { bytes.checked_next_multiple_of(align) } else { Some(bytes) };
        let used = used.ok_or(io::ErrorKind::OutOfMemory)?;
        // A page, as much as it takes to the next boundary, what is used, and at least a page.
        let len = used.checked_add(align + page).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: new memory, at a place that the system chooses.
        let mapped = unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::empty(), MapFlags::PRIVATE)? };
        let mapped = (NonNull::new(mapped.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?, len);
        let at = mapped.0.addr().get();
        let skip = (at + page).next_multiple_of(align) - at;
        // SAFETY: `skip`, at most `align`, and `used` more lie within the mapping.
        let mapping = Self { start: unsafe { mapped.0.add(skip) }, mapped };
        let start = mapping.start.as_ptr().cast();
        // SAFETY: the mapping's own memory, which nobody else knows yet.
        unsafe { mprotect(start, used, MprotectFlags::READ | MprotectFlags::WRITE)? };
        let advice = match pages {
            Pages::Base => Some(Advice::LinuxNoHugepage),
            Pages::Thp => Some(Advice::LinuxHugepage),
            Pages::AsIs => {
                malloc_asks(std::env::var("GLIBC_TUNABLES").as_deref().unwrap_or("")).then_some(Advice::LinuxHugepage)
            }
        };
        if let Some(advice) = advice {
            // SAFETY: the same memory; it says nothing of what it holds.
            let advised = unsafe { madvise(start, used, advice) };
            // A kernel without huge pages gives base pages anyway.
            advised.or_else(|e| if pages == Pages::Thp { Err(e) } else { Ok(()) })?;
        }
        for page in (0..bytes).step_by(PAGE_BYTES as usize) {
            // SAFETY: within the mapping, which nobody else knows yet.
            unsafe { mapping.start.add(page).write_volatile(0) };
        }
        Ok(mapping)
    }
}

/// Whether glibc's `malloc` asks for huge pages, by what its tunables are set to; the last setting counts.
pub(crate) fn malloc_asks(tunables: &str) -> bool {
    tunables.split(':').filter_map(|tunable| tunable.strip_prefix("glibc.malloc.hugetlb=")).next_back() == Some("1")
}

impl Drop for ArrayMapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and borrowed by nobody any more. That it can't be unmapped does not happen.
        let _ = unsafe { munmap(self.mapped.0.as_ptr().cast(), self.mapped.1) };
    }
}
