//! Samples of several running processes in short bursts: at a high rate within a burst, so that neighbouring samples
//! tell a walk through memory from jumps, and at a low rate over all, so that the processes hardly notice.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lookaside_host::Process;
use lookaside_trace::Block;

use super::collector::{Collector, CollectorState, SampledProcess};
use super::events::{online_cpus, threads_of, Events};
use super::{perf, refused};
use crate::error::CaptureError;

/// Perf events at most, one for each thread and CPU: each takes a file descriptor, of which a process has 1,024 unless
/// somebody allows more.
const MOST_EVENTS: usize = 768;
/// How soon a request to stop is heeded.
const STEP: Duration = Duration::from_millis(20);

/// When samples are taken.
#[derive(Clone, Copy, Debug)]
pub struct BurstPlan {
    /// CPU time of a thread between two samples of a burst.
    pub period: Duration,
    /// How long a burst lasts.
    pub burst: Duration,
    /// From the begin of a burst to that of the next.
    pub every: Duration,
    /// How long it goes on in all.
    pub time: Duration,
}

/// A sample of user code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstSample {
    /// Its process.
    pub process: u32,
    /// Its thread.
    pub thread: u32,
    /// The data address that it waited for; 0 = none was found.
    pub addr: u64,
    /// The instruction.
    pub ip: u64,
}

/// Samples running processes, and what they start. Gives a list for each burst, the samples of a thread in the order in
/// which they were taken. Of processes with very many threads the busiest ones are sampled. `stop` is asked now and then.
///
/// # Errors
/// The kernel refuses the clock event for one of them, or there is none of them left.
pub fn sample_bursts(
    processes: &[u32],
    plan: BurstPlan,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Vec<BurstSample>>, CaptureError> {
    if !cfg!(target_arch = "x86_64") {
        return Err(refused("decodes x86-64 code only".into()));
    }
    let share = MOST_EVENTS / processes.len().max(1) / online_cpus().len().max(1);
    let threads: Vec<u32> = processes.iter().flat_map(|&process| busiest_threads(process, share.max(1))).collect();
    let period_ns = u64::try_from(plan.period.as_nanos()).unwrap_or(u64::MAX);
    let events = Events::switched_off(&threads, period_ns).map_err(|error| refused(perf::refusal(&error, true)))?;
    let (sender, blocks) = crossbeam_channel::unbounded();
    let sampled = SampledProcess::Attached(processes.to_vec());
    let mut collector = Collector::new(events, sampled, Arc::new(CollectorState::default()), sender);
    let (began, mut bursts) = (Instant::now(), Vec::new());
    while began.elapsed() + plan.burst <= plan.time && !stop() {
        let burst_began = Instant::now();
        collector.burst(plan.burst);
        // On a busy machine it lasts longer; a longer pause keeps its share of the time.
        let longer = burst_began.elapsed().as_secs_f64() / plan.burst.as_secs_f64().max(1e-6);
        let next = burst_began + plan.every.mul_f64(longer.clamp(1.0, 20.0));
        bursts.push(blocks.try_iter().flat_map(|block| samples(&block)).collect());
        let until = next.min(began + plan.time);
        while Instant::now() < until && !stop() {
            std::thread::sleep(STEP.min(until.saturating_duration_since(Instant::now())));
        }
    }
    Ok(bursts)
}

/// The threads of a process that have used most CPU time, so many at most.
fn busiest_threads(process: u32, most: usize) -> Vec<u32> {
    let mut threads = threads_of(process).unwrap_or_default();
    if threads.len() > most {
        let process = Process::of(process);
        let ticks = |thread: &u32| process.thread(*thread).stat().map_or(0, |stat| stat.cpu_ticks());
        threads.sort_by_cached_key(|thread| std::cmp::Reverse(ticks(thread)));
        threads.truncate(most);
    }
    threads
}

fn samples(block: &Block) -> Vec<BurstSample> {
    let sample = |(at, &addr): (usize, &u64)| BurstSample {
        process: block.process,
        thread: block.thread,
        addr,
        ip: block.ip.get(at).copied().unwrap_or(0),
    };
    block.addr.iter().enumerate().map(sample).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_process_is_sampled_in_bursts_and_one_that_has_ended_is_refused() {
        let plan = BurstPlan {
            period: Duration::from_micros(50),
            burst: Duration::from_millis(4),
            every: Duration::from_millis(20),
            time: Duration::from_millis(400),
        };
        let script = "ulimit -t 60; while :; do :; done";
        let mut child = std::process::Command::new("sh").args(["-c", script]).spawn().expect("sh is everywhere");
        let pid = child.id();
        let seen = sample_bursts(&[pid], plan, &|| false);
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        match seen {
            Err(error) => eprintln!("LEFT OUT: {error}"),
            Ok(bursts) => {
                assert!((2..=21).contains(&bursts.len()), "{}", bursts.len());
                let samples: Vec<&BurstSample> = bursts.iter().flatten().collect();
                assert!(!samples.is_empty() && samples.iter().all(|sample| sample.process == pid), "{samples:?}");
                // 80 of a burst at most, and as many more as it may last longer than it was asked to.
                assert!(samples.len() < bursts.len() * 400, "{} in {}", samples.len(), bursts.len());
            }
        }
        // Above the largest pid that Linux gives.
        let error = sample_bursts(&[5_000_000], plan, &|| false).expect_err("nobody").to_string();
        assert!(error.contains("check the pid"), "{error}");
    }
}
