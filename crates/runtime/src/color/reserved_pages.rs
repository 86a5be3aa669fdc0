//! A range of addresses that pages of all colours are picked from. Nothing in it can be touched but what was opened.

use std::ptr::NonNull;

use super::error::HeapError;

/// Smallest and largest areas that are tried: 2^14 pages hold all sets of any index known several times, 2^26 small
/// pages are 256 GiB of addresses, which cost nothing.
pub(crate) const LEAST_PAGES: u64 = 1 << 14;
pub(crate) const MOST_PAGES: u64 = 1 << 26;

/// Miri (tools/check-miri) maps memory that can be used at once, and knows no other call on it, nor some of those on
/// locks.
pub(crate) const INTERPRETED: bool = cfg!(miri);

/// Reserved addresses; they are given back when it is dropped.
#[derive(Debug)]
pub(crate) struct ReservedPages {
    /// What was mapped.
    map: NonNull<u8>,
    map_bytes: usize,
    /// First page that may be used.
    start: usize,
    pub(crate) pages: u64,
    pub(crate) shift: u32,
}

fn error(what: &str) -> HeapError {
    HeapError::System(format!("{what}: {}", std::io::Error::last_os_error()))
}

impl ReservedPages {
    /// Reserves addresses, the first page's number a multiple of `align_pages`, a power of two, so that the same pages
    /// are picked wherever the system puts it.
    pub(crate) fn reserve(pages: u64, shift: u32, align_pages: u64) -> Result<Self, HeapError> {
        let too_large = || HeapError::System(format!("{pages} pages are more than there are addresses"));
        let bytes = pages.checked_shl(shift).filter(|bytes| bytes >> shift == pages).ok_or_else(too_large)?;
        let align =
            align_pages.checked_shl(shift).filter(|align| align >> shift == align_pages).ok_or_else(too_large)?;
        let map_bytes = bytes.checked_add(align).and_then(|sum| usize::try_from(sum).ok()).ok_or_else(too_large)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let (access, flags) = match INTERPRETED {
            true => (libc::PROT_READ | libc::PROT_WRITE, flags),
            false => (libc::PROT_NONE, flags | libc::MAP_NORESERVE),
        };
        // SAFETY: a new mapping, wherever the system puts it.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), map_bytes, access, flags, -1, 0) };
        if map == libc::MAP_FAILED {
            return Err(error(&format!("{map_bytes} bytes of addresses cannot be reserved")));
        }
        let map = NonNull::new(map.cast::<u8>()).ok_or_else(too_large)?;
        let start = (map.as_ptr() as usize).next_multiple_of(align as usize);
        let area = Self { map, map_bytes, start, pages, shift };
        if INTERPRETED {
            return Ok(area);
        }
        // A huge page would translate pages of all colours by one entry; where huge pages are coloured they are wanted.
        let advice = if area.are_huge() { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: the mapping made above. A system without huge pages refuses the advice, and has none to keep away.
        unsafe { libc::madvise(start as *mut libc::c_void, bytes as usize, advice) };
        Ok(area)
    }

    /// Its pages are larger than the system's own.
    pub(crate) fn are_huge(&self) -> bool {
        self.shift > 12
    }

    /// First address, and that behind the last.
    pub(crate) fn ends(&self) -> (u64, u64) {
        (self.start as u64, self.start as u64 + (self.pages << self.shift))
    }

    /// Number of the first page.
    pub(crate) fn first_vpn(&self) -> u64 {
        (self.start >> self.shift) as u64
    }

    /// Makes pages usable and gives them memory at once; keeps them in memory if told.
    pub(crate) fn open(&self, vpn: u64, pages: u64, locked: bool) -> Result<(), HeapError> {
        if INTERPRETED {
            return Ok(());
        }
        let (start, bytes) = ((vpn << self.shift) as *mut libc::c_void, (pages << self.shift) as usize);
        // SAFETY: pages of this area.
        if unsafe { libc::mprotect(start, bytes, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
            return Err(error(&format!("{pages} pages cannot be opened")));
        }
        // SAFETY: as above; writing begins each page, the first time with zeros.
        if unsafe { libc::madvise(start, bytes, libc::MADV_POPULATE_WRITE) } != 0 {
            let refused = std::io::Error::last_os_error();
            // Linux before 5.14 does not know it: touch them.
            if refused.raw_os_error() != Some(libc::EINVAL) {
                return Err(HeapError::System(format!("no memory for {pages} pages: {refused}")));
            }
            for page in 0..pages {
                // SAFETY: a page of the area, opened above.
                unsafe { std::ptr::write_volatile((start as usize + ((page << self.shift) as usize)) as *mut u8, 0) };
            }
        }
        if self.are_huge() {
            // Where the fault got small pages, as where huge ones are had by `khugepaged` alone. Before Linux 6.1 it is
            // refused; whether all pages are huge is looked at when all are opened. SAFETY: as above.
            unsafe { libc::madvise(start, bytes, libc::MADV_COLLAPSE) };
        }
        // SAFETY: as above.
        if locked && unsafe { libc::mlock(start, bytes) } != 0 {
            return Err(error(&format!("{pages} pages cannot be locked in memory (see ulimit -l)")));
        }
        Ok(())
    }

    /// Closes pages again: they keep their memory, and any access faults.
    pub(crate) fn guard(&self, vpn: u64, pages: u64, closed: bool) -> Result<(), HeapError> {
        if INTERPRETED {
            return Ok(());
        }
        let (start, bytes) = ((vpn << self.shift) as *mut libc::c_void, (pages << self.shift) as usize);
        let may = if closed { libc::PROT_NONE } else { libc::PROT_READ | libc::PROT_WRITE };
        // SAFETY: pages of this area.
        match unsafe { libc::mprotect(start, bytes, may) } {
            0 => Ok(()),
            _ => Err(error("a guard page cannot be set")),
        }
    }
}

impl Drop for ReservedPages {
    fn drop(&mut self) {
        // SAFETY: what was mapped; whoever drops it has nothing in it any more.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.map_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_begins_at_a_multiple_of_what_was_asked_for_and_is_given_back() {
        for (pages, shift, align) in [(64, 12, 64), (100, 12, 1), (3, 21, 16)] {
            let area = ReservedPages::reserve(pages, shift, align).expect("addresses");
            let start = area.first_vpn() << shift;
            assert_eq!((area.ends(), area.first_vpn() % align), ((start, start + (pages << shift)), 0));
            assert_eq!(area.are_huge(), shift == 21);
        }
        // Where one was the next may be, once it has ended. Other tests ask for addresses too.
        let starts: Vec<u64> =
            (0..100).map(|_| ReservedPages::reserve(64, 12, 1).expect("addresses").first_vpn()).collect();
        assert!(starts.windows(2).any(|pair| pair[0] == pair[1]), "none was given back");
    }

    #[test]
    fn more_pages_than_there_are_addresses_are_refused() {
        let refused =
            |pages, align| ReservedPages::reserve(pages, 12, align).map(|_| ()).expect_err("none").to_string();
        for (pages, align) in [(1 << 52, 1), (1 << 60, 1), (1, 1 << 52), (u64::MAX >> 12, 1)] {
            assert_eq!(refused(pages, align), format!("{pages} pages are more than there are addresses"));
        }
        assert!(refused(1 << 50, 1)
            .ends_with("bytes of addresses cannot be reserved: Cannot allocate memory (os error 12)"));
    }

    #[test]
    fn what_is_opened_can_be_used_and_what_is_guarded_cannot() {
        let area = ReservedPages::reserve(8, 12, 1).expect("addresses");
        let rights = |page: u64| {
            let at = (area.first_vpn() + page) << 12;
            let vmas = lookaside_host::Process::own().maps().expect("its mappings");
            vmas.into_iter().find(|vma| vma.start <= at && at < vma.end).map(|vma| vma.rights)
        };
        let all = || (0..8).map(|page| rights(page).expect("it is mapped")).collect::<Vec<_>>().join(" ");
        assert_eq!(all(), "---p ---p ---p ---p ---p ---p ---p ---p");
        area.open(area.first_vpn() + 2, 3, false).expect("memory");
        assert_eq!(all(), "---p ---p rw-p rw-p rw-p ---p ---p ---p");
        area.guard(area.first_vpn() + 3, 1, true).expect("a guard");
        assert_eq!(all(), "---p ---p rw-p ---p rw-p ---p ---p ---p");
        area.guard(area.first_vpn() + 3, 1, false).expect("no guard");
        assert_eq!(all(), "---p ---p rw-p rw-p rw-p ---p ---p ---p");
        let nowhere = area.guard(1 << 40, 1, true).map_err(|error| error.to_string());
        assert_eq!(nowhere, Err("a guard page cannot be set: Cannot allocate memory (os error 12)".into()));
    }
}
