//! The processor's PMU, by perf events.

use std::io::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use lookaside_host::perf::{
    refusal, PerfCounter, Refusal, EXCLUDE_HV, EXCLUDE_KERNEL, INHERIT, INHERIT_THREAD, PERF_TYPE_RAW,
};
use lookaside_host::Process;

use super::rank::{Count, Pmu, READS};
use super::region::PAGE_BYTES;

/// The program's own accesses, which are what baking is for.
const USER: u64 = EXCLUDE_KERNEL | EXCLUDE_HV;
/// Threads that it starts, and no processes.
const THREADS: u64 = INHERIT | INHERIT_THREAD;

/// The PMU of this machine.
#[derive(Debug)]
pub(super) struct RunningPmu {
    /// Files that it has open, at most half of what a process may have: a file a thread.
    open: Arc<AtomicUsize>,
    most: usize,
}

impl RunningPmu {
    pub(super) fn new() -> Self {
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(1024) / 2;
        Self { open: Arc::default(), most: usize::try_from(most).unwrap_or(usize::MAX) }
    }

    /// A counter of each of these threads (0 = the calling one).
    fn threads(&self, kind: u32, code: u64, threads: &[u32], flags: u64) -> Result<Box<dyn Count>, String> {
        let mut counters = ThreadCounters { all: Vec::new(), open: Arc::clone(&self.open) };
        for &thread in threads {
            if self.open.load(Ordering::Relaxed) >= self.most {
                return Err("more threads than files may be open (ulimit -n)".into());
            }
            match PerfCounter::open(kind, code, thread, flags) {
                Ok(counter) => {
                    counters.all.push(counter);
                    self.open.fetch_add(1, Ordering::Relaxed);
                }
                // It has ended since the list was read.
                Err(error) if refusal(&error) == Refusal::NoThread => {}
                Err(error) => return Err(refused(&error)),
            }
        }
        match counters.all.is_empty() {
            true => Err("the process has ended".into()),
            false => Ok(Box::new(counters)),
        }
    }
}

impl Pmu for RunningPmu {
    fn own(&self, code: u64) -> Result<Box<dyn Count>, String> {
        self.threads(PERF_TYPE_RAW, code, &[0], USER)
    }

    fn process(&self, code: u64, pid: u32) -> Result<Box<dyn Count>, String> {
        self.threads(PERF_TYPE_RAW, code, &tasks(pid), USER | THREADS)
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
            // A step that has no factor in common with a power of two comes to each page once a round, in no order that
            // a prefetcher knows.
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
fn tasks(pid: u32) -> Vec<u32> {
    Process::of(pid).threads().unwrap_or_default()
}

/// Counters of a process's threads.
#[derive(Debug)]
struct ThreadCounters {
    all: Vec<PerfCounter>,
    open: Arc<AtomicUsize>,
}

impl Count for ThreadCounters {
    fn count(&mut self) -> Option<u64> {
        self.all.iter_mut().map(|counter| Some(counter.read().ok()?.scaled())).sum()
    }
}

impl Drop for ThreadCounters {
    fn drop(&mut self) {
        self.open.fetch_sub(self.all.len(), Ordering::Relaxed);
    }
}

/// Why, in words that say what can be done about it.
fn refused(error: &Error) -> String {
    let reason = match refusal(error) {
        Refusal::NoEvent => "no PMU here, or none that counts walk cycles",
        Refusal::Forbidden => "kernel.perf_event_paranoid or a seccomp profile forbids it; root may",
        Refusal::NoPerfEvents => "this system has no perf_event_open",
        Refusal::Invalid => "the PMU does not know the event",
        Refusal::NoThread | Refusal::TooManyFiles | Refusal::Other => return error.to_string().replace('\n', " "),
    };
    format!("{reason} ({error})")
}

#[cfg(test)]
mod tests {
    use lookaside_host::perf::PERF_TYPE_SOFTWARE;

    use super::super::rank::{Rank, EVENTS};
    use super::*;

    /// The kernel counts page faults without a PMU: the calls and what they give are right.
    #[test]
    fn page_faults_of_reads_are_counted() {
        const PAGE_FAULTS: u64 = 2; // PERF_COUNT_SW_PAGE_FAULTS
        let perf = RunningPmu::new();
        let counter = perf.threads(PERF_TYPE_SOFTWARE, PAGE_FAULTS, &[0], USER);
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
        let ours = perf.threads(PERF_TYPE_SOFTWARE, PAGE_FAULTS, &tasks(std::process::id()), USER | THREADS);
        assert!(ours.expect("our own threads").count().is_some());
        let nobody = perf.threads(PERF_TYPE_SOFTWARE, PAGE_FAULTS, &tasks(4_194_305), USER | THREADS);
        assert!(nobody.expect_err("nobody").contains("has ended"));
    }

    #[test]
    fn no_more_files_are_opened_than_half_of_what_may_be() {
        let full = RunningPmu { open: Arc::new(AtomicUsize::new(7)), most: 7 };
        let refused = full.threads(PERF_TYPE_SOFTWARE, 2, &[0], USER).expect_err("full");
        assert_eq!(refused, "more threads than files may be open (ulimit -n)");
        assert_eq!(full.open.load(Ordering::Relaxed), 7);
        let nearly = RunningPmu { open: Arc::new(AtomicUsize::new(6)), most: 7 };
        match nearly.threads(PERF_TYPE_SOFTWARE, 2, &[0], USER) {
            Ok(_) => {}
            Err(why) => assert!(!why.contains("ulimit"), "{why}"),
        }
        assert_eq!(nearly.open.load(Ordering::Relaxed), 6, "what was opened is closed");
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        assert!(limit.is_none_or(|limit| RunningPmu::new().most as u64 == limit / 2));
    }

    #[test]
    fn a_thread_that_has_ended_is_left_out_and_an_event_that_is_none_is_an_error() {
        let perf = RunningPmu::new();
        let threads = |event, threads: &[u32]| perf.threads(PERF_TYPE_SOFTWARE, event, threads, USER).map(|_| ());
        if let Err(why) = threads(2, &[0]) {
            return eprintln!("LEFT OUT: perf_event_open is refused: {why}");
        }
        assert_eq!(threads(2, &[4_194_305, 0]), Ok(()));
        assert_eq!(threads(2, &[4_194_305]), Err("the process has ended".into()));
        let none = threads(1 << 40, &[0]).expect_err("there is no such event");
        assert!(!none.contains("has ended") && none.contains("os error"), "{none}");
        assert_eq!(perf.open.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn why_nothing_is_counted_is_said_with_what_to_do() {
        let of = |errno| refused(&Error::from_raw_os_error(errno));
        for (errno, words) in [
            (libc::ENOENT, "no PMU here, or none that counts walk cycles ("),
            (libc::EACCES, "kernel.perf_event_paranoid or a seccomp profile forbids it; root may ("),
            (libc::ENOSYS, "this system has no perf_event_open ("),
            (libc::EINVAL, "the PMU does not know the event ("),
            (libc::EMFILE, "Too many open files"),
        ] {
            assert!(of(errno).starts_with(words) && of(errno).contains("os error"), "{}", of(errno));
        }
    }

    #[test]
    fn the_programs_own_accesses_are_counted_and_its_threads() {
        assert_eq!(USER & EXCLUDE_KERNEL, EXCLUDE_KERNEL);
        assert_eq!(USER & EXCLUDE_HV, EXCLUDE_HV);
        assert_eq!(THREADS & (INHERIT | INHERIT_THREAD), INHERIT | INHERIT_THREAD);
        let own = tasks(std::process::id());
        assert!(own.contains(&(rustix::thread::gettid().as_raw_nonzero().get() as u32)), "{own:?}");
    }

    #[test]
    fn this_machine_counts_or_says_in_a_line_why_not() {
        let ranking = Rank::new(Box::new(RunningPmu::new()), &EVENTS).ranking();
        assert_eq!(ranking.no_pmu.is_none(), ranking.by == "walk-cycles");
        assert!(ranking.no_pmu.is_none_or(|why| !why.is_empty() && !why.contains('\n')));
    }
}
