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
