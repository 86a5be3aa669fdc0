//! The calls, as the C library has them.

use std::ffi::{c_int, c_void, CStr};
use std::ptr::null_mut;

use lookaside_runtime::color::{BadFree, GrowingHeap};

use crate::environment;
use crate::fixed_line::FixedLine;

static HEAP: GrowingHeap = GrowingHeap::new();

/// Called by the loader, before the program's `main`; the heap may be in use already.
#[used]
#[link_section = ".init_array"]
static BEGIN: extern "C" fn() = begin;

/// Called when the program exits, unless it does so by `_exit`.
#[used]
#[link_section = ".fini_array"]
static END: extern "C" fn() = end;

extern "C" fn begin() {
    heap();
    // SAFETY: functions that live as long as the program: the library is never unloaded. Without memory for them forks
    // are as without them.
    unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
}

extern "C" fn before() {
    HEAP.before_fork();
}

extern "C" fn parent() {
    HEAP.after_fork(false);
}

extern "C" fn child() {
    HEAP.after_fork(true);
}

extern "C" fn end() {
    // SAFETY: the environment's own text.
    let path = unsafe { libc::getenv(c"LOOKASIDE_COLOR_STATS".as_ptr()) };
    if path.is_null() {
        return;
    }
    // SAFETY: as above; a file that is opened is closed.
    unsafe {
        let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
        let file = libc::open(CStr::from_ptr(path).as_ptr(), flags, 0o600);
        if file >= 0 {
            let (stats, outside) = (HEAP.stats(), HEAP.outside());
            FixedLine::new(format_args!(
                "{{\"capacity_bytes\":{},\"peak_bytes\":{},\"outside_allocations\":{},\"outside_bytes\":{},\"refused\":{}}}\n",
                stats.capacity_bytes, stats.peak_bytes, outside.allocations, outside.bytes, stats.refused
            ))
            .put(file);
            libc::close(file);
        }
    }
}

#[inline]
fn heap() -> &'static GrowingHeap {
    HEAP.ready(environment::partition, |why| {
        FixedLine::new(format_args!("lookaside: color: {why}; the program runs without\n")).put(2);
    });
    &HEAP
}

fn set_errno(number: c_int) {
    // SAFETY: this thread's own error number.
    unsafe { *libc::__errno_location() = number };
}

/// Null sets `errno`.
fn given(at: *mut u8) -> *mut c_void {
    if at.is_null() {
        set_errno(libc::ENOMEM);
    }
    at.cast()
}

/// A pointer that never came from here: as the C library does.
fn end_program(call: &str, at: *mut c_void, fault: BadFree) -> ! {
    FixedLine::new(format_args!("lookaside: {call}({at:p}): {fault}\n")).put(2);
    // SAFETY: ends the program.
    unsafe { libc::abort() }
}

/// See malloc(3).
#[no_mangle]
pub extern "C" fn malloc(bytes: usize) -> *mut c_void {
    given(heap().malloc(1, bytes))
}

/// See calloc(3).
#[no_mangle]
pub extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    let Some(all) = count.checked_mul(bytes) else { return given(null_mut()) };
    let at = heap().malloc(1, all);
    if !at.is_null() {
        // SAFETY: as many bytes.
        unsafe { at.write_bytes(0, all) };
    }
    given(at)
}

/// See free(3); `errno` stays as it is.
///
/// # Safety
/// `at` is NULL or from here, and not used any more.
#[no_mangle]
pub unsafe extern "C" fn free(at: *mut c_void) {
    // SAFETY: this thread's own error number.
    let kept = unsafe { *libc::__errno_location() };
    // SAFETY: the caller's.
    if let Err(fault) = unsafe { heap().free(at.cast()) } {
        end_program("free", at, fault);
    }
    set_errno(kept);
}

/// See realloc(3). Size 0 frees, as the GNU C library does.
///
/// # Safety
/// As [`free`].
#[no_mangle]
pub unsafe extern "C" fn realloc(at: *mut c_void, bytes: usize) -> *mut c_void {
    if bytes == 0 && !at.is_null() {
        // SAFETY: the caller's.
        unsafe { free(at) };
        return null_mut();
    }
    // SAFETY: the caller's.
    match unsafe { heap().realloc(at.cast(), bytes) } {
        Ok(new) => given(new),
        Err(fault) => end_program("realloc", at, fault),
    }
}

/// See reallocarray(3).
///
/// # Safety
/// As [`free`].
#[no_mangle]
pub unsafe extern "C" fn reallocarray(at: *mut c_void, count: usize, bytes: usize) -> *mut c_void {
    match count.checked_mul(bytes) {
        // SAFETY: the caller's.
        Some(all) => unsafe { realloc(at, all) },
        None => given(null_mut()),
    }
}

/// See memalign(3).
#[no_mangle]
pub extern "C" fn memalign(alignment: usize, bytes: usize) -> *mut c_void {
    if !alignment.is_power_of_two() {
        set_errno(libc::EINVAL);
        return null_mut();
    }
    given(heap().malloc(alignment, bytes))
}

/// See aligned_alloc(3).
#[no_mangle]
pub extern "C" fn aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void {
    memalign(alignment, bytes)
}

/// See posix_memalign(3).
///
/// # Safety
/// `at` points to a pointer of the caller's.
#[no_mangle]
pub unsafe extern "C" fn posix_memalign(at: *mut *mut c_void, alignment: usize, bytes: usize) -> c_int {
    if !alignment.is_power_of_two() || alignment < std::mem::size_of::<usize>() {
        return libc::EINVAL;
    }
    let new = heap().malloc(alignment, bytes);
    if new.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's.
    unsafe { *at = new.cast() };
    0
}

/// Bytes of a page that the program knows.
const PAGE: usize = 4096;

/// See valloc(3).
#[no_mangle]
pub extern "C" fn valloc(bytes: usize) -> *mut c_void {
    memalign(PAGE, bytes)
}

/// See pvalloc(3).
#[no_mangle]
pub extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    bytes.max(1).checked_next_multiple_of(PAGE).map_or_else(|| given(null_mut()), |whole| memalign(PAGE, whole))
}

/// See malloc_usable_size(3).
///
/// # Safety
/// `at` is NULL or from here.
#[no_mangle]
pub unsafe extern "C" fn malloc_usable_size(at: *mut c_void) -> usize {
    if at.is_null() {
        return 0;
    }
    // SAFETY: the caller's.
    match unsafe { heap().usable(at.cast()) } {
        Ok(bytes) => bytes,
        Err(fault) => end_program("malloc_usable_size", at, fault),
    }
}
