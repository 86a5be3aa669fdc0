//! Which metric fits processes of which nothing is known: by a look at how often they write.

use std::collections::BTreeMap;

use lookaside_host::Process;

use super::error::TrialError;
use super::target::TrialTarget;

/// A thread that writes so often in a second of its CPU time tells by it how far it is: of a phase of some seconds the
/// calls are then hundreds, and their number is known to some percent where they come at random.
const WRITES_A_CPU_SECOND: f64 = 100.0;
/// Such threads have to use this part of the CPU time: others may write by a clock while the work is done elsewhere.
const PART_OF_CPU: f64 = 0.5;
/// Less CPU time in a second is too little to measure a part of.
const LEAST_CPUS: f64 = 0.01;

/// What the threads of some processes have done so far.
pub(super) struct ThreadWrites {
    at: std::time::Instant,
    /// CPU nanoseconds and write calls, by thread.
    threads: BTreeMap<u32, (u64, u64)>,
}

impl ThreadWrites {
    /// Up to now.
    pub(super) fn of(targets: &[TrialTarget]) -> Self {
        let mut threads = BTreeMap::new();
        for target in targets {
            let process = Process::of(target.pid);
            for tid in process.threads().unwrap_or_default() {
                let thread = process.thread(tid);
                let writes = thread.write_calls().unwrap_or(0);
                threads.extend(thread.run_nanos().ok().map(|nanos| (tid, (nanos, writes))));
            }
        }
        Self { at: std::time::Instant::now(), threads }
    }

    /// Why CPU time a write call fits as the metric, by what was done since `before`; `None`: it does not.
    ///
    /// # Errors
    /// They used too little CPU time for any metric of it.
    pub(super) fn writes_since(&self, before: &Self) -> Result<Option<String>, TrialError> {
        let seconds = self.at.duration_since(before.at).as_secs_f64().max(1e-3);
        let done = self.threads.iter().filter_map(|(tid, now)| {
            let then = before.threads.get(tid)?;
            Some((now.0.saturating_sub(then.0) as f64 / 1e9, now.1.saturating_sub(then.1) as f64))
        });
        let (mut all, mut writing, mut writes) = (0.0, 0.0, 0.0);
        for (cpu, calls) in done {
            all += cpu;
            if calls >= WRITES_A_CPU_SECOND * cpu {
                (writing, writes) = (writing + cpu, writes + calls);
            }
        }
        if all / seconds < LEAST_CPUS {
            return Err(TrialError::Bad(format!(
                "it used {:.1} % of a CPU: too little to measure; try again under load, or give --metric",
                100.0 * all / seconds
            )));
        }
        let fits = writing >= PART_OF_CPU * all && writes > 0.0;
        Ok(fits.then(|| format!("it makes {:.0} write calls a second", writes / seconds)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Threads with CPU milliseconds and write calls, over a second.
    fn writes(threads: &[(u64, u64)]) -> Result<Option<String>, TrialError> {
        let before = Instant::now();
        let totals = |at, times: u64| {
            let of = |(tid, (ms, writes)): (u32, &(u64, u64))| (tid, (times * ms * 1_000_000, times * writes));
            ThreadWrites { at, threads: (0..).zip(threads).map(of).collect() }
        };
        totals(before + Duration::from_secs(1), 2).writes_since(&totals(before, 1))
    }

    #[test]
    fn threads_that_write_where_the_work_is_done_tell_how_far_it_is() {
        let why = writes(&[(900, 5000), (100, 0)]).expect("it works");
        assert_eq!(why.as_deref(), Some("it makes 5000 write calls a second"));
        // One that writes by a clock, beside one that works; and one that seldom writes.
        for threads in [&[(950, 0), (50, 1000)][..], &[(900, 80)]] {
            assert_eq!(writes(threads).expect("it works"), None);
        }
    }

    #[test]
    fn who_hardly_works_is_not_measured() {
        assert_eq!(
            writes(&[(9, 5000)]).expect_err("idle").to_string(),
            "it used 0.9 % of a CPU: too little to measure; try again under load, or give --metric"
        );
    }
}
