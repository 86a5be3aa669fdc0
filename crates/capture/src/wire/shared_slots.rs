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
        (slot < SLOTS && bytes <= SLOT_BYTES && bytes.is_multiple_of(16)).then_some(SlotRecords {
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
