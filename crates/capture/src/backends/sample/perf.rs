//! The kernel's clock event: its attributes, opening it, and what a refusal means.
//!
//! The layout and the numbers are those of `linux/perf_event.h`, which is a stable interface.

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, RawFd};

/// `struct perf_event_attr`, version 5 (Linux 4.1).
#[repr(C)]
#[derive(Default)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_watermark: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

const TYPE_SOFTWARE: u32 = 1;
const COUNT_SW_CPU_CLOCK: u64 = 0;

const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_PERIOD: u64 = 1 << 8;
const SAMPLE_REGS_USER: u64 = 1 << 12;

const FLAG_DISABLED: u64 = 1;
const FLAG_INHERIT: u64 = 1 << 1;
const FLAG_EXCLUDE_KERNEL: u64 = 1 << 5;
const FLAG_EXCLUDE_HV: u64 = 1 << 6;
const FLAG_MMAP: u64 = 1 << 8;
const FLAG_COMM: u64 = 1 << 9;
const FLAG_ENABLE_ON_EXEC: u64 = 1 << 12;
const FLAG_TASK: u64 = 1 << 13;
const FLAG_WATERMARK: u64 = 1 << 14;
const FLAG_MMAP_DATA: u64 = 1 << 17;
const FLAG_SAMPLE_ID_ALL: u64 = 1 << 18;
const FLAG_MMAP2: u64 = 1 << 23;
const FLAG_COMM_EXEC: u64 = 1 << 24;
const FLAG_USE_CLOCKID: u64 = 1 << 25;

/// Registers in each sample, by the kernel's numbers: AX BX CX DX SI DI BP SP, R8 to R15.
const REGISTER_MASK: u64 = 0xff | 0xff << 16;

const IOC_SET_OUTPUT: libc::c_ulong = 0x2405;

/// When sampling begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Now.
    Now,
    /// When the process calls exec.
    OnExec,
}

/// Opens the clock event on thread `tid` and what it starts, as far as they run on `cpu`: one
/// sample each `period_ns` of its time; wake-up after `watermark_bytes` of records.
pub fn open(tid: u32, cpu: u32, period_ns: u64, watermark_bytes: u32, begin: Begin) -> io::Result<File> {
    let mut flags = FLAG_INHERIT
        | FLAG_EXCLUDE_KERNEL
        | FLAG_EXCLUDE_HV
        | FLAG_MMAP
        | FLAG_COMM
        | FLAG_TASK
        | FLAG_WATERMARK
        | FLAG_MMAP_DATA
        | FLAG_SAMPLE_ID_ALL
        | FLAG_MMAP2
        | FLAG_COMM_EXEC
        | FLAG_USE_CLOCKID;
    if begin == Begin::OnExec {
        flags |= FLAG_DISABLED | FLAG_ENABLE_ON_EXEC;
    }
    let attr = Attr {
        kind: TYPE_SOFTWARE,
        size: size_of::<Attr>() as u32,
        config: COUNT_SW_CPU_CLOCK,
        sample_period: period_ns,
        sample_type: SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_PERIOD | SAMPLE_REGS_USER,
        flags,
        wakeup_watermark: watermark_bytes,
        sample_regs_user: REGISTER_MASK,
        clockid: libc::CLOCK_MONOTONIC,
        ..Attr::default()
    };
    const FLAG_FD_CLOEXEC: libc::c_ulong = 8;
    const NO_GROUP: libc::c_int = -1;
    // SAFETY: `attr` is a `perf_event_attr` of the size that it tells, and lives through the call.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attr,
            tid as libc::pid_t,
            cpu as libc::c_int,
            NO_GROUP,
            FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call made this descriptor, and nobody else owns it.
    Ok(unsafe { File::from_raw_fd(fd as RawFd) })
}

/// Sends the records of `event` to the ring of `leader`, which must be on the same CPU.
pub fn redirect(event: &File, leader: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: both are open perf events; the call takes a descriptor and no memory.
    match unsafe { libc::ioctl(event.as_raw_fd(), IOC_SET_OUTPUT, leader.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Nanoseconds on the clock that the records' times are on.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Why the event could not be opened and what to do, in one line. `attach` = on a process not ours.
pub fn refusal(error: &io::Error, attach: bool) -> String {
    let reason = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
            let level = paranoid.trim().parse::<i32>().ok();
            let whose = if attach { " (for another user's process: run as that user or as root)" } else { "" };
            match level {
                Some(level @ 3..) => format!("kernel.perf_event_paranoid is {level}: `sysctl kernel.perf_event_paranoid=2` as root allows it{whose}"),
                _ if attach => "the process is another user's, or the container's seccomp profile forbids it: run as that user or as root, or allow the call".to_owned(),
                _ => "a seccomp profile or security module forbids it: allow the perf_event_open call (Docker: --cap-add PERFMON or --security-opt seccomp=FILE)".to_owned(),
            }
        }
        Some(libc::ENOSYS) => "this kernel or sandbox has no perf events: run on a Linux kernel with CONFIG_PERF_EVENTS, or use the valgrind backend".to_owned(),
        Some(libc::ESRCH) => "no such process: check the pid".to_owned(),
        Some(libc::EMFILE) => "too many open files: raise `ulimit -n` (one descriptor per CPU and thread)".to_owned(),
        Some(libc::EOPNOTSUPP | libc::ENOENT | libc::EINVAL) => "this kernel cannot sample the clock with user registers: use the valgrind backend".to_owned(),
        _ => "use the valgrind backend".to_owned(),
    };
    format!("perf_event_open is refused ({error}): {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attributes_have_the_documented_size() {
        // PERF_ATTR_SIZE_VER5
        assert_eq!(size_of::<Attr>(), 112);
        assert_eq!(std::mem::offset_of!(Attr, sample_regs_user), 80);
        assert_eq!(std::mem::offset_of!(Attr, clockid), 92);
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        for (code, word) in [
            (libc::EACCES, "allow"),
            (libc::EPERM, "allow"),
            (libc::ENOSYS, "valgrind"),
            (libc::ESRCH, "pid"),
            (libc::EMFILE, "ulimit"),
        ] {
            let line = refusal(&io::Error::from_raw_os_error(code), false);
            assert!(line.contains(word) && line.starts_with("perf_event_open") && !line.contains('\n'), "{line}");
        }
    }
}
