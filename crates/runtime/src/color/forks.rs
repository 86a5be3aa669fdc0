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

#[cfg(test)]
mod tests {
    use lookaside_machine::{PageSize, Partition};

    use super::super::options::HeapOptions;
    use super::*;

    fn heap() -> SharedHeap {
        let color = Partition { name: "a".into(), pages: Some(1), contiguous_pages: 1, shares: Vec::new() };
        let options = HeapOptions {
            page_size: PageSize::K4,
            levels: Vec::new(),
            colors: vec![color],
            bookkeeping: None,
            checked: false,
            locked: false,
            runs_as_asked: false,
        };
        SharedHeap::new(&options).expect("a heap")
    }

    #[test]
    fn heaps_are_known_from_their_begin_to_their_end_and_live_on_in_both_processes() {
        let [first, second] = [heap(), heap()];
        let known = || {
            let mut found = [false; 2];
            with(|heaps| found = [&first, &second].map(|heap| heaps.contains(&(std::ptr::from_ref(heap) as usize))));
            found
        };
        assert_eq!(known(), [false, false]);
        add(&first);
        add(&second);
        assert_eq!(known(), [true, true]);
        // SAFETY: the child calls a heap, which nobody else is in, and ends.
        let child = unsafe { libc::fork() };
        let works = || [&first, &second].iter().all(|heap| !heap.malloc(1, 0).is_null());
        if child == 0 {
            // SAFETY: a child that hangs is ended by the system.
            unsafe {
                libc::alarm(20);
                libc::_exit(i32::from(!works()));
            }
        }
        let mut status = -1;
        // SAFETY: the child made above.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!((status, works()), (0, true));
        remove(&first);
        assert_eq!(known(), [false, true]);
        remove(&second);
        assert_eq!(known(), [false, false]);
    }
}
