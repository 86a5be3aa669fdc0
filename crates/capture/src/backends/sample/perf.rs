//! The kernel's clock event: its attributes, opening it, and what a refusal means.
//!
//! The layout and the numbers are those of `linux/perf_event.h`, which is a stable interface.

use std::fs::File;
use std::io;

use lookaside_host::perf::{PerfEventAttr, Refusal, DISABLED, EXCLUDE_HV, EXCLUDE_KERNEL, INHERIT, PERF_TYPE_SOFTWARE};

const COUNT_SW_CPU_CLOCK: u64 = 0;

const SAMPLE_IP: u64 = 1;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_PERIOD: u64 = 1 << 8;
const SAMPLE_REGS_USER: u64 = 1 << 12;

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
const REGISTER_MASK: u64 = 0xff_00ff;

/// When sampling begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Now.
    Now,
    /// When the process calls exec.
    OnExec,
    /// When it is asked to ([`lookaside_host::perf::switch`]).
    WhenAsked,
}

/// Opens the clock event on thread `tid` and what it starts, as far as they run on `cpu`: one
/// sample each `period_ns` of its time; wake-up after `watermark_bytes` of records.
pub fn open(tid: u32, cpu: u32, period_ns: u64, watermark_bytes: u32, begin: Begin) -> io::Result<File> {
    attributes(period_ns, watermark_bytes, begin).open(tid, Some(cpu))
}

fn attributes(period_ns: u64, watermark_bytes: u32, begin: Begin) -> PerfEventAttr {
    let mut flags = INHERIT
        | EXCLUDE_KERNEL
        | EXCLUDE_HV
        | FLAG_MMAP
        | FLAG_COMM
        | FLAG_TASK
        | FLAG_WATERMARK
        | FLAG_MMAP_DATA
        | FLAG_SAMPLE_ID_ALL
        | FLAG_MMAP2
        | FLAG_COMM_EXEC
        | FLAG_USE_CLOCKID;
    match begin {
        Begin::Now => {}
        Begin::OnExec => flags |= DISABLED | FLAG_ENABLE_ON_EXEC,
        Begin::WhenAsked => flags |= DISABLED,
    }
    let mut attr = PerfEventAttr::new(PERF_TYPE_SOFTWARE, COUNT_SW_CPU_CLOCK);
    attr.sample_period = period_ns;
    attr.sample_type = SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_PERIOD | SAMPLE_REGS_USER;
    attr.flags = flags;
    attr.wakeup_watermark = watermark_bytes;
    attr.sample_regs_user = REGISTER_MASK;
    attr.clockid = libc::CLOCK_MONOTONIC;
    attr
}

/// Nanoseconds on the clock that the records' times are on.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Why the event could not be opened and what to do, in one line. `attach` = on a process not ours.
pub fn refusal(error: &io::Error, attach: bool) -> String {
    let reason = match lookaside_host::perf::refusal(error) {
        Refusal::Forbidden => forbidden(lookaside_host::perf_event_paranoid(), attach),
        Refusal::NoPerfEvents => "this kernel or sandbox has no perf events: run on a Linux kernel with CONFIG_PERF_EVENTS, or use the valgrind backend".to_owned(),
        Refusal::NoThread => "no such process: check the pid".to_owned(),
        Refusal::TooManyFiles => "too many open files: raise `ulimit -n` (one descriptor per CPU and thread)".to_owned(),
        Refusal::NoEvent | Refusal::Invalid => "this kernel cannot sample the clock with user registers: use the valgrind backend".to_owned(),
        Refusal::Other => "use the valgrind backend".to_owned(),
    };
    format!("perf_event_open is refused ({error}): {reason}")
}

fn forbidden(paranoid_level: Option<i32>, attach: bool) -> String {
    let whose = if attach { " (for another user's process: run as that user or as root)" } else { "" };
    match paranoid_level {
        Some(level @ 3..) => format!(
            "kernel.perf_event_paranoid is {level}: `sysctl kernel.perf_event_paranoid=2` as root allows it{whose}"
        ),
        _ if attach => {
            "the process is another user's, or the container's seccomp profile forbids it: run as that user \
            or as root, or allow the call"
                .to_owned()
        }
        _ => "a seccomp profile or security module forbids it: allow the perf_event_open call (Docker: --cap-add \
            PERFMON or --security-opt seccomp=FILE)"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn what_forbids_it_is_told_by_whose_process_and_by_the_systems_level() {
        for (level, attach, word) in [
            (Some(3), false, "perf_event_paranoid is 3: `sysctl kernel.perf_event_paranoid=2` as root allows it"),
            (Some(4), true, "allows it (for another user's process: run as that user or as root)"),
            (Some(2), true, "the process is another user's"),
            (Some(2), false, "a seccomp profile or security module forbids it"),
            (None, false, "a seccomp profile or security module forbids it"),
        ] {
            let line = forbidden(level, attach);
            assert!(line.contains(word) && line.contains("another user") == attach, "{level:?}: {line}");
        }
    }

    /// The places of the bits and the registers as `linux/perf_event.h` and `asm/perf_regs.h` list them.
    #[test]
    fn the_kernel_is_asked_for_what_the_records_are_read_by() {
        let bits = |places: &[u32]| places.iter().map(|&place| 1u64 << place).sum::<u64>();
        for begin in [Begin::Now, Begin::OnExec] {
            let attr = attributes(500_000, 4096, begin);
            assert_eq!((attr.kind, attr.config, attr.sample_period, attr.wakeup_watermark), (1, 0, 500_000, 4096));
            // ip, tid, time, period, regs_user
            assert_eq!(attr.sample_type, bits(&[0, 1, 2, 8, 12]));
            assert_eq!(attr.sample_regs_user, bits(&[0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23]));
            assert_eq!(attr.clockid, 1, "CLOCK_MONOTONIC");
            // inherit, exclude_kernel, exclude_hv, mmap, comm, task, watermark, mmap_data, sample_id_all, mmap2,
            // comm_exec, use_clockid; of an event that begins later also disabled, enable_on_exec
            let later = if begin == Begin::OnExec { bits(&[0, 12]) } else { 0 };
            assert_eq!(attr.flags, bits(&[1, 5, 6, 8, 9, 13, 14, 17, 18, 23, 24, 25]) + later, "{begin:?}");
        }
    }

    #[test]
    fn the_clock_is_the_systems_monotonic_one() {
        let system_ns = || {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
            std::time::Duration::new(now.tv_sec as u64, now.tv_nsec as u32).as_nanos()
        };
        let (before, now, after) = (system_ns(), now_ns(), system_ns());
        assert!((before..=after).contains(&u128::from(now)), "{before} {now} {after}");
    }
}
