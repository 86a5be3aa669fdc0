//! System calls that change the memory map of the caller's own process, and a copy that calls nobody.

use crate::sys::Errno;
use syscalls::{syscall, Sysno};

const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
const READ_EXECUTE: i32 = libc::PROT_READ | libc::PROT_EXEC;
/// Private memory for which nothing is set aside: what is not touched costs nothing.
const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

/// New private memory, all zero, to read and write.
pub(crate) fn map(bytes: u64) -> Result<u64, Errno> {
    // SAFETY: a new mapping wherever the system likes.
    unsafe { syscall!(Sysno::mmap, 0, bytes, READ_WRITE, PRIVATE, -1isize, 0) }.map(|at| at as u64)
}

/// Gives back memory; of none, nothing.
///
/// # Safety
/// Nobody uses it any more.
pub(crate) unsafe fn unmap(start: u64, bytes: u64) {
    if bytes > 0 {
        // SAFETY: the caller's.
        let _ = unsafe { syscall!(Sysno::munmap, start, bytes) };
    }
}

/// Has the kernel make huge pages of memory as it is touched. Where it does not, a collapse may yet.
pub(crate) fn advise_huge(start: u64, bytes: u64) {
    // SAFETY: the advice changes no contents.
    let _ = unsafe { syscall!(Sysno::madvise, start, bytes, libc::MADV_HUGEPAGE) };
}

/// Brings pages into memory, as reading them does; what can't be read is an error and no signal (Linux 5.14).
pub(crate) fn bring_in(start: u64, bytes: u64) -> Result<(), Errno> {
    // SAFETY: the advice changes no contents.
    unsafe { syscall!(Sysno::madvise, start, bytes, libc::MADV_POPULATE_READ) }.map(|_| ())
}

/// Makes code of memory.
///
/// # Safety
/// Nobody writes to it any more.
pub(crate) unsafe fn make_executable(start: u64, bytes: u64) -> Result<(), Errno> {
    // SAFETY: the caller's.
    unsafe { syscall!(Sysno::mprotect, start, bytes, READ_EXECUTE) }.map(|_| ())
}

/// Moves memory over other memory, in one step for all who look.
///
/// # Safety
/// What is there is the same as what is moved there, or nobody uses it.
pub(crate) unsafe fn move_over(from: u64, bytes: u64, to: u64) -> Result<(), Errno> {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: the caller's.
    unsafe { syscall!(Sysno::mremap, from, bytes, bytes, flags, to) }.map(|_| ())
}

/// Puts new memory with these contents, as code, where nothing is mapped: a refused move may have left nothing there.
///
/// # Safety
/// `from` has these bytes, and nobody executes what is at `to`.
pub(crate) unsafe fn restore(from: u64, bytes: u64, to: u64) {
    // SAFETY: the caller's.
    unsafe {
        let flags = PRIVATE | libc::MAP_FIXED_NOREPLACE;
        if syscall!(Sysno::mmap, to, bytes, READ_WRITE, flags, -1isize, 0).is_ok() {
            copy(from, to, bytes);
            let _ = make_executable(to, bytes);
        }
    }
}

/// Copies by one instruction: the C library's own copy may be what is being moved.
///
/// # Safety
/// Both are memory of so many bytes, and do not overlap.
pub(crate) unsafe fn copy(from: u64, to: u64, bytes: u64) {
    // SAFETY: the caller's; the direction flag is clear (System V ABI).
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") bytes => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
}

/// Touches a page.
///
/// # Safety
/// It is memory of the caller's own.
pub(crate) unsafe fn touch(at: u64) {
    // SAFETY: the caller's.
    unsafe { (at as *mut u8).write_volatile(0) }
}

/// Whether huge pages are switched off for this process but where they are asked for by a collapse; `true` = wholly.
pub(crate) fn huge_pages_are_off() -> bool {
    /// `PR_THP_DISABLE_EXCEPT_ADVISED` of `linux/prctl.h`, since Linux 6.18.
    const EXCEPT_ADVISED: usize = 1 << 1;
    // SAFETY: tells a number.
    let flags = unsafe { syscall!(Sysno::prctl, libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) }.unwrap_or(0);
    flags & 1 != 0 && flags & EXCEPT_ADVISED == 0
}
