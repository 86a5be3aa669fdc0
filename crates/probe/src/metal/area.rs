//! Memory for chains of lines: bytes with frames of their own, and pages that all share one frame.

use std::collections::HashSet;
use std::ffi::c_void;

use lookaside_host::Mapping;
use rustix::mm::{MapFlags, ProtFlags};

use crate::metal::page_reservation::{huge_bytes_at, split};
use crate::metal::{MetalError, SPARSE_SHIFT};

/// Bytes of a huge page on every port; areas are aligned to it.
const HUGE: u64 = 2 << 20;
/// Bytes of a small page.
const SMALL: u64 = 4096;
/// A table of leaf entries (4 KiB) maps so many bytes: what a page with a shared frame can cost in memory.
const TABLE_MAPS: u64 = 2 << 20;
/// log2 of the least and most bytes of addresses with a shared frame; the steps' numbers of units have 32 bits.
const SHARED_BITS: std::ops::RangeInclusive<u32> = 30..=37;
/// log2 of the unit of [`Shared`]: a line.
pub(crate) const SHARED_SHIFT: u32 = 6;
/// log2 of the bytes of a [`Sparse`] area: at most half of what a program may have on x86-64, and twice that is
/// reserved.
const SPARSE_BITS: std::ops::RangeInclusive<u32> = 33..=45;
/// Tables that a page far from all others takes: leaf, page directory, directory of those.
const SPARSE_TABLES: u64 = 3;

/// What stands behind an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backing {
    /// Small pages.
    Small,
    /// Huge pages where there are some.
    Huge,
    /// Huge pages, or none at all.
    SurelyHuge,
    /// The same, whose mappings are split into small ones.
    Split,
}

/// Bytes with frames of their own.
#[derive(Debug)]
pub(crate) struct Own {
    mapping: Mapping,
    base: u64,
    bytes: u64,
    backing: Backing,
}

impl Own {
    /// Maps and touches all of it.
    pub(crate) fn new(bytes: u64, backing: Backing) -> Result<Self, MetalError> {
        let failed = |e: std::io::Error| MetalError::Memory {
            pages: (bytes / SMALL) as usize,
            size: lookaside_machine::PageSize::K4,
            reason: e.to_string(),
        };
        let surely = matches!(backing, Backing::SurelyHuge | Backing::Split);
        let bytes = bytes.next_multiple_of(if surely { HUGE } else { SMALL });
        let mapping = reserved(bytes + HUGE, ProtFlags::READ | ProtFlags::WRITE).map_err(failed)?;
        let base = mapping.address().next_multiple_of(HUGE);
        let advice = if backing != Backing::Small { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // Only advice: a system without huge pages refuses, and then there are small ones.
        // SAFETY: a part of our own mapping.
        unsafe { libc::madvise(base as *mut c_void, bytes as usize, advice) };
        for page in (base..base + bytes).step_by(SMALL as usize) {
            // SAFETY: an aligned word of our own mapping. Each page gets contents of its own, lest the system merge
            // them.
            unsafe { (page as *mut u64).write_volatile(page) };
        }
        if surely && huge_bytes_at(base).is_none_or(|huge| huge < bytes) {
            return Err(MetalError::Cannot("the system has no huge pages for it".into()));
        }
        if backing == Backing::Split {
            for page in (base..base + bytes).step_by(HUGE as usize) {
                split(page).map_err(failed)?;
            }
            if huge_bytes_at(base).is_none_or(|huge| huge > 0) {
                return Err(MetalError::Cannot("the system does not split huge pages".into()));
            }
        }
        Ok(Self { mapping, base, bytes, backing })
    }

    /// Whether it will do for these steps.
    pub(crate) fn serves(&self, bytes: u64, backing: Backing) -> bool {
        self.backing == backing && (bytes..=bytes.saturating_mul(2).max(HUGE)).contains(&self.bytes)
    }

    /// Links these offsets to a circular chain; gives the address of its first link.
    pub(crate) fn link(&mut self, offsets: &[u64]) -> Result<u64, MetalError> {
        debug_assert!(self.mapping.address() <= self.base);
        let place = |i: usize| {
            let offset = offsets[i % offsets.len()];
            if offset.is_multiple_of(8) && offset < self.bytes {
                Ok(self.base + offset)
            } else {
                Err(MetalError::Cannot(format!("offset {offset:#x} in an area of {:#x} bytes", self.bytes)))
            }
        };
        for i in 0..offsets.len() {
            let (this, next) = (place(i)?, place(i + 1)?);
            // SAFETY: an aligned word within our own mapping.
            unsafe { (this as *mut u64).write_volatile(next) };
        }
        place(0)
    }
}

/// Addresses whose pages are all one frame: the system's page of zeros, which stands behind memory that was only read.
/// So the data read are always hot, whatever the number of pages; only translations differ. Places in it are counted in
/// units of `1 << SHIFT` bytes.
#[derive(Debug)]
pub(crate) struct Zeros<const SHIFT: u32> {
    mapping: Mapping,
    base: u64,
    bits: u32,
    /// Regions of leaf tables that were read, where their tables are counted.
    touched: HashSet<u64>,
}

/// [`super::MemoryArea::Shared`].
pub(crate) type Shared = Zeros<SHARED_SHIFT>;
/// [`super::MemoryArea::Sparse`].
pub(crate) type Sparse = Zeros<SPARSE_SHIFT>;

impl Shared {
    /// Reserves so many addresses that their tables take at most `table_bytes` of memory.
    pub(crate) fn new(table_bytes: u64) -> Result<Self, MetalError> {
        let most = (table_bytes / SMALL * TABLE_MAPS).max(1).ilog2().min(*SHARED_BITS.end());
        Self::reserve(*SHARED_BITS.start()..=most)
    }
}

impl Sparse {
    /// Reserves as many addresses as the system gives.
    pub(crate) fn new() -> Result<Self, MetalError> {
        Self::reserve(SPARSE_BITS)
    }

    /// Bytes that the tables of all places read so far take at most, if these are read too.
    pub(crate) fn table_bytes_with(&mut self, offsets: &[u64]) -> u64 {
        self.touched.extend(offsets.iter().map(|offset| offset / TABLE_MAPS));
        self.touched.len() as u64 * SPARSE_TABLES * SMALL
    }
}

impl<const SHIFT: u32> Zeros<SHIFT> {
    fn reserve(bits: std::ops::RangeInclusive<u32>) -> Result<Self, MetalError> {
        let mut reason = String::from("too little memory for its tables");
        for bits in bits.rev() {
            match reserved(2 << bits, ProtFlags::READ) {
                Ok(mapping) => {
                    let base = mapping.address().next_multiple_of(1 << bits);
                    // SAFETY: advice about a part of our own mapping. In huge pages it would be a huge page of zeros.
                    unsafe { libc::madvise(base as *mut c_void, 1 << bits, libc::MADV_NOHUGEPAGE) };
                    return Ok(Self { mapping, base, bits, touched: HashSet::new() });
                }
                Err(e) => reason = e.to_string(),
            }
        }
        Err(MetalError::Cannot(format!("no addresses for pages that share a frame: {reason}")))
    }

    /// Bytes of addresses.
    pub(crate) fn bytes(&self) -> u64 {
        1 << self.bits
    }

    /// Its first address, and these offsets in units.
    pub(crate) fn places(&self, offsets: &[u64]) -> Result<(u64, Vec<u32>), MetalError> {
        debug_assert!(self.mapping.address() <= self.base);
        let place = |&offset: &u64| match u32::try_from(offset >> SHIFT) {
            Ok(unit) if offset % (1 << SHIFT) == 0 && offset < self.bytes() => Ok(unit),
            _ => Err(MetalError::Cannot(format!("offset {offset:#x} in {:#x} shared bytes", self.bytes()))),
        };
        Ok((self.base, offsets.iter().map(place).collect::<Result<_, _>>()?))
    }
}

/// So many addresses with these rights, for which the system promises no memory.
pub(crate) fn reserved(bytes: u64, rights: ProtFlags) -> std::io::Result<Mapping> {
    Mapping::anonymous(bytes as usize, rights, MapFlags::PRIVATE | MapFlags::NORESERVE)
}
