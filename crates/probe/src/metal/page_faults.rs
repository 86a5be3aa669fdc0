//! Memory whose first touches are timed, by the size of the pages that the kernel gives.

use std::ffi::c_void;

use lookaside_host::{Mapping, TransparentHugePages};
use lookaside_machine::PageSize;
use rustix::mm::ProtFlags;

use crate::metal::area::reserved;
use crate::metal::clock;
use crate::metal::word_sequence::undisturbed;
use crate::metal::MetalError;

/// Bytes that are touched between two looks at the timer: about a tenth of a millisecond, less than a thread waits for
/// a CPU that another has.
const SLICE: u64 = 1 << 20;
/// Bytes of a small page.
const SMALL: u64 = 4096;

/// Sizes of the pages that memory is given which asks for huge ones, smallest first; the system's own page is the
/// first.
pub(crate) fn offered() -> Vec<PageSize> {
    let own = rustix::param::page_size() as u64;
    let sizes = std::iter::once(own).chain(TransparentHugePages::here().offered_bytes());
    sizes.filter(|bytes| bytes.is_power_of_two()).filter_map(|bytes| PageSize::from_shift(bytes.ilog2())).collect()
}

/// Pieces of memory of one page each. The kernel gives the largest page that it has for where memory is touched and
/// that lies within the mapping: so that it is one of this size, each piece but the smallest and the largest has a
/// mapping of its own.
#[derive(Debug)]
pub(crate) struct FaultArea {
    _mapping: Mapping,
    base: u64,
    size: PageSize,
    /// Bytes from one piece to the next.
    step: u64,
    pieces: u64,
}

impl FaultArea {
    /// Addresses for so many bytes of pages.
    pub(crate) fn new(size: PageSize, bytes: u64) -> Result<Self, MetalError> {
        let pieces = (bytes / size.bytes()).max(1);
        let failed = |e: std::io::Error| MetalError::Memory { pages: pieces as usize, size, reason: e.to_string() };
        let is_own = size.bytes() <= rustix::param::page_size() as u64;
        let between = !is_own && size < PageSize::M2;
        let step = if between { 2 * size.bytes() } else { size.bytes() };
        let rights = if between { ProtFlags::empty() } else { ProtFlags::READ | ProtFlags::WRITE };
        let most = PageSize::M2.max(size).bytes();
        let mapping = reserved(pieces * step + most, rights).map_err(failed)?;
        let base = mapping.address().next_multiple_of(most);
        let area = Self { _mapping: mapping, base, size, step, pieces };
        area.advise(if is_own { libc::MADV_NOHUGEPAGE } else { libc::MADV_HUGEPAGE });
        for at in area.places().filter(|_| between) {
            // SAFETY: rights of a part of our own mapping.
            let changed =
                unsafe { libc::mprotect(at as *mut c_void, size.bytes() as usize, libc::PROT_READ | libc::PROT_WRITE) };
            if changed != 0 {
                return Err(failed(std::io::Error::last_os_error()));
            }
        }
        Ok(area)
    }

    /// Whether it is one for these first touches.
    pub(crate) fn serves(&self, size: PageSize, bytes: u64) -> bool {
        self.size == size && self.pieces == (bytes / size.bytes()).max(1)
    }

    /// Gives all of it back, then touches each piece: ticks of all.
    pub(crate) fn touch(&self) -> f64 {
        self.advise(libc::MADV_DONTNEED);
        let together = (SLICE / self.size.bytes()).max(1);
        let mut slices = Vec::new();
        for first in (0..self.pieces).step_by(together as usize) {
            let count = together.min(self.pieces - first);
            let start = clock::fenced_now();
            (first..first + count).for_each(|piece| self.write(piece, 0));
            slices.push((clock::fenced_now().saturating_sub(start) as f64, count as usize));
        }
        undisturbed(&slices)
    }

    /// Touches each piece once more, at its second small page and at its last.
    pub(crate) fn touch_elsewhere(&self) {
        for piece in 0..self.pieces {
            self.write(piece, SMALL.min(self.size.bytes() - SMALL));
            self.write(piece, self.size.bytes() - SMALL);
        }
    }

    fn places(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.pieces).map(|piece| self.base + piece * self.step)
    }

    /// Writes the first word of a small page of a piece: its address, so that no two pages are alike and merged.
    fn write(&self, piece: u64, offset: u64) {
        let at = self.base + piece * self.step + offset;
        // SAFETY: an aligned word of our own mapping, which may be written.
        unsafe { (at as *mut u64).write_volatile(at) };
    }

    /// Advice, which a system without huge pages refuses: what comes of it is counted.
    fn advise(&self, advice: i32) {
        let bytes = (self.pieces * self.step) as usize;
        // SAFETY: a part of our own mapping, whose contents nobody needs.
        unsafe { libc::madvise(self.base as *mut c_void, bytes, advice) };
    }
}
