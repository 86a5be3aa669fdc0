//! Whether pages that were asked to be huge are.

use lookaside_host::{HostError, Process, TransparentHugePages};

use super::error::HeapError;

/// Bytes of one of the system's huge pages; `None`: it has none to give to anonymous memory.
fn page_bytes() -> Option<u64> {
    TransparentHugePages::here().page_bytes().ok()
}

/// Bytes of these addresses that huge pages translate, as the system counts them now.
pub(crate) fn bytes_in(start: u64, end: u64) -> Result<u64, HeapError> {
    let smaps = Process::own().smaps().map_err(|e: HostError| HeapError::System(e.to_string()))?;
    let inside = smaps.into_iter().filter(|vma| vma.start >= start && vma.end <= end);
    Ok(inside.map(|vma| vma.anonymous_huge_bytes).sum())
}

/// That all `bytes` of pages between these addresses are huge ones of `page` bytes.
///
/// # Errors
/// They are not: pages of that size would lie in other sets than those that they were picked for.
pub(crate) fn check(start: u64, end: u64, page: u64, bytes: u64) -> Result<(), HeapError> {
    let system = page_bytes();
    if system != Some(page) {
        let has = system.map_or("not there".into(), |bytes| format!("of {} KiB", bytes >> 10));
        let why = format!("a heap of {} KiB pages: the system's transparent huge pages are {has}", page >> 10);
        return Err(HeapError::System(why));
    }
    let huge = bytes_in(start, end)?;
    if huge == bytes {
        return Ok(());
    }
    Err(HeapError::System(format!(
        "a heap of {} KiB pages: only {} of its {} KiB got huge pages, the rest lies in other sets (see \
         /sys/kernel/mm/transparent_hugepage/enabled and free memory)",
        page >> 10,
        huge >> 10,
        bytes >> 10
    )))
}

#[cfg(test)]
mod tests {
    use lookaside_host::Mapping;

    use super::*;

    #[test]
    fn pages_that_are_not_huge_are_said_with_how_many_are() {
        let small = Mapping::new(4 << 20).expect("memory");
        let _ = small.advise_huge(false);
        let (start, end) = (small.address(), small.address() + (4 << 20));
        let system = TransparentHugePages::here().page_bytes().ok();
        let refused = |page: u64, bytes| check(start, end, page, bytes).expect_err("small pages").to_string();
        let has = system.map_or("not there".into(), |bytes| format!("of {} KiB", bytes / 1024));
        assert_eq!(
            refused(3 << 20, 3 << 20),
            format!("a heap of 3072 KiB pages: the system's transparent huge pages are {has}")
        );
        let Some(page) = system else { return };
        assert_eq!(bytes_in(start, end), Ok(0));
        // Another one's are not its own, nor are those in a part of it.
        let huge = Mapping::new(8 << 20).expect("memory");
        let _ = huge.advise_huge(true);
        for at in (0..8 << 20).step_by(4096) {
            // SAFETY: within the mapping.
            unsafe { huge.start().as_ptr().add(at).write_volatile(1) };
        }
        let of = |from: u64, to: u64| bytes_in(huge.address() + from, huge.address() + to).expect("its mappings");
        match of(0, 8 << 20) {
            0 => eprintln!("LEFT OUT: the system gave no huge page"),
            bytes => {
                assert!(bytes.is_multiple_of(page) && bytes <= 8 << 20, "{bytes}");
                assert_eq!((of(4096, 8 << 20), of(0, (8 << 20) - 4096), bytes_in(start, end)), (0, 0, Ok(0)));
            }
        }
        let said = format!("a heap of {} KiB pages: only 0 of its 4096 KiB got huge pages", page / 1024);
        assert!(refused(page, 4 << 20).starts_with(&said), "{}", refused(page, 4 << 20));
        assert_eq!(check(start, end, page, 0), Ok(()), "none of none");
    }
}
