//! Arrays of a task: in chunks that need not be neighbours, as a heap gives them that chooses pages by their TLB sets.

use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;

use lookaside_trace::Kind;

use crate::mapping::{ArrayMapping, Pages};
use crate::observer::{AccessObserver, Plain};
use crate::stream::PAGE_BYTES;

/// Memory for the arrays of a task ([`WorkloadMemory::in_chunks`](crate::kernel::WorkloadMemory::in_chunks)): chunks,
/// each of which is in one page.
#[derive(Clone, Debug)]
pub struct Chunks {
    /// Bytes of each: a power of two, from 64 (a line) to 4096 (a page).
    pub bytes: usize,
    /// Their first bytes, on multiples of 64. Arrays take them in this order, each array whole ones.
    pub at: Vec<NonNull<u8>>,
}

// SAFETY: addresses, which only who has the chunks uses.
unsafe impl Send for Chunks {}

/// Bytes of the smallest chunk: a line.
const LEAST_BYTES: usize = 64;

impl Chunks {
    /// They are of a size and on addresses as said.
    pub fn are_possible(&self) -> bool {
        let aligned = |at: &NonNull<u8>| at.addr().get().is_multiple_of(LEAST_BYTES);
        let bytes = self.bytes;
        bytes.is_power_of_two() && (LEAST_BYTES..=PAGE_BYTES as usize).contains(&bytes) && self.at.iter().all(aligned)
    }
}

/// An array in chunks whose accesses can be seen.
#[derive(Debug)]
pub struct Chunked<T> {
    /// Each chunk's first element.
    chunks: Box<[NonNull<T>]>,
    /// The number of the first among those of the workload.
    first: usize,
    /// log2 of a chunk's elements.
    shift: u32,
    len: u64,
    /// First byte in the stream.
    at: u64,
    /// The memory behind, where nobody else gave it.
    _mapping: Option<ArrayMapping>,
    holds: PhantomData<T>,
}

// SAFETY: the memory is the array's alone, whatever thread it is used by.
unsafe impl<T: Plain + Send> Send for Chunked<T> {}

impl<T: Plain> Chunked<T> {
    /// In pages of its own, one behind another.
    pub(crate) fn mapped(bytes: usize, pages: Pages, (len, first, at): (u64, usize, u64)) -> io::Result<Self> {
        let mapping = ArrayMapping::new(bytes, pages)?;
        let page = |number: usize| {
            // SAFETY: a page of the mapping.
            unsafe { mapping.start().add(number * PAGE_BYTES as usize) }
        };
        let chunks: Vec<NonNull<u8>> = (0..bytes / PAGE_BYTES as usize).map(page).collect();
        Ok(Self::new(&chunks, PAGE_BYTES as usize, (len, first, at), Some(mapping)))
    }

    /// In these chunks of so many bytes, which it clears.
    ///
    /// # Safety
    /// They are as [`Chunks`] says, writable, and nobody else's as long as this lives; `len` elements fit.
    pub(crate) unsafe fn given(chunks: &[NonNull<u8>], bytes: usize, (len, first, at): (u64, usize, u64)) -> Self {
        for chunk in chunks {
            // SAFETY: the caller's.
            unsafe { chunk.write_bytes(0, bytes) };
        }
        Self::new(chunks, bytes, (len, first, at), None)
    }

    fn new(
        chunks: &[NonNull<u8>],
        bytes: usize,
        (len, first, at): (u64, usize, u64),
        mapping: Option<ArrayMapping>,
    ) -> Self {
        // Powers of two, both.
        let shift = (bytes / size_of::<T>()).ilog2();
        let chunks = chunks.iter().map(|chunk| chunk.cast()).collect();
        Self { chunks, first, shift, len, at, _mapping: mapping, holds: PhantomData }
    }

    /// The first byte, as a number.
    pub(crate) fn start(&self) -> u64 {
        self.chunks.first().map_or(0, |chunk| chunk.as_ptr() as u64)
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Element `i`, as one load.
    #[inline(always)]
    pub fn load(&self, i: u64, observer: &mut impl AccessObserver) -> T {
        observer.access(Kind::Load, self.addr(i));
        self.get(i, observer)
    }

    /// Element `i`; no access of the stream.
    #[inline(always)]
    pub fn get(&self, i: u64, observer: &mut impl AccessObserver) -> T {
        // SAFETY: an element, of zeros or of what was stored since.
        unsafe { self.place(i, observer).read() }
    }

    /// Sets element `i`, as one store.
    #[inline(always)]
    pub fn store(&mut self, i: u64, value: T, observer: &mut impl AccessObserver) {
        observer.access(Kind::Store, self.addr(i));
        self.set(i, value, observer);
    }

    /// Sets element `i`; no access of the stream.
    #[inline(always)]
    pub fn set(&mut self, i: u64, value: T, observer: &mut impl AccessObserver) {
        // SAFETY: an element; borrowed with `self`.
        unsafe { self.place(i, observer).write(value) };
    }

    /// Sets all; no accesses of the stream.
    pub fn fill_with(&mut self, mut value: impl FnMut() -> T, observer: &mut impl AccessObserver) {
        (0..self.len).for_each(|i| self.set(i, value(), observer));
    }

    /// All of them in order; no accesses of the stream.
    pub fn values<'a>(&'a self, observer: &'a mut impl AccessObserver) -> impl Iterator<Item = T> + 'a {
        (0..self.len).map(move |i| self.get(i, observer))
    }

    /// A copy of all of them; no accesses of the stream.
    pub fn to_vec(&self) -> Vec<T> {
        self.values(&mut crate::observer::Unseen).collect()
    }

    #[inline(always)]
    fn place(&self, i: u64, observer: &mut impl AccessObserver) -> *mut T {
        debug_assert!(i < self.len);
        let chunk = (i >> self.shift) as usize;
        // What is beyond the last chunk ends here; within one all elements are there.
        let start = self.chunks[chunk].as_ptr();
        let start: *mut T = observer.chunk(self.first + chunk, start.cast()).cast();
        // SAFETY: within the chunk: observers give back what they are given.
        unsafe { start.add(i as usize & ((1 << self.shift) - 1)) }
    }

    /// Where element `i` lies in the stream.
    #[inline(always)]
    fn addr(&self, i: u64) -> u64 {
        self.at + i * size_of::<T>() as u64
    }
}
