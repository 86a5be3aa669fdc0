//! A perf event's ring buffer: the memory that its records arrive in.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Data pages of one CPU's ring. With the page before them they make the 516 KiB that
/// `kernel.perf_event_mlock_kb` grants every user per CPU by default.
const DATA_PAGES: usize = 128;
/// The smallest ring worth having; where the limit is lower, we go down to this.
const MIN_DATA_PAGES: usize = 8;

// Offsets in `struct perf_event_mmap_page`.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// A mapped ring buffer. Only one thread may read it.
pub struct RingBuffer {
    base: NonNull<u8>,
    page_bytes: usize,
    data_bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, and reading takes `&mut self`.
unsafe impl Send for RingBuffer {}

impl RingBuffer {
    /// Bytes of records after which a wake-up is due: half of a ring.
    pub fn watermark_bytes() -> u32 {
        (MIN_DATA_PAGES * page_bytes() / 2) as u32
    }

    /// Maps the ring of `event`.
    pub fn map(event: &File) -> io::Result<RingBuffer> {
        let page_bytes = page_bytes();
        let mut pages = DATA_PAGES;
        loop {
            let len = (pages + 1) * page_bytes;
            // SAFETY: a new shared mapping at an address of the kernel's choice.
            let base = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    len,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED,
                    event.as_raw_fd(),
                    0,
                )
            };
            match NonNull::new(base.cast::<u8>()) {
                Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => {
                    return Ok(RingBuffer { base, page_bytes, data_bytes: pages * page_bytes });
                }
                _ if pages > MIN_DATA_PAGES => pages /= 2,
                _ => return Err(io::Error::last_os_error()),
            }
        }
    }

    /// Hands all complete records to `take`, each with its header, and frees their room.
    pub fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        let head = self.position(DATA_HEAD).load(Ordering::Acquire);
        let mut tail = self.position(DATA_TAIL).load(Ordering::Relaxed);
        let mut record = Vec::new();
        while head.wrapping_sub(tail) >= 8 {
            self.copy(tail, 8, &mut record);
            let len = usize::from(u16::from_le_bytes([record[6], record[7]]));
            if len < 8 || len as u64 > head.wrapping_sub(tail) {
                // The kernel writes no such record; drop the rest rather than read nonsense.
                tail = head;
                break;
            }
            self.copy(tail, len, &mut record);
            take(&record);
            tail = tail.wrapping_add(len as u64);
        }
        self.position(DATA_TAIL).store(tail, Ordering::Release);
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both positions are aligned 64-bit words in the first page of the mapping, and the
        // kernel's side accesses them atomically too.
        unsafe { &*self.base.as_ptr().add(offset).cast::<AtomicU64>() }
    }

    /// Copies `len` bytes from stream position `from`, which lie between tail and head.
    fn copy(&self, from: u64, len: usize, into: &mut Vec<u8>) {
        let start = (from % self.data_bytes as u64) as usize;
        let first = len.min(self.data_bytes - start);
        into.clear();
        into.resize(len, 0);
        // SAFETY: both parts lie in the data pages, which the kernel does not write between tail and head.
        unsafe {
            let data = self.base.as_ptr().add(self.page_bytes);
            std::ptr::copy_nonoverlapping(data.add(start), into.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, into.as_mut_ptr().add(first), len - first);
        }
    }
}

impl Drop for RingBuffer {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `map` made, and no reference into it is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.page_bytes + self.data_bytes) };
    }
}

fn page_bytes() -> usize {
    rustix::param::page_size()
}

#[cfg(test)]
pub mod tests {
    use std::os::unix::fs::FileExt;

    use rustix::fs::{memfd_create, MemfdFlags};

    use super::super::perf;
    use super::*;

    /// A file as a perf event's, in which these records have arrived: the first lies at position `from` of all that
    /// was ever written.
    pub fn file_with(from: u64, records: &[Vec<u8>]) -> File {
        let file = File::from(memfd_create("ring", MemfdFlags::CLOEXEC).unwrap());
        let mut data = vec![0xee; DATA_PAGES * page_bytes()];
        let (bytes, len) = (records.concat(), data.len() as u64);
        for (position, byte) in (from..).zip(&bytes) {
            data[(position % len) as usize] = *byte;
        }
        file.write_all_at(&data, page_bytes() as u64).unwrap();
        for (offset, position) in [(DATA_HEAD, from + bytes.len() as u64), (DATA_TAIL, from)] {
            file.write_all_at(&position.to_ne_bytes(), offset as u64).unwrap();
        }
        file
    }

    fn tail_of(file: &File) -> u64 {
        let mut position = [0; 8];
        file.read_exact_at(&mut position, DATA_TAIL as u64).unwrap();
        u64::from_ne_bytes(position)
    }

    /// A record of so many bytes.
    fn record(len: u16) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8 ^ (i >> 8) as u8).collect();
        bytes[6..8].copy_from_slice(&len.to_le_bytes());
        bytes
    }

    fn drained(ring: &mut RingBuffer) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        ring.drain(|bytes| {
            assert!(records.len() < 10, "no end");
            records.push(bytes.to_vec());
        });
        records
    }

    #[test]
    fn records_are_whole_across_the_end_of_the_ring() {
        let records = [16, 8, 24, 4000, 8].map(record);
        let ring_bytes = (DATA_PAGES * page_bytes()) as u64;
        // The fourth lies across the end, in two parts; or all before it; or the ring is new.
        for from in [7 * ring_bytes - 48 - 1000, 7 * ring_bytes - 48 - 4000, 0] {
            let file = file_with(from, &records);
            let mut ring = RingBuffer::map(&file).unwrap();
            assert_eq!(drained(&mut ring), records, "{from}");
            assert_eq!(tail_of(&file), from + 4056);
            assert!(drained(&mut ring).is_empty());
        }
    }

    #[test]
    fn nonsense_is_dropped_and_what_is_not_complete_stays() {
        let claims = |len: u16| [0, 0, 0, 0, 0, 0, len as u8, (len >> 8) as u8];
        for (name, rest, tail) in [
            ("no length", claims(0).to_vec(), 16 + 8),
            ("less than a header", claims(7).to_vec(), 16 + 8),
            ("one byte more than there is", [&claims(17)[..], &[0; 8]].concat(), 16 + 16),
            ("more than a ring", claims(u16::MAX).to_vec(), 16 + 8),
            ("no whole header", claims(8)[..7].to_vec(), 16),
        ] {
            let file = file_with(0, &[record(16), rest]);
            let mut ring = RingBuffer::map(&file).unwrap();
            assert_eq!(drained(&mut ring), [record(16)], "{name}");
            assert_eq!(tail_of(&file), tail, "{name}");
        }
    }

    #[test]
    fn a_ring_is_mapped_as_long_as_its_value_lives() {
        let file = File::from(memfd_create("ring-to-unmap", MemfdFlags::CLOEXEC).unwrap());
        file.set_len(((1 + DATA_PAGES) * page_bytes()) as u64).unwrap();
        let mapped = || -> u64 {
            let areas = lookaside_host::Process::own().maps().unwrap();
            areas.iter().filter(|area| area.name.contains("ring-to-unmap")).map(|area| area.end - area.start).sum()
        };
        let ring = RingBuffer::map(&file).unwrap();
        assert_eq!(mapped(), ((1 + DATA_PAGES) * page_bytes()) as u64);
        drop(ring);
        assert_eq!(mapped(), 0);
        assert!(RingBuffer::map(&File::open("/dev/null").unwrap()).is_err());
    }

    /// An event has one size of ring: others are refused, as larger ones are where too little memory may be locked.
    #[test]
    fn where_large_rings_are_refused_a_smaller_one_is_taken() {
        for (pages, taken) in [(128, Some(128)), (16, Some(16)), (8, Some(8)), (4, None)] {
            let event = match perf::open(0, 0, 1_000_000, RingBuffer::watermark_bytes(), perf::Begin::OnExec) {
                Ok(event) => event,
                Err(error) => return eprintln!("SKIPPED, sampling is NOT tested here: {error}"),
            };
            let len = (1 + pages) * page_bytes();
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            // SAFETY: a new mapping at an address of the kernel's choice, which nothing reads.
            let own = unsafe { libc::mmap(std::ptr::null_mut(), len, rights, libc::MAP_SHARED, event.as_raw_fd(), 0) };
            assert_ne!(own, libc::MAP_FAILED, "{pages}: {}", io::Error::last_os_error());
            let ring = RingBuffer::map(&event).map(|ring| ring.data_bytes / page_bytes());
            assert_eq!(ring.ok(), taken);
            // SAFETY: the mapping made above.
            unsafe { libc::munmap(own, len) };
        }
    }

    #[test]
    fn who_waits_is_woken_before_the_smallest_ring_is_full() {
        assert_eq!(RingBuffer::watermark_bytes() as usize, 4 * rustix::param::page_size());
    }
}
