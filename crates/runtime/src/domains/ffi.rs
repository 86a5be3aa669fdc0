//! The C interface; `include/domains.h` has its contract.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void, CString};
use std::ptr::null_mut;

use super::{Compartment, CompartmentAccess, DomainsError, KeyCounts};

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// `domain_stats` of the header.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct domain_stats {
    /// As in [`KeyCounts`], and so on.
    pub compartments: u64,
    /// Keys.
    pub keys: u64,
    /// Enters and leaves.
    pub switches: u64,
    /// Keys taken.
    pub recycled: u64,
    /// Rounds of taking.
    pub flushes: u64,
    /// Calls of pkey_mprotect.
    pub protect_calls: u64,
    /// Faults on another's key.
    pub key_faults: u64,
    /// Faults on closed memory.
    pub closed_faults: u64,
}

impl From<KeyCounts> for domain_stats {
    fn from(counts: KeyCounts) -> Self {
        let KeyCounts { compartments, keys, switches, recycled, flushes, protect_calls, key_faults, closed_faults } =
            counts;
        Self { compartments, keys, switches, recycled, flushes, protect_calls, key_faults, closed_faults }
    }
}

/// Keeps the sentence, sets `errno`.
fn fail(error: &DomainsError) -> c_int {
    let text = CString::new(error.to_string()).unwrap_or_default();
    // In a thread that ends there is no place for the sentence; the number says it.
    let _ = ERROR.try_with(|kept| *kept.borrow_mut() = text);
    // SAFETY: this thread's own error number.
    unsafe { *libc::__errno_location() = error.errno() };
    -1
}

fn done(result: Result<(), DomainsError>) -> c_int {
    result.map_or_else(|error| fail(&error), |()| 0)
}

/// A new compartment; see the header.
#[no_mangle]
pub extern "C" fn domain_create(size: usize) -> u64 {
    match super::create(size) {
        Ok(compartment) => compartment.0,
        Err(error) => {
            fail(&error);
            0
        }
    }
}

/// Gives it back; see the header.
#[no_mangle]
pub extern "C" fn domain_destroy(domain: u64) -> c_int {
    done(super::destroy(Compartment(domain)))
}

/// Its memory; see the header.
///
/// # Safety
/// `size` is NULL or points to a number of the caller's.
#[no_mangle]
pub unsafe extern "C" fn domain_memory(domain: u64, size: *mut usize) -> *mut c_void {
    match super::memory(Compartment(domain)) {
        Ok((start, bytes)) => {
            // SAFETY: the caller's.
            if let Some(size) = unsafe { size.as_mut() } {
                *size = bytes;
            }
            start.cast()
        }
        Err(error) => {
            fail(&error);
            null_mut()
        }
    }
}

/// Enters; see the header.
#[no_mangle]
pub extern "C" fn domain_enter(domain: u64) -> c_int {
    done(super::enter(Compartment(domain)))
}

/// Leaves; see the header.
#[no_mangle]
pub extern "C" fn domain_leave(domain: u64) -> c_int {
    done(super::leave(Compartment(domain)))
}

/// Shares; see the header.
#[no_mangle]
pub extern "C" fn domain_share(domain: u64, with: u64, access: c_int) -> c_int {
    let access = match access {
        0 => CompartmentAccess::None,
        1 => CompartmentAccess::Read,
        2 => CompartmentAccess::Write,
        other => return fail(&DomainsError::Access(other)),
    };
    done(super::share(Compartment(domain), Compartment(with), access))
}

/// Counts a fault; see the header.
#[no_mangle]
pub extern "C" fn domain_fault(code: c_int, address: *const c_void) -> u64 {
    super::fault(code, address.cast()).map_or(0, |compartment| compartment.0)
}

/// What happened so far; see the header.
///
/// # Safety
/// `stats` points to a structure of the caller's.
#[no_mangle]
pub unsafe extern "C" fn domain_get_stats(stats: *mut domain_stats) {
    // SAFETY: the caller's.
    if let Some(stats) = unsafe { stats.as_mut() } {
        *stats = super::counts().into();
    }
}

/// What went wrong last in this thread; see the header.
#[no_mangle]
pub extern "C" fn domain_error() -> *const c_char {
    ERROR.try_with(|kept| kept.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    /// The number and the sentence that the last call left behind.
    fn last() -> (i32, String) {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        // SAFETY: a sentence that stays until the next error of this thread.
        (errno, unsafe { CStr::from_ptr(domain_error()) }.to_string_lossy().into_owned())
    }

    /// No processor is asked for keys: there is no such compartment.
    #[test]
    fn what_is_refused_is_told_by_minus_one_the_number_and_a_sentence() {
        const NOBODY: u64 = u64::MAX;
        let no_such = DomainsError::NoSuch.to_string();
        for call in [domain_destroy, domain_enter, domain_leave] {
            assert_eq!((call(NOBODY), last()), (-1, (libc::ENOENT, no_such.clone())));
        }
        for access in 0..3 {
            assert_eq!((domain_share(NOBODY, NOBODY, access), last()), (-1, (libc::ENOENT, no_such.clone())));
        }
        for access in [-1, 3] {
            let said = format!("{access} is no access: 0 is none, 1 read only, 2 read and write");
            assert_eq!((domain_share(NOBODY, NOBODY, access), last()), (-1, (libc::EINVAL, said)));
        }
        let mut size = 7;
        // SAFETY: a number of this test's own.
        assert!(unsafe { domain_memory(NOBODY, &mut size) }.is_null());
        assert_eq!((size, last()), (7, (libc::ENOENT, no_such)));
        assert_eq!((domain_create(0), last()), (0, (libc::EINVAL, "a compartment of no bytes".into())));
    }

    #[test]
    fn a_fault_of_nobodys_memory_is_nobodys() {
        let local = 0u8;
        for code in [0, 2, 4, -1] {
            assert_eq!(domain_fault(code, std::ptr::from_ref(&local).cast()), 0);
        }
    }

    #[test]
    fn counts_are_told_each_in_its_place() {
        let counts = KeyCounts {
            compartments: 1,
            keys: 2,
            switches: 3,
            recycled: 4,
            flushes: 5,
            protect_calls: 6,
            key_faults: 7,
            closed_faults: 8,
        };
        let domain_stats { compartments, keys, switches, recycled, flushes, protect_calls, .. } = counts.into();
        let domain_stats { key_faults, closed_faults, .. } = counts.into();
        let told = [compartments, keys, switches, recycled, flushes, protect_calls, key_faults, closed_faults];
        assert_eq!(told, [1, 2, 3, 4, 5, 6, 7, 8]);
        // SAFETY: nothing is written to where there is nothing.
        unsafe { domain_get_stats(std::ptr::null_mut()) };
    }
}
