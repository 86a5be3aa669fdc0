//! Heaps of C programs over a fork: no thread is in a call while the process is copied, and the child's locks are new.

use std::cell::UnsafeCell;
use std::sync::Once;

use super::shared::SharedHeap;

/// Heaps that are in use, by address. A C lock: Rust's can't be let go of in a forked child.
struct KnownHeaps {
    lock: UnsafeCell<libc::pthread_mutex_t>,
    heaps: UnsafeCell<Vec<usize>>,
}

// SAFETY: the list is only used by who holds the lock.
unsafe impl Sync for KnownHeaps {}

static KNOWN: KnownHeaps =
    KnownHeaps { lock: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER), heaps: UnsafeCell::new(Vec::new()) };
static ONCE: Once = Once::new();

fn with(what: impl FnOnce(&mut Vec<usize>)) {
    // SAFETY: a mutex that is never moved; behind it nobody else uses the list.
    unsafe {
        libc::pthread_mutex_lock(KNOWN.lock.get());
        what(&mut *KNOWN.heaps.get());
        libc::pthread_mutex_unlock(KNOWN.lock.get());
    }
}

/// From now on it is looked after; it stays where it is until [`remove`].
pub(crate) fn add(heap: &SharedHeap) {
    ONCE.call_once(|| {
        // SAFETY: functions that live as long as the program. Without memory for them forks are as without them.
        unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
    });
    with(|heaps| heaps.push(std::ptr::from_ref(heap) as usize));
}

pub(crate) fn remove(heap: &SharedHeap) {
    with(|heaps| heaps.retain(|known| *known != std::ptr::from_ref(heap) as usize));
}

/// All locks, the list's first, which stays locked: no heap comes or goes meanwhile.
extern "C" fn before() {
    // SAFETY: as in `with`; heaps leave the list before they end.
    unsafe {
        libc::pthread_mutex_lock(KNOWN.lock.get());
        for heap in &*KNOWN.heaps.get() {
            (*(*heap as *const SharedHeap)).before_fork();
        }
    }
}

fn after(child: bool) {
    // SAFETY: locked in `before`, by this thread, which is the only one in the child; there the lock is made anew,
    // since its owner's number changed.
    unsafe {
        for heap in &*KNOWN.heaps.get() {
            (*(*heap as *const SharedHeap)).after_fork(child);
        }
        if child {
            KNOWN.lock.get().write(libc::PTHREAD_MUTEX_INITIALIZER);
        } else {
            libc::pthread_mutex_unlock(KNOWN.lock.get());
        }
    }
}

extern "C" fn parent() {
    after(false);
}

extern "C" fn child() {
    after(true);
}
