//! Memory that recorder and reader share, in slots: records pass through it without a copy by the kernel.
//!
//! A page with a word for each slot (not zero: taken) and one that counts how often a slot became free, then the slots.
//! A process takes a slot, fills it, and names it in the pipe; the reader gives it back. Processes that die by SIGKILL
//! keep theirs.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{fcntl_add_seals, ftruncate, memfd_create, MemfdFlags, SealFlags};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};

/// Bytes of records that fit a slot.
pub(super) const SLOT_BYTES: usize = 1 << 16;
/// Slots: as much as fits a second-level cache, so that records need not go to memory and back.
const SLOTS: usize = 32;
/// Bytes before the first slot.
const FIRST: usize = 4096;
const BYTES: usize = FIRST + SLOTS * SLOT_BYTES;

/// The reader's hold on the memory.
pub(crate) struct SharedSlots {
    file: OwnedFd,
    base: NonNull<u8>,
}

// SAFETY: the mapping belongs to this value alone; what the recorder changes in it are atomics and slots that it holds.
unsafe impl Send for SharedSlots {}

impl SharedSlots {
    /// New memory, all slots free.
    pub(crate) fn new() -> io::Result<SharedSlots> {
        let file = memfd_create("lookaside", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, BYTES as u64)?;
        // The program inherits it: made shorter, it would end us by SIGBUS.
        fcntl_add_seals(&file, SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
        // SAFETY: a new mapping at an address of the kernel's choice, of a file that nobody can make shorter.
        let base = unsafe {
            mmap(std::ptr::null_mut(), BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, &file, 0)
        }?;
        match NonNull::new(base.cast::<u8>()) {
            Some(base) => Ok(SharedSlots { file, base }),
            None => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }

    /// What the recorder inherits.
    pub(crate) fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// The first `bytes` of a slot that the recorder has named; the slot is given back when they are dropped. `None`:
    /// there is no such slot, or it doesn't hold that much.
    pub(super) fn records(&mut self, slot: usize, bytes: usize) -> Option<SlotRecords<'_>> {
        // Not before it is known to be one: what is dropped here gives its slot back.
        (slot < SLOTS && bytes <= SLOT_BYTES && bytes.is_multiple_of(16)).then(|| SlotRecords {
            shared: self,
            slot,
            bytes,
        })
    }

    fn word(&self, index: usize) -> &AtomicU32 {
        debug_assert!(index <= SLOTS);
        // SAFETY: within the first page of the mapping, aligned; both sides use such words as atomics only.
        unsafe { self.base.cast::<AtomicU32>().add(index).as_ref() }
    }
}

impl Drop for SharedSlots {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which no reference outlives.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), BYTES) };
    }
}

/// The records in a slot.
pub(super) struct SlotRecords<'a> {
    shared: &'a SharedSlots,
    slot: usize,
    bytes: usize,
}

impl std::ops::Deref for SlotRecords<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: within the mapping, by the checks of `records`; the recorder has written it before it named the slot
        // in the pipe, and writes no more until it is given back.
        unsafe {
            let first = self.shared.base.add(FIRST + self.slot * SLOT_BYTES);
            std::slice::from_raw_parts(first.as_ptr(), self.bytes)
        }
    }
}

impl Drop for SlotRecords<'_> {
    fn drop(&mut self) {
        self.shared.word(self.slot).store(0, Ordering::Release);
        let freed = self.shared.word(SLOTS);
        freed.fetch_add(1, Ordering::SeqCst);
        // SAFETY: FUTEX_WAKE reads nothing but the address.
        unsafe { libc::syscall(libc::SYS_futex, freed.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::{pipe, Read, Write};
    use std::sync::Arc;

    use lookaside_trace::MapSource;

    use super::*;

    fn free_slot(slots: &SharedSlots) -> Option<usize> {
        (0..SLOTS).find(|slot| slots.word(*slot).compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst).is_ok())
    }

    /// A recorder's side, as in valgrind/wire.c: takes a slot, or waits until one is given back.
    fn take(slots: &SharedSlots) -> usize {
        loop {
            let seen = slots.word(SLOTS).load(Ordering::SeqCst);
            if let Some(slot) = free_slot(slots) {
                return slot;
            }
            let (freed, minute) = (slots.word(SLOTS), libc::timespec { tv_sec: 60, tv_nsec: 0 });
            // SAFETY: FUTEX_WAIT reads the word and the time.
            unsafe { libc::syscall(libc::SYS_futex, freed.as_ptr(), libc::FUTEX_WAIT, seen, &raw const minute) };
            assert_ne!(io::Error::last_os_error().raw_os_error(), Some(libc::ETIMEDOUT), "a wake-up was lost");
        }
    }

    #[test]
    fn only_a_slot_that_there_is_can_be_named_and_given_back() {
        let mut slots = SharedSlots::new().expect("memory");
        let bytes = rustix::fs::fstat(slots.file()).expect("a file").st_size;
        assert_eq!(bytes, 4096 + 32 * 65_536, "as valgrind/wire.c has it");
        let taken = |slots: &SharedSlots| (0..=SLOTS).map(|word| slots.word(word).load(Ordering::SeqCst)).sum::<u32>();
        (0..SLOTS).for_each(|slot| slots.word(slot).store(1, Ordering::SeqCst));
        for (slot, bytes) in [(32, 16), (33, 16), (u32::MAX as usize, 16), (0, 65_536 + 16), (0, 8), (31, 65_535)] {
            assert!(slots.records(slot, bytes).is_none(), "{bytes} bytes of slot {slot}");
        }
        assert_eq!(taken(&slots), 32);
        let last = slots.records(31, 65_536).expect("the last slot");
        assert!(last.len() == 65_536 && last.iter().all(|&byte| byte == 0));
        drop(last);
        assert_eq!((slots.word(31).load(Ordering::SeqCst), slots.word(SLOTS).load(Ordering::SeqCst)), (0, 1));
        assert_eq!(taken(&slots), 31 + 1);
    }

    #[test]
    fn the_mapping_goes_with_its_owner() {
        let slots = SharedSlots::new().expect("memory");
        // Held, so that no other file is given its number.
        let file = slots.file().try_clone().expect("a file");
        let inode = rustix::fs::fstat(&file).expect("a file").st_ino;
        let is_mapped = || {
            let text = lookaside_host::Process::own().maps_text().expect("our own map");
            let is_ours = |region: &lookaside_trace::Region| {
                let named = matches!(&region.source, MapSource::File { path, .. } if path.contains("memfd:lookaside"));
                named && region.file.is_some_and(|file| file.inode == inode)
            };
            lookaside_trace::parse_maps(&text).iter().any(is_ours)
        };
        assert!(is_mapped());
        drop(slots);
        assert!(!is_mapped());
    }

    /// For tools/check-races, too: a slot that were given back too early would be read while it is written.
    #[test]
    fn a_slot_is_not_written_while_it_is_read() {
        const FRAMES: u64 = 3_000;
        let mut slots = SharedSlots::new().expect("memory");
        // Two are left, so that recorders take them the moment that they are given back.
        (2..SLOTS).for_each(|slot| slots.word(slot).store(1, Ordering::SeqCst));
        // SAFETY: the same mapping, as a recorder has it; it lives until both have ended.
        let theirs = || SharedSlots { file: slots.file.try_clone().expect("a file"), base: slots.base };
        let (mut names, named) = pipe().expect("a pipe");
        // One file: of a copy the sanitizer would not know that it orders who writes and who reads.
        let named = Arc::new(named);
        let recorders = [1, 2].map(|recorder| {
            let theirs = std::mem::ManuallyDrop::new(theirs());
            let named = Arc::clone(&named);
            std::thread::spawn(move || {
                for frame in 0..FRAMES {
                    // The second looks again and again: nothing but the slot's own word tells it that it is free.
                    let slot = match recorder {
                        1 => take(&theirs),
                        _ => std::iter::repeat_with(|| free_slot(&theirs)).flatten().next().expect("in the end"),
                    };
                    let word = (recorder << 32 | frame).to_ne_bytes();
                    // SAFETY: within the slot, which is this thread's until it is given back.
                    let bytes = unsafe {
                        std::slice::from_raw_parts_mut(theirs.base.add(FIRST + slot * SLOT_BYTES).as_ptr(), 256)
                    };
                    bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&word));
                    (&*named).write_all(&[(slot as u64).to_ne_bytes(), word].concat()).expect("the reader waits");
                }
            })
        });
        drop(named);
        let mut frames = 0;
        let mut frame = [0; 16];
        while names.read_exact(&mut frame).is_ok() {
            // Numbers, since the sanitizer sees loads, and no comparison of slices.
            let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
            let records = slots.records(number(&frame[..8]) as usize, 256).expect("a slot");
            let whole = records.chunks_exact(8).all(|chunk| number(chunk) == number(&frame[8..]));
            assert!(whole, "written while it was read");
            frames += 1;
        }
        recorders.into_iter().for_each(|recorder| recorder.join().expect("a recorder"));
        assert_eq!(frames, 2 * FRAMES);
    }
}
