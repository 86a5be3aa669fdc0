//! What threads of tests may.

use rustix::thread::{set_capabilities, CapabilitySet, CapabilitySets};

/// In a thread that may no more than any user, whoever the others of its process are.
pub(crate) fn without_rights<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    let none = CapabilitySet::empty();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let rights = CapabilitySets { effective: none, permitted: none, inheritable: none };
            set_capabilities(None, rights).expect("a thread may give up what it has");
            act()
        });
        thread.join().expect("it ends")
    })
}
