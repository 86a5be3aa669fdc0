//! Making huge pages of another process's memory: `process_madvise(MADV_COLLAPSE)`, a window a call, and
//! [small ones](SplitResult) again; where there is no right to do that, [orders](super::remote_collapse) to the
//! thread of the preloaded library in the process, which does the same by `madvise`. What the process reads and
//! writes stays as it is, whether a call succeeds or not.

mod split;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use lookaside_host::{Process, TransparentHugePages};
use rustix::io::Errno;
use rustix::process::{pidfd_open, Pid, PidfdFlags};
use rustix::thread::{capabilities, CapabilitySet};
use serde::Serialize;

use super::error::HugePageError;
use super::pages;
use super::remote_collapse::RemoteCollapser;
use super::windows::WINDOW_BYTES;
use crate::bake::Identity;

pub use split::{check_way_back, SplitResult};

/// Least pause after a call. The kernel holds `mmap_lock` for writing while it copies, and page faults of the program
/// wait; a waiting thread that is not awake yet is let in only after 4 ms of the lock's being taken again
/// (kernel/locking/rwsem.c, RWSEM_WAIT_TIMEOUT).
pub const LEAST_PAUSE: Duration = Duration::from_millis(1);

/// Who makes a process's huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CollapseSide {
    /// This process, by `process_madvise`.
    Outside,
    /// A thread in the process, by `madvise`: there is no right to do it from outside.
    Inside,
}

impl CollapseSide {
    /// In a few words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Outside => "from outside",
            Self::Inside => "from inside (no permission from outside)",
        }
    }
}

/// What became of a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum CollapseResult {
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

impl CollapseResult {
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
pub struct CollapseHandle {
    pid: u32,
    maker: Collapser,
    identity: Identity,
}

/// Who makes the calls.
#[derive(Debug)]
enum Collapser {
    Outside(OwnedFd),
    Inside(RemoteCollapser),
}

impl CollapseHandle {
    /// Takes hold of a process, and finds out whether huge pages may be made of its memory: from outside, or else by
    /// the thread that the preloaded library has in it. Nothing is changed.
    ///
    /// # Errors
    /// In a line: no such process; a kernel without the calls; who may; huge pages switched off for the process.
    pub fn open(pid: u32) -> Result<Self, HugePageError> {
        let handle = Self::open_to_split(pid)?;
        match switched_off(pid) {
            false => Ok(handle),
            true => Err(HugePageError::Bad(format!(
                "process {pid}: huge pages are switched off for it, by prctl(PR_SET_THP_DISABLE) in it or in what \
                 started it"
            ))),
        }
    }

    /// Takes hold of a process to take huge pages back, also of one for which they are switched off by now.
    ///
    /// # Errors
    /// As [`CollapseHandle::open`], that one apart.
    pub fn open_to_split(pid: u32) -> Result<Self, HugePageError> {
        let identity = Identity::of(pid)?;
        check_built_in()?;
        let maker = match hold(pid) {
            Ok(process) => Collapser::Outside(process),
            Err(errno) => {
                let orders = if is_no_right(errno) { RemoteCollapser::open(pid)? } else { None };
                let refused = || HugePageError::Bad(format!("process {pid}: {}", refusal(errno)));
                Collapser::Inside(orders.ok_or_else(refused)?)
            }
        };
        Ok(Self { pid, maker, identity })
    }

    /// Who makes its huge pages.
    pub fn way(&self) -> CollapseSide {
        match self.maker {
            Collapser::Outside(_) => CollapseSide::Outside,
            Collapser::Inside(_) => CollapseSide::Inside,
        }
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

    /// Makes one huge page of a window. Whoever makes the call pauses as long as that took, at least a millisecond:
    /// page faults of the program find the lock free for at least half of the time.
    pub fn collapse(&self, start: u64) -> CollapseResult {
        if !self.is_same() {
            let why = "the process has ended, or runs another program now".to_string();
            return CollapseResult::Refused { nanos: 0, errno: 0, why };
        }
        let (done, took) = match &self.maker {
            Collapser::Outside(process) => {
                let began = Instant::now();
                let done = collapse(process.as_fd(), Some(start));
                let took = began.elapsed();
                std::thread::sleep(took.max(LEAST_PAUSE));
                (done, took)
            }
            Collapser::Inside(orders) => orders.make(start),
        };
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        match done {
            Ok(()) => CollapseResult::Collapsed { nanos },
            Err(errno) => CollapseResult::Refused { nanos, errno, why: self.why(errno, start) },
        }
    }

    /// Why a window was refused. The numbers are few and the causes many: what can be looked up is.
    fn why(&self, errno: i32, start: u64) -> String {
        let gone = !pages::is_mapped(self.pid, start);
        let inside = self.way() == CollapseSide::Inside;
        let text = match errno {
            _ if !self.is_same() => "the process has ended, or runs another program now",
            libc::ESRCH if inside => {
                "the thread in the program that makes huge pages has ended: the program became another user's, or \
                 forbids its calls"
            }
            libc::ESRCH => "the process has ended",
            libc::ETIMEDOUT if inside => {
                "the thread in the program that makes huge pages did not answer for 10 s: the program is stopped, \
                 or gets no CPU"
            }
            libc::EPERM | libc::EACCES if inside => "the program forbids the call (seccomp)",
            libc::ENOMEM | libc::EINVAL | libc::EFAULT if gone => {
                "that memory is not mapped any more, or only in parts"
            }
            libc::EINVAL if switched_off(self.pid) => {
                "huge pages are switched off for the process by prctl(PR_SET_THP_DISABLE)"
            }
            libc::EINVAL => {
                "the kernel refused it (MADV_NOHUGEPAGE set meanwhile, nothing in memory, or pages of \
                another kind among them)"
            }
            libc::ENOMEM => {
                "no 2 MiB block of memory is free (fragmented, or all in use): as root, echo 1 > \
                /proc/sys/vm/compact_memory"
            }
            libc::EBUSY => "the control group of the process has reached its limit of memory",
            libc::EAGAIN => {
                "the kernel is using some of its pages (being written out, pinned by a device, moved): try again"
            }
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
        libc::EINVAL => {
            "this kernel makes no huge pages of other processes' memory: needs MADV_COLLAPSE (Linux 6.1 \
            and later)"
        }
        libc::EPERM => {
            "needs root or CAP_SYS_NICE (sudo setcap cap_sys_nice,cap_sys_ptrace+ep on the lookaside \
            command), also for processes of one's own, unless they were started by lookaside hugepages run and take \
            a preloaded library"
        }
        libc::EACCES => "another user's; needs root, or CAP_SYS_PTRACE and CAP_SYS_NICE",
        libc::ESRCH => "it has ended",
        libc::ENOENT => "is a thread of a process, not a process",
        _ => "process_madvise is refused",
    }
}

/// Whether it is for lack of a right, or in a sandbox, that the call is refused, so that the process itself may be let
/// do it.
fn is_no_right(errno: i32) -> bool {
    matches!(errno, libc::EPERM | libc::EACCES | libc::ENOSYS)
}

/// Takes hold of a process, if huge pages may be made of its memory from outside.
fn hold(pid: u32) -> Result<OwnedFd, i32> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(libc::ESRCH)?;
    let process = pidfd_open(number, PidfdFlags::empty()).map_err(|e| match e {
        Errno::INVAL => libc::ENOENT, // as newer kernels say it
        e => e.raw_os_error(),
    })?;
    // Without a range the call changes nothing, and all but the range is checked.
    collapse(process.as_fd(), None).map(|()| process)
}

/// Finds out, before a program is started, how huge pages can be made of its memory: from inside only where there is no
/// right to do it from outside.
///
/// # Errors
/// In a line: what the kernel lacks, who may.
pub fn collapse_side() -> Result<CollapseSide, HugePageError> {
    check_built_in()?;
    if switched_off(std::process::id()) {
        return Err(HugePageError::Bad(
            "huge pages are switched off for this command and what it starts, by prctl(PR_SET_THP_DISABLE)".into(),
        ));
    }
    match check_right() {
        Ok(()) => Ok(CollapseSide::Outside),
        Err(errno) if is_no_right(errno) && is_possible_inside() => Ok(CollapseSide::Inside),
        Err(errno) => Err(HugePageError::Bad(refusal(errno).into())),
    }
}

/// Whether one may make huge pages of other processes' memory, and the kernel can.
fn check_right() -> Result<(), i32> {
    /// The user namespace that counts (Linux, include/linux/proc_ns.h, PROC_USER_INIT_INO): root of another has no such
    /// right.
    const SYSTEMS: &str = "user:[4026531837]";
    hold(std::process::id())?;
    // For oneself newer kernels ask for no right.
    let has = capabilities(None).is_ok_and(|rights| rights.effective.contains(CapabilitySet::SYS_NICE));
    let counts = Process::own().link("ns/user").is_ok_and(|name| name.as_os_str() == SYSTEMS);
    if has && counts {
        Ok(())
    } else {
        Err(libc::EPERM)
    }
}

/// Whether a process may make huge pages of its own memory, and the library that does it is for this machine.
fn is_possible_inside() -> bool {
    // SAFETY: of no bytes; the advice alone is checked.
    let done = unsafe { libc::madvise(std::ptr::null_mut(), 0, libc::MADV_COLLAPSE) };
    done == 0 && cfg!(all(target_os = "linux", target_arch = "x86_64"))
}

fn check_built_in() -> Result<(), HugePageError> {
    let settings = TransparentHugePages::here();
    match settings.are_there() {
        true => Ok(()),
        false => Err(HugePageError::Bad(format!(
            "this kernel has no transparent huge pages ({} is not there)",
            settings.path("").display()
        ))),
    }
}

/// Huge pages are off for the process, whoever asks.
pub(super) fn switched_off(pid: u32) -> bool {
    status(pid, "THP_enabled").is_some_and(|word| word == "0")
}

/// A line of `/proc/PID/status`.
fn status(pid: u32, name: &str) -> Option<String> {
    Process::of(pid).status().ok()?.value(name).map(str::to_string)
}

/// Makes a huge page of a window; without one it is asked whether that may be done.
fn collapse(process: BorrowedFd<'_>, start: Option<u64>) -> Result<(), i32> {
    advise(process, start.map(|start| (start, WINDOW_BYTES)), libc::MADV_COLLAPSE)
}

/// The call, for a range of bytes or, without one, for nothing.
fn advise(process: BorrowedFd<'_>, range: Option<(u64, u64)>, advice: libc::c_int) -> Result<(), i32> {
    let (start, bytes) = range.unwrap_or_default();
    let vector = libc::iovec { iov_base: start as *mut libc::c_void, iov_len: bytes as usize };
    // SAFETY: the vector has as many ranges as is said; the range is the other process's, which the kernel checks, and
    // no advice given here changes contents.
    let done = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            process.as_raw_fd(),
            &raw const vector,
            libc::c_ulong::from(range.is_some()),
            advice,
            0 as libc::c_uint,
        )
    };
    match done {
        0.. => Ok(()),
        _ => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)),
    }
}

#[cfg(test)]
mod tests;
