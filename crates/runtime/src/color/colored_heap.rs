//! The heap, for one thread at a time.

use super::error::HeapError;
use super::heap::Heap;
use super::options::HeapOptions;
use super::pool::{BadFree, ColorStats};

/// A coloured heap for one task. [`SharedHeap`](super::SharedHeap) is for several.
///
/// Its memory is given back when it is dropped: nothing that came from it may be used then.
#[derive(Debug)]
pub struct ColoredHeap(Heap);

// SAFETY: it owns its memory, and nothing in it belongs to a thread; its lock is not used.
unsafe impl Send for ColoredHeap {}

impl ColoredHeap {
    /// Makes a heap: all its pages get memory at once.
    ///
    /// # Errors
    /// No such pages exist, or the system refuses memory, locking it, or huge pages for all of a heap of larger pages
    /// than 4 KiB: in small ones it would not lie in its sets.
    pub fn new(options: &HeapOptions) -> Result<Self, HeapError> {
        Heap::new(options).map(Self)
    }

    /// Number of colours.
    pub fn colors(&self) -> u32 {
        self.0.colors()
    }

    /// Memory of a colour, aligned to 16; null: no block is sure to hold it, or there is no such colour. `bytes` up to
    /// a run of pages: from a page less 24 bytes on a request that fills no longer run takes a free run whole.
    pub fn malloc(&mut self, bytes: usize, color: u32) -> *mut u8 {
        self.0.malloc(bytes, color)
    }

    /// The same, of zeros.
    pub fn calloc(&mut self, count: usize, bytes: usize, color: u32) -> *mut u8 {
        calloc(&mut self.0, count, bytes, color)
    }

    /// The same, at a multiple of a power of two; null also for what is none.
    pub fn aligned(&mut self, alignment: usize, bytes: usize, color: u32) -> *mut u8 {
        aligned(&mut self.0, alignment, bytes, color)
    }

    /// Changes an allocation's size, where it stands if it can; `Ok(null)`: there is no room, and it stays as it is.
    ///
    /// # Errors
    /// `old` is no allocation of this colour; nothing is changed.
    ///
    /// # Safety
    /// As [`ColoredHeap::free`]; `old` may be null.
    pub unsafe fn realloc(&mut self, old: *mut u8, bytes: usize, color: u32) -> Result<*mut u8, BadFree> {
        // SAFETY: the caller's.
        unsafe { self.0.realloc(old, bytes, color) }
    }

    /// Gives an allocation back; null is none.
    ///
    /// # Errors
    /// What is wrong with the pointer; nothing is changed then.
    ///
    /// # Safety
    /// `bytes` came from this heap and nobody uses it any more; in a checked heap it may be anything.
    pub unsafe fn free(&mut self, bytes: *mut u8) -> Result<(), BadFree> {
        // SAFETY: the caller's.
        unsafe { self.0.free(bytes, None) }
    }

    /// The same, of a colour that it must have.
    ///
    /// # Errors
    /// As [`ColoredHeap::free`].
    ///
    /// # Safety
    /// As [`ColoredHeap::free`].
    pub unsafe fn free_of(&mut self, bytes: *mut u8, color: u32) -> Result<(), BadFree> {
        // SAFETY: the caller's.
        unsafe { self.0.free(bytes, Some(color)) }
    }

    /// Bytes of an allocation that may be used: what was asked for, and at most 31 more (40 for up to 9); whole pages
    /// where a run was taken whole.
    ///
    /// # Errors
    /// It is no allocation of this heap.
    pub fn usable_size(&mut self, bytes: *mut u8) -> Result<usize, BadFree> {
        self.0.usable(bytes)
    }

    /// Counts of a colour.
    pub fn stats(&mut self, color: u32) -> Option<ColorStats> {
        self.0.stats(color)
    }

    /// Whether what can be looked at in constant time is sound: lists, their first blocks, counts.
    pub fn is_sound(&mut self) -> bool {
        self.0.sound()
    }

    /// Goes through a colour's blocks in the order of addresses: first byte, bytes, in use or not. `false`: a header is
    /// damaged.
    pub fn walk(&mut self, color: u32, mut each: impl FnMut(*mut u8, usize, bool)) -> bool {
        self.0.walk(color, &mut each)
    }

    /// Numbers of a colour's pages.
    pub fn vpns(&self, color: u32) -> Vec<u64> {
        self.0.vpns(color)
    }

    /// Numbers of the bookkeeping's pages.
    pub fn bookkeeping_vpns(&self) -> &[u64] {
        self.0.control_vpns()
    }

    /// Bytes of its pages that the system has in huge pages now (it reads `/proc/self/smaps`). A heap of huge pages
    /// begins with all of them; the system divides those that are written to after a fork, while both processes have
    /// them.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn huge_bytes(&self) -> Result<u64, HeapError> {
        self.0.huge_bytes()
    }

    /// A stack of contiguous pages of a colour, and below them one that faults: the lowest byte that may be used, and
    /// bytes. Its entry is never needed, as it is never touched.
    ///
    /// # Errors
    /// The colour has no such run free, or the system refuses the guard.
    pub fn stack(&mut self, bytes: usize, color: u32) -> Result<(*mut u8, usize), HeapError> {
        self.0.stack(bytes, color)
    }

    /// Gives a stack back.
    ///
    /// # Errors
    /// It is none of this heap.
    ///
    /// # Safety
    /// Nobody uses it any more.
    pub unsafe fn end_stack(&mut self, lowest: *mut u8) -> Result<(), HeapError> {
        // SAFETY: the caller's.
        unsafe { self.0.end_stack(lowest) }
    }
}

pub(super) fn calloc(heap: &mut Heap, count: usize, bytes: usize, color: u32) -> *mut u8 {
    let start = heap.malloc(count.saturating_mul(bytes), color);
    if !start.is_null() {
        // SAFETY: that many bytes were just allocated; a product that overflows is never had.
        unsafe { std::ptr::write_bytes(start, 0, count * bytes) };
    }
    start
}

pub(super) fn aligned(heap: &mut Heap, alignment: usize, bytes: usize, color: u32) -> *mut u8 {
    if !alignment.is_power_of_two() {
        return std::ptr::null_mut();
    }
    heap.aligned(alignment, bytes, color)
}
