//! The system calls that change a memory map, as events of a recording.

use lookaside_trace::{Event, MapSource};

/// Bytes of the pages that the kernel maps.
const PAGE_BYTES: u64 = 4096;

/// The event of a system call that has succeeded, if it changed the map of `process`. `heap_start`: where its brk
/// began.
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

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    const HEAP: u64 = 0x5000;

    /// What a call of this process tells.
    fn told(number: libc::c_long, args: [u64; 6], result: u64) -> Option<Event> {
        event(std::process::id() as i32, number as u64, &args, result, HEAP)
    }

    #[test]
    fn calls_that_change_the_map_are_told_in_whole_pages() {
        let anonymous = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        // Bits of the protection beyond the three say how to map (PROT_SEM, PROT_GROWSDOWN).
        let (read_write, read_execute) = (0x3 | 0x8, 0x5 | 0x100_0000);
        for (number, args, result, expected) in [
            (
                libc::SYS_mmap,
                [0, 5000, read_write, anonymous, u64::MAX, 0],
                0x7000,
                Event::Map { addr: 0x7000, len: 8192, prot: 3, source: MapSource::Anonymous, site: 0 },
            ),
            (libc::SYS_munmap, [0x7000, 1, 9, 9, 9, 9], 0, Event::Unmap { addr: 0x7000, len: 4096 }),
            (
                libc::SYS_mremap,
                [0x7000, 4096, 4097, 1, 0, 0],
                0x9000,
                Event::Remap { old_addr: 0x7000, old_len: 4096, new_addr: 0x9000, new_len: 8192 },
            ),
            (
                libc::SYS_mprotect,
                [0x7000, 4097, read_execute, 0, 0, 0],
                0,
                Event::Protect { addr: 0x7000, len: 8192, prot: 5 },
            ),
            (
                libc::SYS_pkey_mprotect,
                [0x7000, 1, read_write, 7, 0, 0],
                0,
                Event::Protect { addr: 0x7000, len: 4096, prot: 3 },
            ),
        ] {
            assert_eq!(told(number, args, result), Some(expected));
        }
        assert_eq!(told(libc::SYS_getpid, [0x7000; 6], 0x7000), None);
        assert_eq!(told(-1, [0x7000; 6], 0x7000), None);
    }

    #[test]
    fn a_mapped_file_is_named_by_its_descriptor() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let source = |descriptor: u64| match told(
            libc::SYS_mmap,
            [0, 4096, 1, libc::MAP_PRIVATE as u64, descriptor, 0x2000],
            0x7000,
        ) {
            Some(Event::Map { addr: 0x7000, len: 4096, prot: 1, source, site: 0 }) => source,
            other => panic!("{other:?}"),
        };
        let path = file.path().canonicalize().expect("a path").to_string_lossy().into_owned();
        assert_eq!(source(file.as_file().as_raw_fd() as u64), MapSource::File { path, offset: 0x2000 });
        // It is closed by now.
        assert_eq!(source(u64::from(u32::MAX)), MapSource::Anonymous);
    }

    #[test]
    fn a_heap_is_what_lies_above_where_it_began() {
        let brk = |result, heap_start| event(1, libc::SYS_brk as u64, &[0; 6], result, heap_start);
        assert_eq!(brk(HEAP + 1, HEAP), Some(Event::Brk { start: HEAP, end: HEAP + 1 }));
        for (result, heap_start) in [(HEAP, HEAP), (HEAP - 1, HEAP), (HEAP, 0)] {
            assert_eq!(brk(result, heap_start), None, "{result:#x} {heap_start:#x}");
        }
    }
}
