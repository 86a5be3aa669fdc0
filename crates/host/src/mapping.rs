//! Memory of this process that is mapped and given back as one.

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::mm::{madvise, mmap, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};

/// A mapping of this process; it is unmapped on drop.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is the mapping's alone, whatever thread it is used by; it gives out addresses and no references.
unsafe impl Send for Mapping {}

impl Mapping {
    /// So many bytes of zeros, to be read and written, of nobody else. Frames come when they are touched.
    ///
    /// # Errors
    /// The system has no such memory.
    pub fn new(bytes: usize) -> io::Result<Self> {
        Self::anonymous(bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
    }

    /// So many bytes of zeros with these rights and flags.
    ///
    /// # Errors
    /// The system has no such memory or addresses.
    pub fn anonymous(bytes: usize, rights: ProtFlags, flags: MapFlags) -> io::Result<Self> {
        // SAFETY: a new mapping, at a place that the system chooses.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, rights, flags) }?;
        Self::at(start.cast(), bytes)
    }

    /// So many bytes of a file's beginning, to be read and written, shared with all who have the file.
    ///
    /// # Errors
    /// The file cannot be mapped.
    pub fn shared(file: impl AsFd, bytes: usize) -> io::Result<Self> {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at a place that the system chooses.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, rights, MapFlags::SHARED, file, 0) }?;
        Self::at(start.cast(), bytes)
    }

    fn at(start: *mut u8, bytes: usize) -> io::Result<Self> {
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// Its first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Address of its first byte.
    pub fn address(&self) -> u64 {
        self.start.addr().get() as u64
    }

    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Asks for transparent huge pages in all of it, or for none.
    ///
    /// # Errors
    /// The kernel has no transparent huge pages: there are none then.
    pub fn advise_huge(&self, huge: bool) -> io::Result<()> {
        let advice = if huge { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        // SAFETY: the mapping's own addresses; the advice changes no contents.
        Ok(unsafe { madvise(self.start.as_ptr().cast(), self.bytes, advice) }?)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value's own mapping, whose addresses nobody uses any more. That it can't be unmapped does not
        // happen.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Process;

    #[test]
    fn memory_is_mapped_as_long_as_it_lives() {
        let is_mapped = |at: u64| {
            let smaps = Process::own().smaps().expect("our own");
            smaps.iter().any(|vma| vma.overlaps(&(at..at + 1)) && vma.resident_bytes > 0)
        };
        // Not readable by others' rights, so that it is an area of its own.
        let mapping =
            Mapping::anonymous(3 << 20, ProtFlags::WRITE | ProtFlags::READ | ProtFlags::EXEC, MapFlags::PRIVATE);
        let mapping = mapping.expect("memory");
        assert_eq!(mapping.bytes(), 3 << 20);
        let _ = mapping.advise_huge(false);
        // SAFETY: a word of ours.
        unsafe { mapping.start().cast::<u64>().write_volatile(7) };
        let at = mapping.address();
        assert!(is_mapped(at));
        drop(mapping);
        assert!(!is_mapped(at));
    }

    #[test]
    fn a_file_is_shared() {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(4096).expect("a size");
        let [one, other] = [(); 2].map(|()| Mapping::shared(&file, 4096).expect("a mapping"));
        // SAFETY: bytes of ours.
        let seen = unsafe {
            one.start().write_volatile(9);
            other.start().read_volatile()
        };
        assert_eq!(seen, 9);
    }

    #[test]
    fn what_cannot_be_had_is_an_error() {
        assert!(Mapping::new(usize::MAX & !0xfff).is_err());
        assert!(Mapping::new(0).is_err());
    }
}
