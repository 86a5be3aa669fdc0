//! Compartments in one address space, by the protection keys of x86-64: a key is the domain, WRPKRU the write of the
//! DACR (Wiggins et al. 2003).
//!
//! A [`Compartment`] is memory that a thread can use only while it is in. There may be many more than the 15 keys: a
//! key is taken from a compartment that nobody is in, whose pages are closed meanwhile ([`Policy`] has the rule).
//! Everything here is of the running process; [`Policy`] by itself is a state machine over any [`Keys`].
//!
//! It guards against stray accesses, not against code that writes PKRU itself.
//! `docs/explanation/address-spaces.md` says what else it does not do.
//!
//! ```
//! use lookaside_runtime::domains::{create, destroy, enter, leave, memory, DomainsError};
//!
//! let compartment = match create(4096) {
//!     Ok(compartment) => compartment,
//!     Err(DomainsError::NoKeys(why)) => return eprintln!("{why}"),
//!     Err(other) => panic!("{other}"),
//! };
//! let (start, _bytes) = memory(compartment).unwrap();
//! enter(compartment).unwrap();
//! // SAFETY: the compartment's memory, which this thread is in.
//! unsafe { start.write(7) };
//! leave(compartment).unwrap(); // from here on reading it is a SIGSEGV
//! destroy(compartment).unwrap();
//! ```

mod error;
mod ffi;
mod keys;
mod limits;
mod pku;
mod policy;
mod process;

pub use error::{DomainsError, NoKeys};
pub use keys::{denied, granted, KeyCounts, Keys};
pub use limits::{MOST_DEEP, MOST_SHARED};
pub use policy::{Compartment, CompartmentAccess, Fault, Policy, Thread, PAGE_BYTES};

use process::{here, locked};

/// Makes a compartment of so many bytes, rounded up to pages, all zero. Outside of it nobody may use them.
///
/// # Errors
/// No bytes, or too many; no protection keys here; no memory.
pub fn create(bytes: usize) -> Result<Compartment, DomainsError> {
    here(|policy, keys, _| policy.create(keys, bytes))
}

/// Gives its memory back. Nobody shares it any more.
///
/// # Errors
/// No such compartment; a thread is in it, or in one that shares its memory; the system refuses.
pub fn destroy(compartment: Compartment) -> Result<(), DomainsError> {
    here(|policy, keys, _| policy.destroy(keys, compartment))
}

/// Its first byte, and how many there are.
///
/// # Errors
/// No such compartment.
pub fn memory(compartment: Compartment) -> Result<(*mut u8, usize), DomainsError> {
    let (start, bytes) = locked(|policy| policy.memory(compartment))?;
    Ok((std::ptr::with_exposed_provenance_mut(start), bytes))
}

/// The calling thread may use this compartment's memory and what it shares, and no other compartment's, until it
/// leaves.
///
/// # Errors
/// No such compartment; threads are in so many others that keys are too few; too deep; the system refuses.
pub fn enter(compartment: Compartment) -> Result<(), DomainsError> {
    here(|policy, keys, thread| policy.enter(keys, thread, compartment))
}

/// The calling thread is back where it was before it entered this compartment.
///
/// # Errors
/// No such compartment; the thread is not in it, or entered another one since.
pub fn leave(compartment: Compartment) -> Result<(), DomainsError> {
    here(|policy, keys, thread| policy.leave(keys, thread, compartment))
}

/// Who enters `with` from now on may use the memory of `compartment` in this way, too.
///
/// # Errors
/// No such compartment; both are the same; a thread is in `with`; it shares the memory of [`MOST_SHARED`] others.
pub fn share(compartment: Compartment, with: Compartment, access: CompartmentAccess) -> Result<(), DomainsError> {
    here(|policy, _, _| policy.share(compartment, with, access))
}

/// Counts a fault of the calling thread, and says whose memory it was, if a compartment's. For the program's handler of
/// SIGSEGV: `code` is `si_code`, `address` is `si_addr`. Other codes than SEGV_PKUERR and SEGV_ACCERR are nobody's.
pub fn fault(code: i32, address: *const u8) -> Option<Compartment> {
    // The numbers of Linux; libc has the first on some systems only.
    const SEGV_ACCERR: i32 = 2;
    const SEGV_PKUERR: i32 = 4;
    let fault = match code {
        SEGV_PKUERR => Fault::Key,
        SEGV_ACCERR => Fault::Closed,
        _ => return None,
    };
    locked(|policy| policy.fault(fault, address.addr()))
}

/// What happened so far in this process.
pub fn counts() -> KeyCounts {
    locked(|policy| policy.counts())
}
