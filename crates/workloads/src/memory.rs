//! The memory of a workload: arrays in mappings of their own.

use std::io;
use std::marker::PhantomData;
use std::ops::Deref;

use lookaside_trace::Kind;

use crate::chunked::{Chunked, Chunks};
use crate::mapping::{ArrayMapping, Pages, ALIGN_BYTES};
use crate::observer::{AccessObserver, Plain};
use crate::stream::{BASE, PAGE_BYTES};

/// What part of a process an array of its stream lies in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArraySection {
    /// An anonymous mapping.
    #[default]
    Mapping,
    /// Constants or data of a file.
    Data,
    /// The brk heap.
    Heap,
    /// The stack.
    Stack,
}

/// One array's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayMemory {
    /// What it holds.
    pub name: &'static str,
    /// Its first byte in this process; of a program whose arrays lie in chunks, the first one's.
    pub start: u64,
    /// Its first byte in the stream.
    pub stream_start: u64,
    /// Its bytes: whole pages, but of a program whose arrays lie in chunks those of the array alone, which shares pages
    /// with others.
    pub bytes: u64,
    /// Where its stream has it.
    pub section: ArraySection,
    /// It is the one array of the workload that PT-Baker touches (section 5.2), by its size in Table 5.2.
    pub main: bool,
}

/// The arrays of one workload: gives each its mapping, and its place in the stream.
#[derive(Debug)]
pub struct WorkloadMemory {
    pages: Pages,
    next: u64,
    regions: Vec<ArrayMemory>,
    /// What chunked arrays lie in; `None`: in mappings.
    given: Option<Chunks>,
    /// Chunks of these so far.
    chunks: usize,
}

impl WorkloadMemory {
    /// None yet.
    pub fn new(pages: Pages) -> Self {
        Self { pages, next: BASE, regions: Vec::new(), given: None, chunks: 0 }
    }

    /// None yet; chunked ones will lie in these.
    ///
    /// # Safety
    /// They are as [`Chunks`] says, writable, and nobody else's as long as the arrays live.
    pub unsafe fn in_chunks(given: Chunks) -> Self {
        Self { given: Some(given), ..Self::new(Pages::Base) }
    }

    /// Chunks that the chunked arrays lie in.
    pub fn chunks(&self) -> usize {
        self.chunks
    }

    /// All arrays so far.
    pub fn regions(&self) -> &[ArrayMemory] {
        &self.regions
    }

    /// An array of zeros, all of it touched: no page of it faults later.
    ///
    /// # Errors
    /// The system has no such memory, or no huge pages where these are asked for.
    pub fn array<T: Plain>(&mut self, name: &'static str, len: u64, main: bool) -> io::Result<Array<T>> {
        let bytes = whole_pages::<T>(len)?;
        let at = self.next;
        let mapping = ArrayMapping::new(usize::try_from(bytes).map_err(|_| too_large())?, self.pages)?;
        let start = mapping.start().as_ptr() as u64;
        self.next = next_array(at, bytes);
        self.regions.push(ArrayMemory { name, start, stream_start: at, bytes, section: ArraySection::Mapping, main });
        Ok(Array { mapping, len: len as usize, at, holds: PhantomData })
    }

    /// As [`Self::array`], in chunks: those that were given, else pages.
    ///
    /// # Errors
    /// As there, or too few chunks were given.
    pub fn chunked<T: Plain>(&mut self, name: &'static str, len: u64, main: bool) -> io::Result<Chunked<T>> {
        let bytes = whole_pages::<T>(len)?;
        let (first, at) = (self.chunks, self.next);
        let array = match &self.given {
            None => {
                self.chunks += (bytes / PAGE_BYTES) as usize;
                Chunked::mapped(bytes as usize, self.pages, (len, first, at))?
            }
            Some(given) => {
                self.chunks += (len * size_of::<T>() as u64).div_ceil(given.bytes as u64) as usize;
                let own = given.at.get(first..self.chunks).ok_or(io::ErrorKind::OutOfMemory)?;
                // SAFETY: the contract of `in_chunks`; nobody else takes these.
                unsafe { Chunked::given(own, given.bytes, (len, first, at)) }
            }
        };
        let start = array.start();
        self.next = next_array(at, bytes);
        self.regions.push(ArrayMemory { name, start, stream_start: at, bytes, section: ArraySection::Mapping, main });
        Ok(array)
    }

    /// As [`Self::array`], at a given place of the stream, which other arrays' pages may touch. It is no main one.
    ///
    /// # Errors
    /// As there.
    pub fn array_at<T: Plain>(
        &mut self,
        name: &'static str,
        len: u64,
        (section, at): (ArraySection, u64),
    ) -> io::Result<Array<T>> {
        let mapping = ArrayMapping::new(usize::try_from(whole_pages::<T>(len)?).map_err(|_| too_large())?, self.pages)?;
        let (start, bytes) = (mapping.start().as_ptr() as u64, len * size_of::<T>() as u64);
        self.regions.push(ArrayMemory { name, start, stream_start: at, bytes, section, main: false });
        Ok(Array { mapping, len: len as usize, at, holds: PhantomData })
    }
}

/// Where the next array begins in the stream: a page apart at least, so that mappings never join into one.
fn next_array(at: u64, bytes: u64) -> u64 {
    (at + bytes + PAGE_BYTES).next_multiple_of(ALIGN_BYTES)
}

fn too_large() -> io::Error {
    io::ErrorKind::OutOfMemory.into()
}

/// Bytes of the pages that an array takes.
fn whole_pages<T>(len: u64) -> io::Result<u64> {
    let bytes = len.max(1).checked_mul(size_of::<T>() as u64).ok_or_else(too_large)?;
    bytes.checked_next_multiple_of(PAGE_BYTES).ok_or_else(too_large)
}

/// An array whose accesses can be seen. What builds the input and what sums up the result reads and writes it as a
/// slice.
#[derive(Debug)]
pub struct Array<T> {
    mapping: ArrayMapping,
    len: usize,
    at: u64,
    holds: PhantomData<T>,
}

impl<T: Plain> Array<T> {
    /// Element `i`, as one load.
    #[inline(always)]
    pub fn load(&self, i: u64, observer: &mut impl AccessObserver) -> T {
        observer.access(Kind::Load, self.addr(i));
        self[i as usize]
    }

    /// Sets element `i`, as one store.
    #[inline(always)]
    pub fn store(&mut self, i: u64, value: T, observer: &mut impl AccessObserver) {
        observer.access(Kind::Store, self.addr(i));
        self.as_mut()[i as usize] = value;
    }

    /// `len` elements from `from` on, as loads of `wide` elements each.
    #[inline(always)]
    pub fn load_span(&self, from: u64, len: u64, wide: u64, observer: &mut impl AccessObserver) -> &[T] {
        for i in (from..from + len).step_by(wide as usize) {
            observer.access(Kind::Load, self.addr(i));
        }
        &self[from as usize..][..len as usize]
    }

    /// Sets the elements from `from` on, as stores of `wide` elements each.
    #[inline(always)]
    pub fn store_span(&mut self, from: u64, values: &[T], wide: u64, observer: &mut impl AccessObserver) {
        for i in (from..from + values.len() as u64).step_by(wide as usize) {
            observer.access(Kind::Store, self.addr(i));
        }
        self.as_mut()[from as usize..][..values.len()].copy_from_slice(values);
    }

    /// Where element `i` lies in the stream.
    #[inline(always)]
    fn addr(&self, i: u64) -> u64 {
        self.at + i * size_of::<T>() as u64
    }
}

impl<T: Plain> AsMut<[T]> for Array<T> {
    /// The elements, to be written unseen.
    fn as_mut(&mut self) -> &mut [T] {
        // SAFETY: `len` elements of zeros or of what was stored since, on the mapping's aligned start; borrowed with
        // `self`.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.start().cast().as_ptr(), self.len) }
    }
}

impl<T: Plain> Deref for Array<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: as in `as_mut`.
        unsafe { std::slice::from_raw_parts(self.mapping.start().cast().as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use lookaside_trace::Block;

    use super::*;

    #[test]
    fn what_is_seen_is_the_arrays_own_place() {
        let mut room = WorkloadMemory::new(Pages::Base);
        let mut words: Array<u64> = room.array("words", 1000, true).expect("memory");
        let mut halves: Array<u32> = room.array("halves", 3, false).expect("memory");
        let mut block = Block::default();
        words.store(999, 7, &mut block);
        halves.store(2, 8, &mut block);
        assert_eq!((words.load(999, &mut block), halves.load(2, &mut block)), (7, 8));
        let [first, second] = room.regions() else { panic!("two arrays") };
        let places = [(&words[999] as *const u64 as u64, first), (&halves[2] as *const u32 as u64, second)];
        let expected = places.map(|(place, region)| place - region.start + region.stream_start);
        assert_eq!(block.addr, [expected, expected].concat());
        assert_eq!(block.kind, [Kind::Store, Kind::Store, Kind::Load, Kind::Load]);
        assert_eq!((first.bytes, second.bytes), (8192, 4096));
        assert!(first.stream_start + first.bytes < second.stream_start);
    }

    #[test]
    fn each_array_is_a_region_of_its_own_with_what_was_said_of_huge_pages() {
        let flags = |smaps: &str, region: &ArrayMemory| -> String {
            let line = format!("{:x}-{:x} rw-p 00000000 00:00 0", region.start, region.start + region.bytes);
            let (_, rest) = smaps.split_once(&line).unwrap_or_else(|| panic!("{line} is not in\n{smaps}"));
            rest.lines().find_map(|line| line.strip_prefix("VmFlags:")).expect("flags").to_string()
        };
        let has_huge_pages = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        for pages in [Pages::Base, Pages::Thp, Pages::AsIs] {
            let mut room = WorkloadMemory::new(pages);
            // With huge pages on, an array goes to the end of its last one.
            let words = if pages == Pages::Thp { ALIGN_BYTES / 8 } else { 5000 };
            let arrays = ["a", "b", "c"].map(|name| room.array::<u64>(name, words, false));
            if pages == Pages::Thp && !has_huge_pages {
                continue;
            }
            let arrays = arrays.map(|array| array.expect("memory"));
            let smaps = std::fs::read_to_string("/proc/self/smaps").expect("our own");
            for region in room.regions() {
                let flags = flags(&smaps, region);
                let said = ["nh", "hg"].map(|flag| flags.split_whitespace().any(|word| word == flag));
                match pages {
                    Pages::Base => assert_eq!(said, [has_huge_pages, false], "{flags}"),
                    Pages::Thp => assert_eq!(said, [false, true], "{flags}"),
                    Pages::AsIs => assert_eq!(said, [false, false], "{flags}"),
                }
            }
            assert!(arrays.iter().all(|array| array.len() as u64 == words));
        }
    }

    #[test]
    fn memory_that_cannot_be_had_is_an_error() {
        let mut room = WorkloadMemory::new(Pages::Base);
        assert!(room.array::<u64>("all", u64::MAX / 8, true).is_err());
        assert!(room.array::<u64>("all", u64::MAX, true).is_err());
        assert!(room.array::<u64>("all", 1 << 50, true).is_err());
        let mut room = WorkloadMemory::new(Pages::AsIs);
        assert!(room.array::<u64>("all", u64::MAX / 8, true).is_err());
        assert!(room.array::<u64>("all", 1 << 50, true).is_err());
    }
}
