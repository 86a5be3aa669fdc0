//! System calls of the helper. None of them goes through the C library, whose `errno` belongs to a thread that it
//! knows.

use std::ffi::CStr;

use lookaside_runtime::bake::freestanding::LET_IN;

pub(crate) use syscalls::Errno;
use syscalls::{syscall, Sysno};

/// Nanoseconds of a clock (`libc::CLOCK_…`).
pub(crate) fn clock_nanos(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills the structure given; where it is refused, it stays zero.
    let _ = unsafe { syscall!(Sysno::clock_gettime, clock, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// The clock that only goes forward.
pub(crate) fn now_nanos() -> u64 {
    clock_nanos(libc::CLOCK_MONOTONIC)
}

/// Sleeps.
pub(crate) fn sleep_nanos(nanos: u64) {
    let time = timespec(nanos);
    // SAFETY: reads the structure given.
    let _ = unsafe { syscall!(Sysno::nanosleep, &raw const time, 0) };
}

fn timespec(nanos: u64) -> libc::timespec {
    libc::timespec { tv_sec: (nanos / 1_000_000_000) as libc::time_t, tv_nsec: (nanos % 1_000_000_000) as libc::c_long }
}

/// Lets the program's mmap and munmap in after a call that held `mmap_lock` ([`LET_IN`]).
pub(crate) fn let_others_in() {
    sleep_nanos(LET_IN.as_nanos() as u64);
}

/// Leaves the CPU to those who wait for it.
pub(crate) fn yield_cpu() {
    // SAFETY: takes nothing.
    let _ = unsafe { syscall!(Sysno::sched_yield) };
}

/// Opens a file below a folder (`libc::AT_FDCWD`: wherever it is).
pub(crate) fn open(folder: i32, path: &CStr, flags: i32) -> Result<i32, Errno> {
    // SAFETY: reads the path; a new file can harm nothing.
    let fd = unsafe { syscall!(Sysno::openat, folder, path.as_ptr(), flags | libc::O_CLOEXEC, 0o666) }?;
    Ok(fd as i32)
}

/// Closes a file of the caller's own.
pub(crate) fn close(fd: i32) {
    // SAFETY: the caller's own file.
    let _ = unsafe { syscall!(Sysno::close, fd) };
}

/// Reads from where the file stands.
pub(crate) fn read(fd: i32, into: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: fills at most the buffer.
    unsafe { syscall!(Sysno::read, fd, into.as_mut_ptr(), into.len()) }
}

/// A whole small file, as much of it as there is room for.
pub(crate) fn read_file<'a>(folder: i32, path: &CStr, into: &'a mut [u8]) -> Result<&'a [u8], Errno> {
    let fd = open(folder, path, libc::O_RDONLY)?;
    let length = read(fd, into);
    close(fd);
    Ok(into.get(..length?).unwrap_or_default())
}

/// A pipe of one page, which neither end waits for: the end to read from, and the one to write to.
pub(crate) fn pipe() -> Result<[i32; 2], Errno> {
    let mut ends = [0; 2];
    // SAFETY: fills the two numbers.
    unsafe { syscall!(Sysno::pipe2, ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) }?;
    // What all pipes of a user may have together is limited. Where the system refuses less, it is as large as others.
    // SAFETY: takes numbers.
    let _ = unsafe { syscall!(Sysno::fcntl, ends[0], libc::F_SETPIPE_SZ, 4096) };
    Ok(ends)
}

/// Waits until there is something to read; `false` = there was nothing for so long.
pub(crate) fn wait_readable(fd: i32, nanos: u64) -> Result<bool, Errno> {
    let mut time = timespec(nanos);
    let mut file = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: fills the structure, and writes into the time what is left of it; the signals that are blocked stay so.
    match unsafe { syscall!(Sysno::ppoll, &raw mut file, 1, &raw mut time, 0, 0) } {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false), // stopped, and continued
        Err(errno) => Err(errno),
    }
}

/// Back to the file's begin.
pub(crate) fn rewind(fd: i32) -> Result<(), Errno> {
    // SAFETY: moves the caller's own file.
    unsafe { syscall!(Sysno::lseek, fd, 0, libc::SEEK_SET) }.map(|_| ())
}

/// Writes all at once; a file opened for appending gets it as one piece.
pub(crate) fn write(fd: i32, bytes: &[u8]) -> Result<usize, Errno> {
    // SAFETY: reads the buffer.
    unsafe { syscall!(Sysno::write, fd, bytes.as_ptr(), bytes.len()) }
}

/// Writes at the file's begin.
pub(crate) fn write_at_begin(fd: i32, bytes: &[u8]) -> Result<usize, Errno> {
    // SAFETY: reads the buffer.
    unsafe { syscall!(Sysno::pwrite64, fd, bytes.as_ptr(), bytes.len(), 0) }
}

/// A new file in memory, which others see by this name in `/proc` (Linux, include/uapi/linux/memfd.h).
pub(crate) fn memory_file(name: &CStr) -> Result<i32, Errno> {
    let create = |flags: u32| {
        // SAFETY: reads the name; a new file can harm nothing.
        unsafe { syscall!(Sysno::memfd_create, name.as_ptr(), flags) }
    };
    // Systems that let nobody execute such files (`vm.memfd_noexec`) want it said; before Linux 6.3 it can't be.
    let file = match create(libc::MFD_CLOEXEC | libc::MFD_NOEXEC_SEAL) {
        Err(Errno::EINVAL) => create(libc::MFD_CLOEXEC),
        other => other,
    }?;
    Ok(file as i32)
}

/// Number of this process.
pub(crate) fn pid() -> i32 {
    // SAFETY: a number is told.
    unsafe { syscall!(Sysno::getpid) }.unwrap_or_default() as i32
}

/// Blocks all signals of the calling thread; gives those that were blocked before.
pub(crate) fn block_signals() -> u64 {
    set_signal_mask(u64::MAX)
}

/// Sets the signals that are blocked.
pub(crate) fn set_signal_mask(mask: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: masks of the kernel's size, 8 bytes.
    let _ = unsafe { syscall!(Sysno::rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, &raw mut before, 8) };
    before
}

/// Starts a thread of this process at `entry` with `argument`, on a stack whose end is given, with a block of its own
/// where the C library's threads have theirs. Files, folder and memory are the program's.
///
/// # Safety
/// The stack and the block are the thread's alone as long as it lives; `entry` never returns; the caller blocks all
/// signals meanwhile.
pub(crate) unsafe fn spawn<T>(
    stack_end: *mut u8,
    block: *mut u8,
    entry: extern "C" fn(*mut T) -> !,
    argument: *mut T,
) -> Result<(), Errno> {
    let flags = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_SETTLS;
    let result: isize;
    // SAFETY: the new thread begins after the call with the same registers but its own stack, calls `entry`, and never
    // comes back; in the caller's thread only the registers named are changed.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") Sysno::clone as isize => result,
            in("rdi") flags as u64,
            in("rsi") stack_end,
            in("rdx") 0,
            in("r10") 0,
            in("r8") block,
            in("r12") argument,
            in("r13") entry,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    Errno::from_ret(result as usize).map(|_| ())
}

/// Ends the calling thread with this exit code.
pub(crate) fn exit_thread(code: i32) -> ! {
    loop {
        // SAFETY: ends this thread only.
        let _ = unsafe { syscall!(Sysno::exit, code) };
    }
}

/// Ends the process by a signal, whatever the program does at it. Returns where that is refused.
pub(crate) fn die_of(signal: i32) {
    // As the kernel has it: what to do (0: as usual), flags, restorer, mask.
    let as_usual = [0u64; 4];
    let mask = !1u64.checked_shl((signal as u32).wrapping_sub(1)).unwrap_or(0);
    // SAFETY: a signal's disposition and this thread's mask, of a process that is ending.
    unsafe {
        let _ = syscall!(Sysno::rt_sigaction, signal, as_usual.as_ptr(), 0, 8);
        let _ = syscall!(Sysno::rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, 0, 8);
        let _ = syscall!(Sysno::kill, pid(), signal);
    }
}

/// Leaves the program's table of files for one of its own, an empty one (Linux 5.9 and later).
pub(crate) fn leave_files() -> Result<(), Errno> {
    /// Linux, include/uapi/linux/close_range.h.
    const CLOSE_RANGE_UNSHARE: u32 = 2;
    // SAFETY: the table is unshared first, so that the program's files stay open.
    unsafe { syscall!(Sysno::close_range, 0, u32::MAX, CLOSE_RANGE_UNSHARE) }.map(|_| ())
}

/// Gives up what rights this thread has beyond its user's, and names it.
pub(crate) fn lower(name: &CStr) {
    const VERSION_3: u32 = 0x2008_0522; // _LINUX_CAPABILITY_VERSION_3, include/uapi/linux/capability.h
    let header = [VERSION_3, 0];
    let none = [0u32; 6];
    // SAFETY: they act on this thread alone and read what they are given.
    unsafe {
        let _ = syscall!(Sysno::prctl, libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0);
        let _ = syscall!(Sysno::prctl, libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let _ = syscall!(Sysno::capset, header.as_ptr(), none.as_ptr());
    }
}

/// CPUs, a bit each: as many as the kernel is built for at most.
pub(crate) type CpuMask = [u64; 128];

/// CPUs that this thread may use.
pub(crate) fn allowed_cpus() -> Result<CpuMask, Errno> {
    let mut mask: CpuMask = [0; 128];
    // SAFETY: fills at most the mask.
    unsafe { syscall!(Sysno::sched_getaffinity, 0, size_of::<CpuMask>(), mask.as_mut_ptr()) }.map(|_| mask)
}

/// Keeps this thread on these CPUs.
pub(crate) fn stay_on(mask: &CpuMask) -> Result<(), Errno> {
    // SAFETY: reads the mask.
    unsafe { syscall!(Sysno::sched_setaffinity, 0, size_of::<CpuMask>(), mask.as_ptr()) }.map(|_| ())
}

/// The CPU that this runs on.
pub(crate) fn current_cpu() -> u32 {
    let mut cpu = 0u32;
    // SAFETY: fills the number given.
    let _ = unsafe { syscall!(Sysno::getcpu, &raw mut cpu, 0, 0) };
    cpu
}

/// User whose a process is, of its folder in `/proc`. The files in there are root's as soon as the process has changed
/// its user.
pub(crate) fn owner(folder: i32) -> Result<u32, Errno> {
    // SAFETY: plain numbers.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: fills the structure given.
    unsafe { syscall!(Sysno::newfstatat, folder, c"".as_ptr(), &raw mut stat, libc::AT_EMPTY_PATH) }?;
    Ok(stat.st_uid)
}

/// An `ioctl` whose argument is a structure.
///
/// # Safety
/// The structure is the one that the call takes, and what it points to is the caller's.
pub(crate) unsafe fn ioctl<T>(fd: i32, request: u64, argument: &mut T) -> Result<usize, Errno> {
    // SAFETY: the caller's.
    unsafe { syscall!(Sysno::ioctl, fd, request, argument as *mut T) }
}

/// Makes huge pages of memory of the caller's process.
pub(crate) fn collapse(start: u64, bytes: u64) -> Result<(), Errno> {
    // SAFETY: the advice changes no contents; the kernel checks the range.
    unsafe { syscall!(Sysno::madvise, start, bytes, libc::MADV_COLLAPSE) }.map(|_| ())
}

/// Splits the huge page that begins there: the kernel does when advice concerns a part of it (mm/madvise.c,
/// `madvise_cold_or_pageout_pte_range`).
pub(crate) fn split(start: u64) -> Result<(), Errno> {
    // SAFETY: the advice changes no contents; the kernel checks the range.
    unsafe { syscall!(Sysno::madvise, start, 4096, libc::MADV_COLD) }.map(|_| ())
}

/// Whether pages are resident, a byte each; reads tables only.
pub(crate) fn mincore(start: u64, pages: u64, resident: &mut [u8]) -> Result<(), Errno> {
    let pages = pages.min(resident.len() as u64);
    // SAFETY: fills a byte a page, for which there is room; the range may be anything.
    unsafe { syscall!(Sysno::mincore, start, pages << 12, resident.as_mut_ptr()) }.map(|_| ())
}
