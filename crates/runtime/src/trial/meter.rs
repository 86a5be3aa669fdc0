//! What is measured of a phase, from outside.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lookaside_host::perf::{refusal, PerfCounter, Refusal, EXCLUDE_HV, EXCLUDE_KERNEL, INHERIT, INHERIT_THREAD};
use lookaside_host::{cpu_time, Process};

use super::effect::Measure;
use super::error::TrialError;
use super::metric::{Statistic, TrialMetric};
use super::number_stream::NumberStream;
use super::pass_counter::{no_counter, PassCounter};
use super::target::TrialTarget;
use crate::hugepages::{window_of, AddressSampler};

/// How soon a signal is heeded.
pub(super) const STEP: Duration = Duration::from_millis(20);

/// Sums over some time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reading {
    wall_seconds: f64,
    cpu_seconds: f64,
    write_calls: u64,
    samples: u64,
    samples_outside: u64,
    instructions: u64,
    passes: u64,
    passing_cpu_seconds: f64,
    numbers: Vec<f64>,
}

impl Reading {
    /// Both times together.
    pub(super) fn plus(&self, other: &Self) -> Self {
        Self {
            wall_seconds: self.wall_seconds + other.wall_seconds,
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
            write_calls: self.write_calls + other.write_calls,
            samples: self.samples + other.samples,
            samples_outside: self.samples_outside + other.samples_outside,
            instructions: self.instructions + other.instructions,
            passes: self.passes + other.passes,
            passing_cpu_seconds: self.passing_cpu_seconds + other.passing_cpu_seconds,
            numbers: self.numbers.iter().chain(&other.numbers).copied().collect(),
        }
    }

    /// A measure over that time; `None` where there was nothing to measure.
    pub(super) fn value(&self, measure: Measure) -> Option<f64> {
        let ratio = |above: f64, below: f64| (above > 0.0 && below > 0.0).then(|| above / below);
        match measure {
            Measure::CpuTime => ratio(self.cpu_seconds, self.wall_seconds),
            Measure::CpuTimePerWrite => ratio(self.cpu_seconds, self.write_calls as f64),
            Measure::CpuTimePerPass => ratio(self.passing_cpu_seconds, self.passes as f64),
            Measure::Samples => ratio(self.samples as f64, self.samples_outside as f64),
            Measure::Instructions => ratio(self.cpu_seconds, self.instructions as f64),
            Measure::NumbersMean => Statistic::Mean.of(&self.numbers),
            Measure::NumbersP50 => Statistic::P50.of(&self.numbers),
            Measure::NumbersP99 => Statistic::P99.of(&self.numbers),
            Measure::NumbersP999 => Statistic::P999.of(&self.numbers),
        }
    }
}

/// Which samples are of what is switched.
pub(super) enum Switched {
    /// Those in these windows, by process.
    Windows(BTreeMap<u32, BTreeSet<u64>>),
    /// All that wait for data.
    AllData,
}

impl Switched {
    fn has(&self, pid: u32, addr: u64) -> bool {
        match self {
            Self::Windows(windows) => windows.get(&pid).is_some_and(|windows| windows.contains(&window_of(addr))),
            Self::AllData => addr != 0,
        }
    }
}

/// Measures.
pub(super) struct PhaseMeter {
    targets: Vec<TrialTarget>,
    /// What decides, and what is shown beside it.
    pub(super) measures: Vec<(Measure, String)>,
    stream: Option<NumberStream>,
    sampler: Option<Arc<dyn AddressSampler>>,
    switched: Switched,
    counters: Vec<PerfCounter>,
    passes: Option<PassCounter>,
}

impl PhaseMeter {
    /// Gets ready for a metric, which is not [`TrialMetric::Auto`].
    ///
    /// # Errors
    /// It can't be had here: no PMU, no file.
    pub(super) fn start(
        metric: &TrialMetric,
        targets: &[TrialTarget],
        switched: Switched,
        sampler: &Arc<dyn AddressSampler>,
        passes: Option<PassCounter>,
    ) -> Result<Self, TrialError> {
        let name = metric.name();
        let all = |first: Statistic| {
            let rest = Statistic::ALL.into_iter().filter(move |statistic| *statistic != first);
            std::iter::once(first).chain(rest).map(|statistic| (measure_of(statistic), statistic.name().to_string()))
        };
        let mut meter = Self {
            targets: targets.to_vec(),
            measures: Vec::new(),
            stream: None,
            sampler: None,
            switched,
            counters: Vec::new(),
            passes,
        };
        match metric {
            TrialMetric::Auto | TrialMetric::CpuTime => meter.measures.push((Measure::CpuTime, name)),
            TrialMetric::CpuTimePerWrite => meter.measures.push((Measure::CpuTimePerWrite, name)),
            TrialMetric::CpuTimePerPass | TrialMetric::CpuTimePerCall(_) => {
                meter.measures.push((Measure::CpuTimePerPass, name));
            }
            TrialMetric::Samples => {
                meter.measures.push((Measure::Samples, name));
                meter.sampler = Some(Arc::clone(sampler));
            }
            TrialMetric::Instructions => {
                meter.measures.push((Measure::Instructions, name));
                meter.counters = counters(targets)?;
            }
            TrialMetric::Numbers { source, read, statistic, .. } => {
                meter.measures.extend(all(*statistic));
                if let Some(first) = meter.measures.first_mut() {
                    first.1 = name;
                }
                meter.stream = Some(NumberStream::start(source, read)?);
            }
        }
        for beside in [TrialMetric::CpuTimePerWrite, TrialMetric::CpuTime] {
            let measure =
                if matches!(beside, TrialMetric::CpuTime) { Measure::CpuTime } else { Measure::CpuTimePerWrite };
            if meter.measures.iter().all(|(other, _)| *other != measure) {
                meter.measures.push((measure, beside.name()));
            }
        }
        Ok(meter)
    }

    /// Measures for so long. `None`: it was told to stop.
    ///
    /// # Errors
    /// A process can't be sampled.
    pub(super) fn measure(&mut self, time: Duration, stop: &dyn Fn() -> bool) -> Result<Option<Reading>, TrialError> {
        let before = self.totals();
        let began = Instant::now();
        let stopped = AtomicBool::new(false);
        let samples = std::thread::scope(|scope| {
            let stopped = &stopped;
            let threads: Vec<_> = self
                .sampler
                .iter()
                .flat_map(|sampler| self.targets.iter().map(move |target| (target.pid, sampler)))
                .map(|(pid, sampler)| {
                    (pid, scope.spawn(move || sampler.sample(pid, time, &|| stopped.load(Ordering::Relaxed))))
                })
                .collect();
            stopped.store(!wait(time, stop), Ordering::Relaxed);
            let ended = |_| Err("the thread that samples has ended".to_string());
            threads.into_iter().map(|(pid, thread)| (pid, thread.join().unwrap_or_else(ended))).collect::<Vec<_>>()
        });
        if stopped.into_inner() {
            return Ok(None);
        }
        let mut reading = self.totals().since(&before);
        reading.wall_seconds = began.elapsed().as_secs_f64();
        reading.numbers = self.stream.as_ref().map(|stream| stream.since(began)).unwrap_or_default();
        for (pid, samples) in samples {
            match samples {
                Ok(addrs) => {
                    let inside = addrs.iter().filter(|&&addr| self.switched.has(pid, addr)).count() as u64;
                    reading.samples += addrs.len() as u64;
                    reading.samples_outside += addrs.len() as u64 - inside;
                }
                // One of several that has ended is no reason to end.
                Err(why) if self.targets.iter().any(|target| target.pid == pid && target.is_same()) => {
                    return Err(TrialError::Bad(why));
                }
                Err(_) => {}
            }
        }
        Ok(Some(reading))
    }

    /// Why the numbers do not come, if it is known.
    pub(super) fn problem(&self) -> Option<String> {
        self.stream.as_ref().and_then(NumberStream::problem)
    }

    /// What the processes have used so far.
    fn totals(&mut self) -> Reading {
        let mut totals = Reading::default();
        for target in &self.targets {
            totals.cpu_seconds += cpu_time(target.pid).unwrap_or_default().as_secs_f64();
            totals.write_calls += Process::of(target.pid).write_calls().unwrap_or(0);
        }
        for counter in &mut self.counters {
            totals.instructions += counter.read().map_or(0, |count| count.scaled());
        }
        if let Some(passes) = &mut self.passes {
            totals.passes = passes.passes();
            totals.passing_cpu_seconds = cpu_time(passes.pid).unwrap_or_default().as_secs_f64();
        }
        totals
    }
}

impl Reading {
    /// A process that has ended meanwhile takes its sums with it: then there is nothing to measure.
    fn since(&self, before: &Self) -> Self {
        Self {
            cpu_seconds: (self.cpu_seconds - before.cpu_seconds).max(0.0),
            write_calls: self.write_calls.saturating_sub(before.write_calls),
            instructions: self.instructions.saturating_sub(before.instructions),
            passes: self.passes.saturating_sub(before.passes),
            passing_cpu_seconds: (self.passing_cpu_seconds - before.passing_cpu_seconds).max(0.0),
            ..Self::default()
        }
    }
}

/// Which measure a statistic of numbers is.
fn measure_of(statistic: Statistic) -> Measure {
    match statistic {
        Statistic::Mean => Measure::NumbersMean,
        Statistic::P50 => Measure::NumbersP50,
        Statistic::P99 => Measure::NumbersP99,
        Statistic::P999 => Measure::NumbersP999,
    }
}

/// A counter of instructions for each thread; threads that it starts are counted with it.
fn counters(targets: &[TrialTarget]) -> Result<Vec<PerfCounter>, TrialError> {
    /// `PERF_TYPE_HARDWARE` and `PERF_COUNT_HW_INSTRUCTIONS` (linux/perf_event.h).
    const INSTRUCTIONS: (u32, u64) = (0, 1);
    let flags = EXCLUDE_KERNEL | EXCLUDE_HV | INHERIT | INHERIT_THREAD;
    let threads = targets.iter().flat_map(|target| Process::of(target.pid).threads().unwrap_or_default());
    let open = |tid| PerfCounter::open(INSTRUCTIONS.0, INSTRUCTIONS.1, tid, flags);
    threads
        .filter_map(|tid| match open(tid) {
            Err(e) if refusal(&e) == Refusal::NoThread => None, // it has ended meanwhile
            opened => Some(opened),
        })
        .collect::<Result<_, _>>()
        .map_err(|e| no_counter(&e, "--metric instructions"))
}

/// Waits; `false` = it is to stop.
pub(super) fn wait(time: Duration, stop: &dyn Fn() -> bool) -> bool {
    let end = Instant::now() + time;
    while !stop() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(STEP));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up() {
        let first = Reading {
            wall_seconds: 1.0,
            cpu_seconds: 0.5,
            write_calls: 10,
            samples: 100,
            samples_outside: 80,
            instructions: 5,
            passes: 2,
            passing_cpu_seconds: 0.4,
            numbers: vec![1.0],
        };
        let both = first.plus(&Reading { numbers: vec![2.0], write_calls: 40, ..first.clone() });
        assert_eq!(both.value(Measure::CpuTime), Some(0.5));
        assert_eq!(both.value(Measure::CpuTimePerWrite), Some(0.02));
        assert_eq!(both.value(Measure::Samples), Some(1.25));
        assert_eq!(both.value(Measure::Instructions), Some(0.1));
        assert_eq!(both.value(Measure::CpuTimePerPass), Some(0.2));
        assert_eq!(both.value(Measure::NumbersMean), Some(1.5));
        let nothing = Reading::default();
        for measure in [Measure::CpuTime, Measure::CpuTimePerWrite, Measure::Samples, Measure::NumbersP50] {
            assert_eq!(nothing.value(measure), None);
        }
    }

    #[test]
    fn samples_are_of_what_is_switched_where_they_fall_there() {
        let windows = Switched::Windows([(7, [4 << 21].into())].into());
        assert!(windows.has(7, (4 << 21) + 5) && !windows.has(7, 5 << 21) && !windows.has(8, 4 << 21));
        assert!(Switched::AllData.has(1, 1) && !Switched::AllData.has(1, 0));
    }
}
