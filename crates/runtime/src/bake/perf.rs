//! The processor's PMU, by `perf_event_open` (perf_event_open(2), `linux/perf_event.h`).

use std::fs::File;
use std::io::{Error, Read};
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use super::rank::{Count, Pmu, READS};
use super::region::PAGE_BYTES;

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
/// `exclude_kernel`, `exclude_hv`: the program's own accesses, which are what baking is for.
const USER: u64 = 1 << 5 | 1 << 6;
/// `inherit`, `inherit_thread` (Linux 5.13): threads that it starts, and no processes.
const THREADS: u64 = 1 << 1 | 1 << 35;
/// `PERF_FORMAT_TOTAL_TIME_ENABLED` and `_RUNNING`.
const TIMES: u64 = 1 | 2;

/// The PMU of this machine.
#[derive(Debug)]
pub(super) struct Perf {
    /// Files that it has open, at most half of what a process may have: a file a thread.
    open: Arc<AtomicUsize>,
    most: usize,
}

impl Perf {
    pub(super) fn new() -> Self {
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(1024) / 2;
        Self { open: Arc::default(), most: usize::try_from(most).unwrap_or(usize::MAX) }
    }

    /// A counter of each of these threads (0 = the calling one).
    fn threads(&self, kind: u32, code: u64, threads: &[i32], flags: u64) -> Result<Box<dyn Count>, String> {
        let mut counters = Counters { files: Vec::new(), open: Arc::clone(&self.open) };
        for &thread in threads {
            if self.open.load(Ordering::Relaxed) >= self.most {
                return Err("more threads than files may be open (ulimit -n)".into());
            }
            match open(kind, code, thread, flags) {
                Ok(file) => {
                    counters.files.push(file);
                    self.open.fetch_add(1, Ordering::Relaxed);
                }
                // It has ended since the list was read.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(refused(&error)),
            }
        }
        match counters.files.is_empty() {
            true => Err("the process has ended".into()),
            false => Ok(Box::new(counters)),
        }
    }
}

impl Pmu for Perf {
    fn own(&self, code: u64) -> Result<Box<dyn Count>, String> {
        self.threads(RAW, code, &[0], USER)
    }

    fn process(&self, code: u64, pid: u32) -> Result<Box<dyn Count>, String> {
        self.threads(RAW, code, &tasks(pid), USER | THREADS)
    }

    /// Of a mapping that nobody ever wrote to: one page of zeros stands for all, each by an entry of its own.
    fn read_pages(&self, pages: usize) {
        let bytes = pages * PAGE_BYTES as usize;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping wherever the system likes.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return; // nothing is counted, so that nothing is proven
        }
        // SAFETY: advice about it: small pages; then reads within it, and its end.
        unsafe {
            libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE);
            // A step that has no factor in common with a power of two comes to each page once a round, in no order that a prefetcher knows.
            let step = 0x9e37_79b1_usize;
            for read in 0..READS {
                let page = read.wrapping_mul(step) % pages;
                std::hint::black_box(at.cast::<u8>().add(page * PAGE_BYTES as usize).read_volatile());
            }
            libc::munmap(at, bytes);
        }
    }
}

/// Threads of a process.
fn tasks(pid: u32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}

/// Counters of a process's threads.
#[derive(Debug)]
struct Counters {
    files: Vec<File>,
    open: Arc<AtomicUsize>,
}

impl Count for Counters {
    fn count(&mut self) -> Option<u64> {
        self.files.iter_mut().map(value).sum()
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        self.open.fetch_sub(self.files.len(), Ordering::Relaxed);
    }
}

/// What a counter stands at; where others use the PMU too, made up for in proportion to the time that it ran.
fn value(file: &mut File) -> Option<u64> {
    let mut bytes = [0; 24];
    file.read_exact(&mut bytes).ok()?;
    let word = |i: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[8 * i + byte]));
    let (value, enabled, running) = (word(0), word(1), word(2));
    Some(match running {
        0 => 0,
        running if running < enabled => (value as f64 * (enabled as f64 / running as f64)) as u64,
        _ => value,
    })
}

fn open(kind: u32, code: u64, thread: i32, flags: u64) -> Result<File, Error> {
    let size = size_of::<Attr>() as u32;
    let attr = Attr { kind, size, config: code, read_format: TIMES, flags, ..Attr::default() };
    // On any CPU, in no group, closed on exec (`PERF_FLAG_FD_CLOEXEC`).
    let (cpu, group, cloexec) = (-1, -1, 8u64);
    // SAFETY: `attr` is as long as it says and lives through the call; nothing else is pointed to.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &attr, thread, cpu, group, cloexec) };
    match i32::try_from(fd) {
        // SAFETY: a descriptor that the system has just made for us.
        Ok(fd) if fd >= 0 => Ok(unsafe { File::from_raw_fd(fd) }),
        _ => Err(Error::last_os_error()),
    }
}

/// Why, in words that say what can be done about it.
fn refused(error: &Error) -> String {
    let reason = match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => "no PMU here, or none that counts walk cycles",
        Some(libc::EACCES | libc::EPERM) => "kernel.perf_event_paranoid or a seccomp profile forbids it; root may",
        Some(libc::ENOSYS) => "this system has no perf_event_open",
        Some(libc::EINVAL) => "the PMU does not know the event",
        _ => return error.to_string().replace('\n', " "),
    };
    format!("{reason} ({error})")
}

#[cfg(test)]
mod tests {
    use super::super::rank::{Rank, EVENTS};
    use super::*;

    /// The kernel counts page faults without a PMU: the calls and what they give are right.
    #[test]
    fn page_faults_of_reads_are_counted() {
        const SOFTWARE: u32 = 1; // PERF_TYPE_SOFTWARE
        const PAGE_FAULTS: u64 = 2; // PERF_COUNT_SW_PAGE_FAULTS
        let perf = Perf::new();
        let counter = perf.threads(SOFTWARE, PAGE_FAULTS, &[0], USER);
        let mut counter = match counter {
            Ok(counter) => counter,
            Err(why) => return eprintln!("LEFT OUT: perf_event_open is refused: {why}"),
        };
        assert_eq!(perf.open.load(Ordering::Relaxed), 1);
        let before = counter.count().expect("a count");
        perf.read_pages(1 << 12);
        assert_eq!(counter.count().expect("a count") - before, 1 << 12, "each page once");
        drop(counter);
        assert_eq!(perf.open.load(Ordering::Relaxed), 0);
        let ours = perf.threads(SOFTWARE, PAGE_FAULTS, &tasks(std::process::id()), USER | THREADS);
        assert!(ours.expect("our own threads").count().is_some());
        let nobody = perf.threads(SOFTWARE, PAGE_FAULTS, &tasks(4_194_305), USER | THREADS);
        assert!(nobody.expect_err("nobody").contains("has ended"));
    }

    #[test]
    fn this_machine_counts_or_says_in_a_line_why_not() {
        let ranking = Rank::new(Box::new(Perf::new()), &EVENTS).ranking();
        assert_eq!(ranking.no_pmu.is_none(), ranking.by == "walk-cycles");
        assert!(ranking.no_pmu.is_none_or(|why| !why.is_empty() && !why.contains('\n')));
    }
}
