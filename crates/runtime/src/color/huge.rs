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
