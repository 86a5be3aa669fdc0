//! Which pages the processor walked the page tables for: exact misses of the last TLB level, without a PMU and without
//! a
//! timer.
//!
//! A walk sets the referenced bit of a page's entry in the tables; an access whose translation is still in a TLB does
//! not look there. Linux clears the bits of a process (`clear_refs`) without emptying the TLBs, and counts those that
//! are
//! set in each of its mappings (`smaps`; Documentation/filesystems/proc.rst).

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Seek, Write};
use std::ops::Range;

use crate::HostError;

/// What is read of the mappings at once, about two of them: the system writes up no more than it has to.
const READ_BYTES: usize = 1 << 10;
const CLEAR_REFS: &str = "/proc/self/clear_refs";
const SMAPS: &str = "/proc/self/smaps";

/// The referenced bits of this process's pages.
#[derive(Debug)]
pub struct ReferencedBits {
    clear: File,
    maps: File,
    /// Their text, in a buffer that is used again, and what it said.
    text: Vec<u8>,
    mappings: Vec<(Range<u64>, u64)>,
}

impl ReferencedBits {
    /// Those of this process. The kernel needs `CONFIG_PROC_PAGE_MONITOR`.
    ///
    /// # Errors
    /// The system says nothing of them, or they may not be cleared.
    pub fn here() -> Result<Self, HostError> {
        let clear = File::options().write(true).open(CLEAR_REFS).map_err(|error| HostError::io(CLEAR_REFS, error))?;
        let maps = File::open(SMAPS).map_err(|error| HostError::io(SMAPS, error))?;
        let mut bits = Self { clear, maps, text: Vec::new(), mappings: Vec::new() };
        match bits.look(1)?.is_empty() {
            true => Err(HostError::io(SMAPS, Error::other("says of no mapping what is referenced"))),
            false => Ok(bits),
        }
    }

    /// Clears them, but for those of files' pages. Translations stay in the TLBs.
    ///
    /// # Errors
    /// The system refuses.
    pub fn clear(&mut self) -> Result<(), HostError> {
        // 2: pages without a file.
        self.clear.write_all(b"2").map_err(|error| HostError::io(CLEAR_REFS, error))
    }

    /// What the system says of the mappings that begin below this address, and perhaps some more: where they are, in
    /// order, and bytes in each that are referenced. Some 4 us for each, more for large ones (the development machine).
    ///
    /// # Errors
    /// The system refuses.
    pub fn look(&mut self, until: u64) -> Result<&[(Range<u64>, u64)], HostError> {
        self.maps.rewind().map_err(|error| HostError::io(SMAPS, error))?;
        self.mappings.clear();
        let (mut length, mut parsed) = (0, 0);
        while self.mappings.last().is_none_or(|(at, _)| at.end < until) {
            if self.text.len() < length + READ_BYTES {
                self.text.resize(length + READ_BYTES, 0);
            }
            match self.maps.read(&mut self.text[length..length + READ_BYTES]) {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(HostError::io(SMAPS, error)),
            }
            while let Some((mapping, end)) = mapping(&self.text[parsed..length]) {
                self.mappings.push(mapping);
                parsed += end;
            }
        }
        Ok(&self.mappings)
    }
}

/// The first mapping in the text of smaps, bytes referenced in it, and where the line that says so ends; `None`: there
/// is
/// none, or not all of it.
fn mapping(text: &[u8]) -> Option<((Range<u64>, u64), usize)> {
    let (mut at, mut end) = (None, 0);
    for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        end += line.len();
        if let Some(kb) = line.strip_prefix(b"Referenced:") {
            let kb =
                std::str::from_utf8(kb).ok().and_then(|kb| kb.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
            if let (Some(at), Some(bytes)) = (at.take(), kb.and_then(|kb| kb.checked_mul(1024))) {
                return Some(((at, bytes), end));
            }
        } else if !line.first().is_some_and(u8::is_ascii_uppercase) {
            at = range(line);
        }
    }
    None
}

/// `55d0c8a00000-55d0c8a21000 rw-p …`.
fn range(line: &[u8]) -> Option<Range<u64>> {
    let line = std::str::from_utf8(line.split(|byte| *byte == b' ').next()?).ok()?;
    let (start, end) = line.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(number(start)?..number(end)?).filter(|at| at.start <= at.end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustix::mm::{MapFlags, ProtFlags};

    use super::*;
    use crate::Mapping;

    const TEXT: &str = "55d0c8a00000-55d0c8a21000 rw-p 00000000 00:00 0                          [heap]\n\
                        Size:                132 kB\nKernelPageSize:        4 kB\nReferenced:          124 kB\n\
                        AnonHugePages:         0 kB\nVmFlags: rd wr mr mw me ac\n\
                        7f0000000000-7f0000003000 r--p 00000000 fe:00 1234       /lib/Referenced: 8 kB\n\
                        Referenced:            8 kB\n";

    /// All that the text says, piece by piece.
    fn mappings(text: &[u8]) -> Vec<(Range<u64>, u64)> {
        let mut parsed = 0;
        std::iter::from_fn(|| {
            let (found, end) = mapping(&text[parsed..])?;
            parsed += end;
            Some(found)
        })
        .collect()
    }

    #[test]
    fn the_systems_text_is_read_as_far_as_it_goes() {
        let all = [(0x55d0_c8a0_0000..0x55d0_c8a2_1000, 124 << 10), (0x7f00_0000_0000..0x7f00_0000_3000, 8 << 10)];
        assert_eq!(mappings(TEXT.as_bytes()), all);
        for cut in 0..TEXT.len() {
            let whole = TEXT[..cut].matches("\nReferenced:").count();
            let some = mappings(&TEXT.as_bytes()[..cut]);
            assert!(some.len() <= whole && some == all[..some.len()], "{cut}: {some:?}");
        }
    }

    #[test]
    fn a_touched_page_is_referenced_until_the_bits_are_cleared() {
        let mut bits = match ReferencedBits::here() {
            Ok(bits) => bits,
            Err(error) => return eprintln!("LEFT OUT: {error}"),
        };
        // Executable, so that it is an area of its own.
        let rights = ProtFlags::READ | ProtFlags::WRITE | ProtFlags::EXEC;
        let memory = Mapping::anonymous(4 << 12, rights, MapFlags::PRIVATE).expect("memory");
        let _ = memory.advise_huge(false);
        let mut referenced = |clear: bool| {
            if clear {
                bits.clear().expect("cleared");
            }
            let mappings = bits.look(u64::MAX).expect("mappings");
            mappings.iter().find(|(at, _)| at.start == memory.address()).expect("the area").1
        };
        assert_eq!(referenced(false), 0);
        // SAFETY: a word of ours.
        unsafe { memory.start().write_volatile(1) };
        assert_eq!(referenced(false), 4096);
        assert_eq!(referenced(true), 0);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in proptest::collection::vec(
            prop_oneof!["[0-9a-f]{1,17}-[0-9a-f]{1,17} r\n?", "Referenced: *[0-9]{1,21} ?kB\n?", "\\PC*\n"], 0..9,
        )) {
            mappings(text.concat().as_bytes());
        }
    }
}
