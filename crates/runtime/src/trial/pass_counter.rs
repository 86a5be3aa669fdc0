//! How often a process passes a place in its code: hardware breakpoints of all its threads, which count and nothing more.

use lookaside_host::perf::{refusal, PerfCounter, Refusal, INHERIT, INHERIT_THREAD};
use lookaside_host::{cpu_time, Process};

use super::error::TrialError;
use super::request::CodeMark;
use super::target::TrialTarget;

/// Counters of one place in one process, in all of its threads and those that they start.
pub(super) struct PassCounter {
    pub(super) pid: u32,
    counters: Vec<PerfCounter>,
}

impl PassCounter {
    /// Counts from now on.
    ///
    /// # Errors
    /// The kernel gives no hardware breakpoints, or too few files may be open for so many threads.
    pub(super) fn start(pid: u32, mark: &CodeMark) -> Result<Self, TrialError> {
        let threads = Process::of(pid).threads().map_err(|e| TrialError::Bad(e.to_string()))?;
        let open = |thread| PerfCounter::of_instruction(mark.address, thread, INHERIT | INHERIT_THREAD);
        let counters = threads.into_iter().map(open).filter_map(|opened| match opened {
            Err(e) if refusal(&e) == Refusal::NoThread => None, // it has ended meanwhile
            opened => Some(opened),
        });
        let counters = counters.collect::<Result<_, _>>();
        let counters = counters.map_err(|e| no_counter(&e, &format!("counting passes of {}", mark.name)))?;
        Ok(Self { pid, counters })
    }

    /// Passes so far.
    pub(super) fn passes(&mut self) -> u64 {
        self.counters.iter_mut().map(|counter| counter.read().map_or(0, |count| count.value)).sum()
    }
}

/// Why there is no counter, in a line that begins with what was to be counted.
pub(super) fn no_counter(error: &std::io::Error, what: &str) -> TrialError {
    let why = match refusal(error) {
        Refusal::NoEvent | Refusal::NoPerfEvents => {
            "this machine has no such counter (PMU, debug registers); use another metric".into()
        }
        Refusal::Forbidden => "kernel.perf_event_paranoid forbids it; run as root".into(),
        Refusal::TooManyFiles => "too many threads; raise the limit of open files (ulimit -n)".into(),
        _ => format!("the kernel gives no counter for it ({error})"),
    };
    TrialError::Bad(format!("{what}: {why}"))
}

/// The process that uses most of the CPU, if that is most of what all use; by what they have used since `before`.
pub(super) fn busiest(targets: &[TrialTarget], before: &[f64]) -> Option<u32> {
    /// Of the CPU time of all: of a part smaller than this, the rest would not be seen.
    const MOST_OF_ALL: f64 = 0.5;
    let used: Vec<f64> = cpu_seconds(targets).iter().zip(before).map(|(now, before)| now - before).collect();
    let all: f64 = used.iter().sum();
    let (at, most) = used.iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1))?;
    (*most > 0.0 && *most >= MOST_OF_ALL * all).then(|| targets[at].pid)
}

/// CPU seconds that each has used so far.
pub(super) fn cpu_seconds(targets: &[TrialTarget]) -> Vec<f64> {
    targets.iter().map(|target| cpu_time(target.pid).unwrap_or_default().as_secs_f64()).collect()
}
