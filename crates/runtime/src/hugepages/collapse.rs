//! Making huge pages of another process's memory: `process_madvise(MADV_COLLAPSE)`, a window a call. No code runs in the process,
//! and what it reads and writes stays as it is, whether a call succeeds or not.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::process::{pidfd_open, Pid, PidfdFlags};
use serde::Serialize;

use super::windows::WINDOW_BYTES;
use super::{pages, HugeError};
use crate::bake::Identity;

/// Least pause after a call. The kernel holds `mmap_lock` for writing while it copies, and page faults of the program wait; a waiting
/// thread that is not awake yet is let in only after 4 ms of the lock's being taken again (kernel/locking/rwsem.c, RWSEM_WAIT_TIMEOUT).
const LEAST_PAUSE: Duration = Duration::from_millis(1);

/// The kernel's word on huge pages; the folder is not there where they are not built in.
const SYSTEM: &str = "/sys/kernel/mm/transparent_hugepage";

/// What became of a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Tried {
    /// It is one huge page.
    Collapsed {
        /// How long the call took.
        nanos: u64,
    },
    /// It is as it was.
    Refused {
        /// How long the call took.
        nanos: u64,
        /// The system's error number; 0 = the call was not made.
        errno: i32,
        /// Why, and what to do.
        why: String,
    },
}

impl Tried {
    /// It is one huge page now.
    pub fn is_collapsed(&self) -> bool {
        matches!(self, Self::Collapsed { .. })
    }

    /// How long the call took.
    pub fn nanos(&self) -> u64 {
        match self {
            Self::Collapsed { nanos } | Self::Refused { nanos, .. } => *nanos,
        }
    }
}

/// A hold on a process, and on the program that it runs: a number that is given anew, or an exec, is noticed.
#[derive(Debug)]
pub struct Handle {
    pid: u32,
    process: OwnedFd,
    identity: Identity,
}

impl Handle {
    /// Takes hold of a process, and finds out whether huge pages may be made of its memory. Nothing is changed.
    ///
    /// # Errors
    /// In a line: no such process; a kernel without the calls; who may; huge pages switched off for the process.
    pub fn open(pid: u32) -> Result<Self, HugeError> {
        let identity = Identity::of(pid)?;
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let number = number.ok_or_else(|| HugeError::Bad(format!("process {pid}: not a process number")))?;
        let process = pidfd_open(number, PidfdFlags::empty())
            .map_err(|e| HugeError::Bad(format!("process {pid}: pidfd_open: {e}")))?;
        check_built_in()?;
        // Without a range the call changes nothing, and all but the range is checked.
        if let Err(errno) = collapse(process.as_fd(), None) {
            return Err(HugeError::Bad(format!("process {pid}: {}", refusal(errno))));
        }
        if switched_off(pid) {
            return Err(HugeError::Bad(format!(
                "process {pid}: huge pages are switched off for it, by prctl(PR_SET_THP_DISABLE) in it or in what started it"
            )));
        }
        Ok(Self { pid, process, identity })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its name.
    pub fn comm(&self) -> &str {
        &self.identity.comm
    }

    /// Whether it still runs the program that it ran when it was taken hold of.
    pub fn is_same(&self) -> bool {
        Identity::of(self.pid).is_ok_and(|now| now == self.identity)
    }

    /// Makes one huge page of a window, and pauses as long as that took, at least a millisecond: page faults of the program find the
    /// lock free for at least half of the time.
    pub fn collapse(&self, start: u64) -> Tried {
        if !self.is_same() {
            let why = "the process has ended, or runs another program now".to_string();
            return Tried::Refused { nanos: 0, errno: 0, why };
        }
        let began = Instant::now();
        let done = collapse(self.process.as_fd(), Some(start));
        let took = began.elapsed();
        std::thread::sleep(took.max(LEAST_PAUSE));
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        match done {
            Ok(()) => Tried::Collapsed { nanos },
            Err(errno) => Tried::Refused { nanos, errno, why: self.why(errno, start) },
        }
    }

    /// Why a window was refused. The numbers are few and the causes many: what can be looked up is.
    fn why(&self, errno: i32, start: u64) -> String {
        let gone = !pages::is_mapped(self.pid, start);
        let text = match errno {
            libc::ESRCH => "the process has ended",
            _ if !self.is_same() => "the process has ended, or runs another program now",
            libc::ENOMEM | libc::EINVAL | libc::EFAULT if gone => "it is not mapped any more, or in parts",
            libc::EINVAL if switched_off(self.pid) => {
                "huge pages are switched off for the process by prctl(PR_SET_THP_DISABLE)"
            }
            libc::EINVAL => "the kernel makes no huge page of it (refused by the program by MADV_NOHUGEPAGE meanwhile, nothing in memory, pages of another kind among them)",
            libc::ENOMEM => "no 2 MiB of memory in a row are free (fragmented, or all in use): as root, echo 1 > /proc/sys/vm/compact_memory",
            libc::EBUSY => "the control group of the process has reached its limit of memory",
            libc::EAGAIN => "pages of it are in use by the kernel at the moment (being written out, pinned by a device, moved): try again",
            libc::EPERM | libc::EACCES => refusal(errno),
            _ => "",
        };
        match text {
            "" => std::io::Error::from_raw_os_error(errno).to_string(),
            text => text.to_string(),
        }
    }
}

/// Why the call is refused whatever the range.
fn refusal(errno: i32) -> &'static str {
    match errno {
        libc::ENOSYS => "this kernel or sandbox has no process_madvise (Linux 5.10 and later)",
        libc::EINVAL => "this kernel makes no huge pages of other processes' memory: needs MADV_COLLAPSE (Linux 6.1 and later)",
        libc::EPERM => "needs root or CAP_SYS_NICE (sudo setcap cap_sys_nice,cap_sys_ptrace+ep on the lookaside command), also for processes of one's own",
        libc::EACCES => "another user's; needs root, or CAP_SYS_PTRACE and CAP_SYS_NICE",
        libc::ESRCH => "it has ended",
        _ => "process_madvise is refused",
    }
}

/// Finds out, before a program is started, whether huge pages could be made of its memory.
///
/// # Errors
/// In a line: what the kernel lacks, who may.
pub fn check() -> Result<(), HugeError> {
    /// Of `linux/capability.h`.
    const CAP_SYS_NICE: u32 = 23;
    check_built_in()?;
    let own = std::process::id();
    let ours = i32::try_from(own).ok().and_then(Pid::from_raw);
    let ours = ours.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let ours = ours.ok_or_else(|| HugeError::Bad("this kernel has no pidfd_open (Linux 5.3 and later)".into()))?;
    if let Err(errno) = collapse(ours.as_fd(), None) {
        return Err(HugeError::Bad(refusal(errno).into()));
    }
    // For oneself newer kernels ask for no right.
    let rights = status(own, "CapEff").and_then(|mask| u64::from_str_radix(&mask, 16).ok()).unwrap_or(0);
    if rights >> CAP_SYS_NICE & 1 == 0 {
        return Err(HugeError::Bad(refusal(libc::EPERM).into()));
    }
    if switched_off(own) {
        return Err(HugeError::Bad(
            "huge pages are switched off for this command and what it starts, by prctl(PR_SET_THP_DISABLE)".into(),
        ));
    }
    Ok(())
}

fn check_built_in() -> Result<(), HugeError> {
    match std::path::Path::new(SYSTEM).exists() {
        true => Ok(()),
        false => Err(HugeError::Bad(format!("this kernel has no transparent huge pages ({SYSTEM} is not there)"))),
    }
}

/// Huge pages are off for the process, whoever asks.
fn switched_off(pid: u32) -> bool {
    status(pid, "THP_enabled").is_some_and(|word| word == "0")
}

/// A line of `/proc/PID/status`.
fn status(pid: u32, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().to_string())
}

/// The call, for a window or, without one, for nothing.
fn collapse(process: BorrowedFd<'_>, start: Option<u64>) -> Result<(), i32> {
    let range = libc::iovec {
        iov_base: start.unwrap_or(0) as *mut libc::c_void,
        iov_len: start.map_or(0, |_| WINDOW_BYTES as usize),
    };
    // SAFETY: the vector has as many ranges as is said; the range is the other process's, which the kernel checks, and the advice
    // changes no contents.
    let done = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            process.as_raw_fd(),
            &raw const range,
            libc::c_ulong::from(start.is_some()),
            libc::MADV_COLLAPSE,
            0 as libc::c_uint,
        )
    };
    match done {
        0.. => Ok(()),
        _ => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)),
    }
}
