//! The system calls that change a memory map, as events of a recording.

use lookaside_trace::{Event, MapSource};

/// Bytes of the pages that the kernel maps.
const PAGE_BYTES: u64 = 4096;

/// The event of a system call that has succeeded, if it changed the map of `process`. `heap_start`: where its brk began.
pub(super) fn event(process: i32, number: u64, args: &[u64; 6], result: u64, heap_start: u64) -> Option<Event> {
    let pages = |bytes: u64| bytes.next_multiple_of(PAGE_BYTES);
    let [first, second, third, ..] = *args;
    match i64::try_from(number).ok()? {
        libc::SYS_mmap => {
            let source = match args[3] & libc::MAP_ANONYMOUS as u64 {
                0 => file(process, args[4], args[5]),
                _ => MapSource::Anonymous,
            };
            Some(Event::Map { addr: result, len: pages(second), prot: third as u8 & 7, source, site: 0 })
        }
        libc::SYS_munmap => Some(Event::Unmap { addr: first, len: pages(second) }),
        libc::SYS_mremap => {
            Some(Event::Remap { old_addr: first, old_len: pages(second), new_addr: result, new_len: pages(third) })
        }
        libc::SYS_mprotect | libc::SYS_pkey_mprotect => {
            Some(Event::Protect { addr: first, len: pages(second), prot: third as u8 & 7 })
        }
        // It answers with the end, moved or not.
        libc::SYS_brk if result > heap_start && heap_start > 0 => Some(Event::Brk { start: heap_start, end: result }),
        _ => None,
    }
}

/// A file by its descriptor, as the kernel's listing names it.
fn file(process: i32, descriptor: u64, offset: u64) -> MapSource {
    let path = lookaside_host::Process::of(process as u32).open_file(descriptor as i32);
    match path {
        Ok(path) => MapSource::File { path: path.to_string_lossy().into_owned(), offset },
        Err(_) => MapSource::Anonymous,
    }
}
