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
