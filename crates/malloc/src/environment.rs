//! Variables of the environment, before the C library has one: from `/proc/self/environ`.
//!
//! The file is read here and not through `lookaside-host`: that crate allocates, and this code runs inside the first
//! call of `malloc`.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest value.
const MOST: usize = 1 << 16;

/// A value and where it ends.
struct Value(std::cell::UnsafeCell<[u8; MOST]>);

// SAFETY: written once, by who took the flag.
unsafe impl Sync for Value {}

static VALUE: Value = Value(std::cell::UnsafeCell::new([0; MOST]));
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The partition's line, for the one who asks first; `None`: there is none, or it is too long.
pub(crate) fn partition() -> Option<&'static [u8]> {
    if TAKEN.swap(true, Ordering::AcqRel) {
        return None;
    }
    // SAFETY: nobody else comes here.
    let value = unsafe { &mut *VALUE.0.get() };
    let len = read(c"/proc/self/environ", b"LOOKASIDE_COLOR=", value)?;
    Some(&value[..len])
}

/// Finds `NAME=` at the start of one of a file's texts that end with 0, and puts what follows into `value`: its bytes.
fn read(file: &CStr, name: &[u8], value: &mut [u8]) -> Option<usize> {
    // SAFETY: a path of this program's own.
    let file = unsafe { libc::open(file.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    let mut chunk = [0u8; 1024];
    // Bytes of `name` seen in the current text; past it: bytes of the value.
    let (mut matched, mut at_start, mut len) = (0, true, 0);
    let found = 'file: loop {
        // SAFETY: a buffer of that size.
        let got = unsafe { libc::read(file, chunk.as_mut_ptr().cast(), chunk.len()) };
        if got <= 0 {
            break (matched == name.len()).then_some(len);
        }
        for &byte in &chunk[..got as usize] {
            if byte == 0 {
                if matched == name.len() {
                    break 'file Some(len);
                }
                (matched, at_start) = (0, true);
            } else if matched == name.len() {
                let Some(to) = value.get_mut(len) else { break 'file None };
                *to = byte;
                len += 1;
            } else if at_start && name[matched] == byte {
                matched += 1;
            } else {
                (matched, at_start) = (0, false);
            }
        }
    };
    // SAFETY: opened above.
    unsafe { libc::close(file) };
    found
}
