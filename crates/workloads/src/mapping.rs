//! Anonymous memory for a workload's arrays, with the page sizes that are asked of the system.

use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::io;
use std::ptr::NonNull;

use rustix::mm::{madvise, mmap_anonymous, mprotect, munmap, Advice, MapFlags, MprotectFlags, ProtFlags};
use serde::Serialize;

use crate::stream::PAGE_BYTES;

/// Arrays begin on a multiple of this, so that with huge pages all of an array can be in them: 2 MiB, x86-64's smaller
/// kind.
pub(crate) const ALIGN_BYTES: u64 = 2 << 20;

/// Page sizes asked of the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Pages {
    /// Base pages only: transparent huge pages are switched off for the arrays.
    #[default]
    Base,
    /// Transparent huge pages are switched on for the arrays.
    Thp,
    /// As a program that knows nothing of huge pages: it has its memory from the allocator, and neither asks for them
    /// nor refuses them. There are as many as the system or the allocator gives (glibc's with
    /// `GLIBC_TUNABLES=glibc.malloc.hugetlb=1`), or somebody makes from outside.
    AsIs,
}

/// Anonymous memory of this process.
#[derive(Debug)]
pub(crate) struct ArrayMapping {
    /// First byte, on a multiple of [`ALIGN_BYTES`].
    start: NonNull<u8>,
    /// What it lies in.
    room: Room,
}

/// Memory with something before and behind what is used.
#[derive(Debug)]
enum Room {
    /// Mapped by us: what is not used can't be accessed.
    Mapped(NonNull<u8>, usize),
    /// The allocator's, but for the pages right before and behind what is used, which can't be accessed.
    Allocated { at: NonNull<u8>, layout: Layout, used: usize },
}

// SAFETY: the memory is the mapping's alone, whatever thread it is used by.
unsafe impl Send for ArrayMapping {}

impl ArrayMapping {
    /// Its first byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Whole pages, all touched, all zero. What is before and behind can't be accessed, so that the kernel lists each
    /// array as a region of its own: as long as it is in the stream, and found again there by a plan that was made of
    /// the stream.
    pub(crate) fn new(bytes: usize, pages: Pages) -> io::Result<Self> {
        let (align, page) = (ALIGN_BYTES as usize, PAGE_BYTES as usize);
        // Where huge pages are asked for, to the end of the last one.
        let used = if pages == Pages::Thp { bytes.checked_next_multiple_of(align) } else { Some(bytes) };
        let used = used.ok_or(io::ErrorKind::OutOfMemory)?;
        // A page, as much as it takes to the next boundary, what is used, and at least a page.
        let len = used.checked_add(align + page).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = if pages == Pages::AsIs { Self::allocated(len, used)? } else { Self::mapped(len, used)? };
        let advice = match pages {
            Pages::Base => Some(Advice::LinuxNoHugepage),
            Pages::Thp => Some(Advice::LinuxHugepage),
            Pages::AsIs => None,
        };
        if let Some(advice) = advice {
            // SAFETY: the mapping's own memory; it says nothing of what it holds.
            let advised = unsafe { madvise(mapping.start.as_ptr().cast(), used, advice) };
            // A kernel without huge pages gives base pages anyway.
            advised.or_else(|e| if pages == Pages::Thp { Err(e) } else { Ok(()) })?;
        }
        for page in (0..bytes).step_by(PAGE_BYTES as usize) {
            // SAFETY: within the mapping, which nobody else knows yet.
            unsafe { mapping.start.add(page).write_volatile(0) };
        }
        Ok(mapping)
    }

    fn mapped(len: usize, used: usize) -> io::Result<Self> {
        // SAFETY: new memory, at a place that the system chooses.
        let mapped = unsafe { mmap_anonymous(std::ptr::null_mut(), len, ProtFlags::empty(), MapFlags::PRIVATE)? };
        let at = NonNull::new(mapped.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Self { start: start_in(at), room: Room::Mapped(at, len) };
        // SAFETY: the mapping's own memory, which nobody else knows yet; as much as `start_in` leaves.
        unsafe { mprotect(mapping.start.as_ptr().cast(), used, MprotectFlags::READ | MprotectFlags::WRITE)? };
        Ok(mapping)
    }

    fn allocated(len: usize, used: usize) -> io::Result<Self> {
        // A page more, since no page's beginning is asked for: with it the allocator would set every byte to zero by
        // hand, and the kernel's new memory is zero already.
        let len = len.checked_add(PAGE_BYTES as usize).ok_or(io::ErrorKind::OutOfMemory)?;
        let layout =
            Layout::array::<u64>(len / size_of::<u64>()).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        // SAFETY: the layout is of more than nothing.
        let at = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Self { start: start_in(at), room: Room::Allocated { at, layout, used } };
        protect_beside(mapping.start, used, MprotectFlags::empty())?;
        Ok(mapping)
    }
}

/// The first boundary with a page before it: at most [`ALIGN_BYTES`] from `at` where that begins a page, else less than
/// a page more.
fn start_in(at: NonNull<u8>) -> NonNull<u8> {
    let (align, page) = (ALIGN_BYTES as usize, PAGE_BYTES as usize);
    let address = at.addr().get();
    // SAFETY: within the memory that begins there.
    unsafe { at.add((address + page).next_multiple_of(align) - address) }
}

/// Sets the rights of the pages right before and behind allocated memory.
fn protect_beside(start: NonNull<u8>, used: usize, rights: MprotectFlags) -> io::Result<()> {
    let page = PAGE_BYTES as usize;
    // SAFETY: `start_in` leaves these two whole pages, which are of the same allocation and used by nobody.
    unsafe {
        mprotect(start.sub(page).as_ptr().cast(), page, rights)?;
        mprotect(start.add(used).as_ptr().cast(), page, rights)?;
    }
    Ok(())
}

impl Drop for ArrayMapping {
    fn drop(&mut self) {
        match self.room {
            Room::Mapped(at, len) => {
                // SAFETY: mapped by `new`, and borrowed by nobody any more. That it can't be unmapped does not happen.
                let _ = unsafe { munmap(at.as_ptr().cast(), len) };
            }
            Room::Allocated { at, layout, used } => {
                // The allocator writes to what it gets back; pages that stay shut are kept from it.
                if protect_beside(self.start, used, MprotectFlags::READ | MprotectFlags::WRITE).is_ok() {
                    // SAFETY: allocated by `new` with this layout, and borrowed by nobody any more.
                    unsafe { dealloc(at.as_ptr(), layout) };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_even_where_the_allocator_had_it_before() {
        let bytes = 3 << 20;
        for pages in [Pages::AsIs, Pages::Base, Pages::AsIs] {
            for _ in 0..8 {
                let mapping = ArrayMapping::new(bytes, pages).expect("memory");
                // SAFETY: the mapping's own bytes, which nobody else has.
                let all = unsafe { std::slice::from_raw_parts_mut(mapping.start().as_ptr(), bytes) };
                assert!(all.iter().all(|&byte| byte == 0), "{pages:?}");
                all.fill(0xa5);
            }
        }
    }
}
