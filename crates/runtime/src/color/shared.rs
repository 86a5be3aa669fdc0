//! A coloured heap for several threads.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr::NonNull;

use super::colored_heap::{aligned, calloc};
use super::error::HeapError;
use super::heap::Heap;
use super::options::HeapOptions;
use super::pool::{BadFree, ColorStats};

/// A coloured heap with a lock, in the bookkeeping's pages. Who holds it runs at the priority of who waits
/// (`PTHREAD_PRIO_INHERIT`).
///
/// As a [`GlobalAlloc`] it hands out colour 0. After a fork the child's copy is its own; where another thread was in a
/// call of the heap just then, call [`SharedHeap::before_fork`] first and [`SharedHeap::after_fork`] in both.
#[derive(Debug)]
pub struct SharedHeap {
    heap: UnsafeCell<Heap>,
    /// In the heap's bookkeeping; `None`: its callers see to it themselves that there is one at a time. Kept beside the
    /// heap, as nobody may look at that before the lock is theirs.
    lock: Option<NonNull<libc::pthread_mutex_t>>,
}

// SAFETY: the heap is only used by who holds its lock.
unsafe impl Sync for SharedHeap {}
// SAFETY: it owns its memory; nobody holds the lock of what can be moved.
unsafe impl Send for SharedHeap {}

impl SharedHeap {
    /// As [`super::ColoredHeap::new`].
    ///
    /// # Errors
    /// As there.
    pub fn new(options: &HeapOptions) -> Result<Self, HeapError> {
        let heap = Heap::new(options)?;
        let lock = Some(heap.lock());
        Ok(Self { heap: UnsafeCell::new(heap), lock })
    }

    /// The same without a lock.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// Whoever calls sees to it that no two threads are in calls of the heap at once.
    pub(crate) unsafe fn without_lock(options: &HeapOptions) -> Result<Self, HeapError> {
        Ok(Self { heap: UnsafeCell::new(Heap::new(options)?), lock: None })
    }

    fn with<T>(&self, what: impl FnOnce(&mut Heap) -> T) -> T {
        struct HeapUnlock(NonNull<libc::pthread_mutex_t>);
        impl Drop for HeapUnlock {
            fn drop(&mut self) {
                // SAFETY: locked below, by this thread.
                unsafe { libc::pthread_mutex_unlock(self.0.as_ptr()) };
            }
        }
        let _unlock = self.lock.map(|lock| {
            // SAFETY: the mutex was made with the heap and stays where it is.
            unsafe { libc::pthread_mutex_lock(lock.as_ptr()) };
            HeapUnlock(lock)
        });
        // SAFETY: behind the lock nobody else uses the heap, nor without one by the contract of `without_lock`.
        what(unsafe { &mut *self.heap.get() })
    }

    /// Number of colours.
    pub fn colors(&self) -> u32 {
        self.with(|heap| heap.colors())
    }

    /// As [`super::ColoredHeap::malloc`].
    pub fn malloc(&self, bytes: usize, color: u32) -> *mut u8 {
        self.with(|heap| heap.malloc(bytes, color))
    }

    /// As [`super::ColoredHeap::calloc`].
    pub fn calloc(&self, count: usize, bytes: usize, color: u32) -> *mut u8 {
        self.with(|heap| calloc(heap, count, bytes, color))
    }

    /// As [`super::ColoredHeap::aligned`].
    pub fn aligned(&self, alignment: usize, bytes: usize, color: u32) -> *mut u8 {
        self.with(|heap| aligned(heap, alignment, bytes, color))
    }

    /// As [`super::ColoredHeap::realloc`]; holds the lock while it copies.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn realloc(&self, old: *mut u8, bytes: usize, color: u32) -> Result<*mut u8, BadFree> {
        // SAFETY: the caller's.
        self.with(|heap| unsafe { heap.realloc(old, bytes, color) })
    }

    /// As [`super::ColoredHeap::free`], or `free_of` where a colour is said.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn free(&self, bytes: *mut u8, color: Option<u32>) -> Result<(), BadFree> {
        // SAFETY: the caller's.
        self.with(|heap| unsafe { heap.free(bytes, color) })
    }

    /// As [`super::ColoredHeap::usable_size`].
    ///
    /// # Errors
    /// As there.
    pub fn usable_size(&self, bytes: *mut u8) -> Result<usize, BadFree> {
        self.with(|heap| heap.usable(bytes))
    }

    /// As [`super::ColoredHeap::stats`].
    pub fn stats(&self, color: u32) -> Option<ColorStats> {
        self.with(|heap| heap.stats(color))
    }

    /// As [`super::ColoredHeap::is_sound`].
    pub fn is_sound(&self) -> bool {
        self.with(|heap| heap.sound())
    }

    /// As [`super::ColoredHeap::walk`]; `each` must not call the heap.
    pub fn walk(&self, color: u32, mut each: impl FnMut(*mut u8, usize, bool)) -> bool {
        self.with(|heap| heap.walk(color, &mut each))
    }

    /// The colour of an address; `None`: no colour's.
    pub fn color_of(&self, address: *const u8) -> Option<u32> {
        self.with(|heap| heap.color_of(address))
    }

    /// Numbers of a colour's pages.
    pub fn vpns(&self, color: u32) -> Vec<u64> {
        self.with(|heap| heap.vpns(color))
    }

    /// Numbers of the bookkeeping's pages.
    pub fn bookkeeping_vpns(&self) -> Vec<u64> {
        self.with(|heap| heap.control_vpns().to_vec())
    }

    /// As [`super::ColoredHeap::huge_bytes`].
    ///
    /// # Errors
    /// As there.
    pub fn huge_bytes(&self) -> Result<u64, HeapError> {
        self.with(|heap| heap.huge_bytes())
    }

    /// As [`super::ColoredHeap::stack`].
    ///
    /// # Errors
    /// As there.
    pub fn stack(&self, bytes: usize, color: u32) -> Result<(*mut u8, usize), HeapError> {
        self.with(|heap| heap.stack(bytes, color))
    }

    /// As [`super::ColoredHeap::end_stack`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn end_stack(&self, lowest: *mut u8) -> Result<(), HeapError> {
        // SAFETY: the caller's.
        self.with(|heap| unsafe { heap.end_stack(lowest) })
    }

    /// Waits until nobody is in a call, and keeps it so.
    pub fn before_fork(&self) {
        if let Some(lock) = self.lock {
            // SAFETY: the mutex was made with the heap.
            unsafe { libc::pthread_mutex_lock(lock.as_ptr()) };
        }
    }

    /// Lets calls in again; `child`: in the new process, whose one thread is not the owner that the lock knows.
    pub fn after_fork(&self, child: bool) {
        let Some(lock) = self.lock else { return };
        // SAFETY: as above; the child has no other thread.
        unsafe {
            if child {
                // It worked when the heap was made; a mutex needs nothing else.
                let _ = super::heap::init_lock(lock.as_ptr());
            } else {
                libc::pthread_mutex_unlock(lock.as_ptr());
            }
        }
    }
}

// SAFETY: blocks are as large and as aligned as asked for, and nobody else's until they are given back.
unsafe impl GlobalAlloc for SharedHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.aligned(layout.align(), layout.size(), 0)
    }

    unsafe fn dealloc(&self, bytes: *mut u8, _: Layout) {
        // SAFETY: the caller's. A pointer that is refused stays allocated: there is no one to tell.
        let _ = unsafe { self.free(bytes, None) };
    }
}
