//! Many addresses of one frame: each has a translation of its own, whatever the frame's size.
//!
//! Of pages of 1 GiB a system has few or one. One is enough: a TLB is asked by address. Each word of the frame is used
//! at one address only, so that data caches see no line by two names.

use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::os::fd::{AsRawFd, OwnedFd};

use lookaside_host::Mapping;
use lookaside_machine::PageSize;
use rustix::mm::ProtFlags;

use crate::metal::area::reserved;
use crate::metal::hugetlb_pool::gigantic_page;
use crate::metal::MetalError;

/// Bits of a page's number that may be chosen: an eighth of a program's addresses on x86-64. Second levels that hold
/// pages of 1 GiB have up to 128 sets (Golden Cove), and the index known of so many takes 14 bits (Skylake).
pub(crate) const PAGE_BITS: u32 = 14;
/// Bytes of a data-cache line, and of a link.
const LINE: u64 = 64;
/// See [`LINE`].
const WORD: u64 = 8;

/// A frame, and addresses for it.
#[derive(Debug)]
pub(crate) struct FrameAliases {
    frame: OwnedFd,
    /// log2 of the frame's bytes.
    shift: u32,
    mapping: Mapping,
    base: u64,
    /// Pages at which the frame is mapped.
    mapped: HashSet<u64>,
}

impl FrameAliases {
    /// Of a page of 1 GiB from the system's pool, which goes back when this is dropped.
    ///
    /// # Errors
    /// There is none, or there are too few addresses.
    pub(crate) fn gigantic() -> Result<Self, MetalError> {
        Self::of(gigantic_page()?, PageSize::G1.shift())
    }

    /// Of a file of `1 << shift` bytes.
    fn of(frame: OwnedFd, shift: u32) -> Result<Self, MetalError> {
        let bytes = 1u64 << (PAGE_BITS + shift);
        // Twice as many surely hold an aligned half.
        let mapping = reserved(2 * bytes, ProtFlags::empty())
            .map_err(|e| MetalError::Cannot(format!("no addresses for {} pages: {e}", 1 << PAGE_BITS)))?;
        let base = mapping.address().next_multiple_of(bytes);
        Ok(Self { frame, shift, mapping, base, mapped: HashSet::new() })
    }

    /// Maps the frame at a page, unless it is there.
    fn map(&mut self, page: u64) -> Result<(), MetalError> {
        debug_assert!(self.mapping.address() <= self.base && page >> PAGE_BITS == 0);
        if !self.mapped.insert(page) {
            return Ok(());
        }
        let (bytes, access) = (1usize << self.shift, libc::PROT_READ | libc::PROT_WRITE);
        let (at, fd) = ((self.base + (page << self.shift)) as *mut c_void, self.frame.as_raw_fd());
        // SAFETY: over a part of our own mapping: `page` is below `1 << PAGE_BITS`.
        let at = unsafe { libc::mmap(at, bytes, access, libc::MAP_SHARED | libc::MAP_FIXED, fd, 0) };
        if at == libc::MAP_FAILED {
            self.mapped.remove(&page);
            let reason = std::io::Error::last_os_error();
            return Err(MetalError::Cannot(format!("address {} of one frame: {reason}", self.mapped.len() + 1)));
        }
        Ok(())
    }

    /// Links the pages to a circular chain, each read at lines of its own; gives the address of its first link.
    pub(crate) fn link(&mut self, pages: &[u64]) -> Result<u64, MetalError> {
        let mut uses: HashMap<u64, (u64, u64)> = HashMap::with_capacity(pages.len());
        let mut lines = 0;
        let mut offsets = Vec::with_capacity(pages.len());
        for &page in pages {
            let page = page & ((1 << PAGE_BITS) - 1);
            let (line, times) = uses.entry(page).or_insert((0, 0));
            if *times % (LINE / WORD) == 0 {
                *line = lines;
                lines += 1;
            }
            offsets.push((page << self.shift) + *line * LINE + *times % (LINE / WORD) * WORD);
            *times += 1;
        }
        if lines * LINE > 1 << self.shift {
            return Err(MetalError::Cannot(format!("a chain of {} steps in one frame", pages.len())));
        }
        self.link_at(&offsets)
    }

    /// Links these offsets, of different words of the frame, to a circular chain; gives the address of its first link.
    pub(crate) fn link_at(&mut self, offsets: &[u64]) -> Result<u64, MetalError> {
        let in_frame = (1u64 << self.shift) - 1;
        let mut words: Vec<u64> = offsets.iter().map(|offset| offset & in_frame).collect();
        words.sort_unstable();
        words.dedup();
        let lies = |offset: &u64| offset.is_multiple_of(WORD) && offset >> self.shift < 1 << PAGE_BITS;
        if offsets.is_empty() || words.len() < offsets.len() || !offsets.iter().all(lies) {
            let reason = format!("{} offsets of {} words of one frame", offsets.len(), words.len());
            return Err(MetalError::Cannot(reason));
        }
        for offset in offsets {
            self.map(offset >> self.shift)?;
        }
        for (i, offset) in offsets.iter().enumerate() {
            let next = self.base + offsets[(i + 1) % offsets.len()];
            // SAFETY: an aligned word of a page that was just mapped, with a frame behind it.
            unsafe { ((self.base + offset) as *mut u64).write_volatile(next) };
        }
        Ok(self.base + offsets[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{ftruncate, memfd_create, MemfdFlags};

    /// Addresses of a chain, in the order of its links.
    fn walked(start: u64) -> Vec<u64> {
        let mut at = start;
        let mut seen = Vec::new();
        loop {
            seen.push(at);
            // SAFETY: a link of the chain under test, which is mapped.
            at = unsafe { (at as *const u64).read_volatile() };
            if at == start || seen.len() > 10_000 {
                return seen;
            }
        }
    }

    #[test]
    fn a_chain_goes_through_all_pages_though_they_are_one_frame() {
        let shift = 16;
        let frame = memfd_create("test", MemfdFlags::CLOEXEC).expect("a file");
        ftruncate(&frame, 1 << shift).expect("its size");
        let mut aliases = FrameAliases::of(frame, shift).expect("addresses");
        // One page often, the others once.
        let pages: Vec<u64> = (0..900).map(|i| if i % 9 == 0 { 7 } else { (i * 37 + 11) % (1 << PAGE_BITS) }).collect();
        let start = aliases.link(&pages).expect("a chain");
        let seen: Vec<u64> = walked(start).iter().map(|at| (at - aliases.base) >> shift).collect();
        assert_eq!(seen, pages);
        // The same word by two names would cut the chain short; there are no more words; nothing lies beyond.
        assert!(aliases.link_at(&[64, 128, (5 << shift) + 64]).is_err());
        assert!(aliases.link_at(&[64, 1 << (shift + PAGE_BITS)]).is_err());
        assert!(aliases.link_at(&[]).is_err());
        assert!(aliases.link(&(0..1100).collect::<Vec<u64>>()).is_err());
        let start = aliases.link_at(&[64, (5 << shift) + 128, (3 << shift) + 8]).expect("a chain");
        assert_eq!(walked(start).len(), 3);
    }
}
