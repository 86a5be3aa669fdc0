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
    fn this_machine_counts_or_says_in_a_line_why_not() {
        let ranking = Rank::new(Box::new(RunningPmu::new()), &EVENTS).ranking();
        assert_eq!(ranking.no_pmu.is_none(), ranking.by == "walk-cycles");
        assert!(ranking.no_pmu.is_none_or(|why| !why.is_empty() && !why.contains('\n')));
    }
}
