//! One hardware counter around one walk, by `perf_event_open` (perf_event_open(2), `linux/perf_event.h`).

use std::io::{Error, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `struct perf_event_attr` in its first version, of 64 bytes, which every kernel takes.
#[repr(C)]
#[derive(Default)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
}

/// `PERF_TYPE_RAW`: `config` is the event's code as the CPU has it.
const RAW: u32 = 4;
/// `disabled`, `exclude_kernel`, `exclude_hv`: this program's own accesses, from `ENABLE` on.
const FLAGS: u64 = 1 | 1 << 5 | 1 << 6;
/// `PERF_FORMAT_TOTAL_TIME_ENABLED` and `_RUNNING`.
const TIMES: u64 = 1 | 2;
/// `PERF_EVENT_IOC_ENABLE` and `_DISABLE`: `_IO('$', 0)` and `_IO('$', 1)`.
const ENABLE: u32 = 0x2400;
/// See [`ENABLE`].
const DISABLE: u32 = 0x2401;

/// A counter of the calling thread.
pub(crate) struct Counter(OwnedFd);

impl Counter {
    /// Opens a counter for this code; it stands still.
    ///
    /// # Errors
    /// Why the system refuses, in words.
    pub(crate) fn open(code: u64) -> Result<Self, String> {
        Self::of_kind(RAW, code)
    }

    fn of_kind(kind: u32, code: u64) -> Result<Self, String> {
        let size = size_of::<Attr>() as u32;
        let attr = Attr { kind, size, config: code, read_format: TIMES, flags: FLAGS, ..Attr::default() };
        // This thread, on any CPU, in no group, closed on exec (`PERF_FLAG_FD_CLOEXEC`).
        let (thread, cpu, group, cloexec) = (0, -1, -1, 8u64);
        // SAFETY: `attr` is as long as it says and lives through the call; nothing else is pointed to.
        let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &attr, thread, cpu, group, cloexec) };
        match i32::try_from(fd) {
            // SAFETY: a descriptor that the system has just made for us.
            Ok(fd) if fd >= 0 => Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) })),
            _ => Err(refused(&Error::last_os_error())),
        }
    }

    /// What it counts while `work` is done.
    ///
    /// # Errors
    /// It does not run all the time, or cannot be read.
    pub(crate) fn around(self, work: impl FnOnce()) -> Result<u64, String> {
        let control = |request: u32| {
            // The type of requests is the C library's: `unsigned long` in glibc, `int` in musl.
            // SAFETY: takes no pointer.
            match unsafe { libc::ioctl(self.0.as_raw_fd(), request as _, 0) } {
                0 => Ok(()),
                _ => Err(Error::last_os_error().to_string()),
            }
        };
        control(ENABLE)?;
        work();
        control(DISABLE)?;
        let mut bytes = [0; 24];
        std::fs::File::from(self.0).read_exact(&mut bytes).map_err(|e| e.to_string())?;
        let word = |i: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[8 * i + byte]));
        let (value, enabled, running) = (word(0), word(1), word(2));
        if running < enabled || enabled == 0 {
            return Err("others use the counters (perf, an NMI watchdog)".into());
        }
        Ok(value)
    }
}

/// Why, in words that say what can be done about it.
fn refused(error: &Error) -> String {
    let reason = match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => "no PMU here, or none that has it",
        Some(libc::EACCES | libc::EPERM) => {
            "kernel.perf_event_paranoid (2 or less lets a user in), or a seccomp profile, forbids it"
        }
        Some(libc::ENOSYS) => "this system has no perf_event_open",
        Some(libc::EINVAL) => "the PMU does not know it",
        _ => return error.to_string(),
    };
    format!("{reason} ({error})")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel counts page faults without a PMU: the calls and what they give are right.
    #[test]
    fn page_faults_are_counted() {
        const SOFTWARE: u32 = 1; // PERF_TYPE_SOFTWARE
        const PAGE_FAULTS: u64 = 2; // PERF_COUNT_SW_PAGE_FAULTS
        let counter = match Counter::of_kind(SOFTWARE, PAGE_FAULTS) {
            Ok(counter) => counter,
            Err(reason) => {
                eprintln!("LEFT OUT: {reason}");
                return;
            }
        };
        let (pages, bytes) = (64u64, 64 << 12);
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping wherever the system likes; small pages, each touched once, then given back.
        let faults = unsafe {
            let at = libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0);
            assert_ne!(at, libc::MAP_FAILED);
            libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE);
            let faults = counter.around(|| (0..bytes).step_by(4096).for_each(|i| at.cast::<u8>().add(i).write(1)));
            libc::munmap(at, bytes);
            faults
        };
        let faults = faults.expect("a software event always runs");
        assert!((pages..2 * pages).contains(&faults), "{faults} faults of {pages} pages");
    }
}
