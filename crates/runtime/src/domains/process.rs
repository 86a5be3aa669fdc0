//! The compartments of this process: one lock, a thread's state in its own storage, forks, and threads that end.

use std::cell::{RefCell, UnsafeCell};
use std::sync::Once;

use super::error::DomainsError;
use super::pku::ProtectionKeys;
use super::policy::{Policy, Thread};

/// A C lock: Rust's can't be let go of in a forked child.
struct LockedPolicy {
    lock: UnsafeCell<libc::pthread_mutex_t>,
    policy: UnsafeCell<Policy>,
}

// SAFETY: the policy is only used by who holds the lock.
unsafe impl Sync for LockedPolicy {}

static PROCESS: LockedPolicy =
    LockedPolicy { lock: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER), policy: UnsafeCell::new(Policy::new()) };
static ONCE: Once = Once::new();

/// A thread that ends leaves all that it is in.
struct ThreadDomains(RefCell<Thread>);

impl Drop for ThreadDomains {
    fn drop(&mut self) {
        locked(|policy| policy.ends(&mut ProtectionKeys, self.0.get_mut()));
    }
}

thread_local! {
    static HERE: ThreadDomains = ThreadDomains(RefCell::default());
}

/// With the lock, which the calling thread has not.
pub(super) fn locked<T>(act: impl FnOnce(&mut Policy) -> T) -> T {
    struct PolicyUnlock;
    impl Drop for PolicyUnlock {
        fn drop(&mut self) {
            // SAFETY: locked below, by this thread.
            unsafe { libc::pthread_mutex_unlock(PROCESS.lock.get()) };
        }
    }
    // SAFETY: a mutex that is never moved; behind it nobody else uses the policy.
    unsafe {
        libc::pthread_mutex_lock(PROCESS.lock.get());
        let _unlock = PolicyUnlock;
        act(&mut *PROCESS.policy.get())
    }
}

/// With the lock, as the calling thread.
pub(super) fn here<T>(
    act: impl FnOnce(&mut Policy, &mut ProtectionKeys, &mut Thread) -> Result<T, DomainsError>,
) -> Result<T, DomainsError> {
    ONCE.call_once(|| {
        // SAFETY: functions that live as long as the program. Without memory for them forks are as without them.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
    });
    let as_thread = |here: &ThreadDomains| match here.0.try_borrow_mut() {
        Ok(mut thread) => locked(|policy| act(policy, &mut ProtectionKeys, &mut thread)),
        Err(_) => Err(DomainsError::Reentered),
    };
    HERE.try_with(as_thread).unwrap_or(Err(DomainsError::ThreadEnds))
}

extern "C" fn before_fork() {
    // SAFETY: as in `locked`; let go of in both processes.
    unsafe { libc::pthread_mutex_lock(PROCESS.lock.get()) };
}

extern "C" fn after_fork() {
    // SAFETY: locked in `before_fork`, by this thread.
    unsafe { libc::pthread_mutex_unlock(PROCESS.lock.get()) };
}

/// The child has one thread, with the rights that it had, and is none's owner of the lock.
extern "C" fn in_child() {
    // SAFETY: locked in `before_fork`, and no other thread is there.
    unsafe {
        let policy = &mut *PROCESS.policy.get();
        let known = HERE.try_with(|here| here.0.try_borrow().map(|thread| policy.forked(&thread)));
        if !matches!(known, Ok(Ok(()))) {
            policy.forked(&Thread::default());
        }
        PROCESS.lock.get().write(libc::PTHREAD_MUTEX_INITIALIZER);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    use super::super::ffi::{domain_fault, domain_get_stats, domain_memory};
    use super::super::keys::Keys;
    use super::super::policy::Compartment;
    use super::super::{counts, fault, memory, NoKeys};
    use super::*;

    /// One key, and memory at addresses that no program has: the policy of this process is asked for compartments
    /// without a processor that has keys, and no register is written.
    struct Nowhere;

    impl Keys for Nowhere {
        fn alloc(&mut self) -> Result<u8, NoKeys> {
            Ok(1)
        }

        fn map(&mut self, bytes: usize) -> Result<usize, i32> {
            static NEXT: AtomicUsize = AtomicUsize::new(1 << 60);
            Ok(NEXT.fetch_add(bytes, Ordering::Relaxed))
        }

        fn unmap(&mut self, _: usize, _: usize) -> Result<(), i32> {
            Ok(())
        }

        fn protect(&mut self, _: usize, _: usize, _: Option<u8>) -> Result<(), i32> {
            Ok(())
        }

        fn set_rights(&mut self, _: u32, _: u32) {}
    }

    fn create(bytes: usize) -> Compartment {
        locked(|policy| policy.create(&mut Nowhere, bytes)).expect("addresses")
    }

    fn destroy(compartment: Compartment) -> Result<(), DomainsError> {
        locked(|policy| policy.destroy(&mut Nowhere, compartment))
    }

    #[test]
    fn faults_of_both_kinds_are_told_by_their_codes_with_whose_memory_it_was() {
        let [first, second] = [1, 2].map(|pages| create(4096 * pages));
        let (start, bytes) = memory(second).expect("it is there");
        assert_eq!((start.addr() >= 1 << 60, bytes), (true, 8192));
        let (at, before) = (start.wrapping_add(bytes - 1), counts());
        let told = [0, 1, 2, 3, 4, 5].map(|code| fault(code, at));
        assert_eq!(told, [None, None, Some(second), None, Some(second), None]);
        assert_eq!(domain_fault(4, at.cast()), second.0);
        assert_eq!([at.wrapping_add(1), std::ptr::null_mut()].map(|nowhere| fault(4, nowhere)), [None; 2]);
        let after = counts();
        assert_eq!((after.closed_faults - before.closed_faults, after.key_faults - before.key_faults), (1, 2));
        assert!(after.compartments >= 2 && after.keys >= 1);
        // As C has it.
        let (mut size, mut stats) = (0, before.into());
        // SAFETY: both are this test's own.
        assert_eq!((unsafe { domain_memory(second.0, &mut size) }.addr(), size), (start.addr(), 8192));
        // SAFETY: as above.
        unsafe { domain_get_stats(&mut stats) };
        assert!(stats.key_faults >= after.key_faults && stats.compartments >= 2, "{stats:?}");
        assert_eq!((destroy(first), destroy(second)), (Ok(()), Ok(())));
    }

    /// The child has one thread: it is where it was, and nobody else holds the lock.
    #[test]
    fn a_fork_waits_for_who_has_the_lock_and_both_processes_go_on() {
        let forks = || {
            let compartment = create(4096);
            here(|policy, _, thread| policy.enter(&mut Nowhere, thread, compartment)).expect("there is a key");
            let (has, had) = (AtomicBool::new(false), AtomicBool::new(false));
            let (waited, status) = std::thread::scope(|scope| {
                scope.spawn(|| {
                    locked(|_| {
                        has.store(true, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(50));
                        had.store(true, Ordering::SeqCst);
                    });
                });
                while !has.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                // SAFETY: the child asks the policy, which allocates nothing for it, and ends.
                let child = unsafe { libc::fork() };
                let waited = had.load(Ordering::SeqCst);
                if child == 0 {
                    // SAFETY: a child that hangs is ended by the system.
                    unsafe {
                        libc::alarm(20);
                        let is_in = destroy(compartment) == Err(DomainsError::InUse { entries: 1 });
                        libc::_exit(i32::from(!(waited && is_in)));
                    }
                }
                let mut status = -1;
                // SAFETY: the child made above.
                unsafe { libc::waitpid(child, &mut status, 0) };
                (waited, status)
            });
            // Before the thread ends, whatever comes of it: it would leave by itself, with no register to write.
            here(|policy, _, thread| policy.leave(&mut Nowhere, thread, compartment)).expect("it is in it");
            assert_eq!((waited, status, destroy(compartment)), (true, 0, Ok(())));
        };
        std::thread::spawn(forks).join().expect("it ends");
    }
}
