//! Trials of one process after the other, of those first that translation is likely to cost most, within budgets.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lookaside_host::{ticks_per_second, uptime_seconds};
use serde::Serialize;

use super::decide::Decision;
use super::error::TrialError;
use super::report::TrialReport;
use crate::bake::{Survey, Surveyed};

/// What an autopilot may use, and whom it tries.
#[derive(Clone, Debug, PartialEq)]
pub struct AutopilotLimits {
    /// Names of the processes that may be tried, as `ps -o comm` has them; none: all.
    pub comms: Vec<String>,
    /// CPUs that a process has to use.
    pub least_cpus: f64,
    /// Bytes that it has to have in small pages.
    pub least_small_bytes: u64,
    /// For how long it has to have run: most that are younger end before a trial would.
    pub least_age: Duration,
    /// Share of a CPU that all trials may use, in the long run.
    pub cpu_share: f64,
    /// Share of the time that calls which the programs may wait for may take, in the long run.
    pub stall_share: f64,
    /// Bytes that all huge pages that are kept may add to what the processes have in memory.
    pub memory_bytes: u64,
    /// A process is tried again after so long, where nothing was kept.
    pub again: Duration,
}

/// What an autopilot has done so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AutopilotTotals {
    /// Trials that were made.
    pub trials: u64,
    /// Of these, kept.
    pub kept: u64,
    /// Of these, taken back, whatever was found.
    pub taken_back: u64,
    /// Of these, broken off, or refused before they began.
    pub failed: u64,
    /// Nanoseconds of all calls that programs may have waited for.
    pub calls_nanos: u64,
    /// The longest of them.
    pub longest_call_nanos: u64,
    /// Bytes that what is kept now has added, of processes that are there.
    pub kept_bytes: u64,
}

/// Decides who is next, and when.
pub struct Autopilot {
    limits: AutopilotLimits,
    survey: Survey,
    /// By process and its start: when it was tried last, and bytes that what was kept has added.
    tried: BTreeMap<(u32, u64), (Instant, Option<u64>)>,
    totals: AutopilotTotals,
    began: Instant,
}

impl Autopilot {
    /// Nothing done yet.
    pub fn new(limits: AutopilotLimits) -> Self {
        Self {
            limits,
            survey: Survey::new(),
            tried: BTreeMap::new(),
            totals: AutopilotTotals::default(),
            began: Instant::now(),
        }
    }

    /// The process to try now, if one is worth it: of those that use enough CPU time and have enough memory in small
    /// pages the one that translation is likely to cost most, leaving out those that were tried.
    ///
    /// # Errors
    /// The system does not list its processes.
    pub fn next_process(&mut self) -> Result<Option<Surveyed>, TrialError> {
        let processes = self.survey.look()?;
        let up = uptime_seconds().unwrap_or(f64::MAX);
        let begun_ticks = (up - self.limits.least_age.as_secs_f64()).max(0.0) * ticks_per_second();
        Ok(self.choose(&processes, Instant::now(), begun_ticks as u64))
    }

    /// `begun_ticks`: when a process must have begun.
    fn choose(&mut self, processes: &[Surveyed], now: Instant, begun_ticks: u64) -> Option<Surveyed> {
        let is_there = |key: &(u32, u64)| processes.iter().any(|process| key_of(process) == *key);
        self.tried.retain(|key, _| is_there(key));
        self.totals.kept_bytes = self.tried.values().filter_map(|(_, kept)| *kept).sum();
        let limits = &self.limits;
        let is_worth = |process: &&Surveyed| {
            (limits.comms.is_empty() || limits.comms.contains(&process.comm))
                && process.cpus >= limits.least_cpus
                && process.small_bytes() >= limits.least_small_bytes
                && process.started_ticks <= begun_ticks
        };
        let is_due = |process: &&Surveyed| match self.tried.get(&key_of(process)) {
            None => true,
            Some((_, Some(_))) => false,
            Some((last, None)) => now.duration_since(*last) >= limits.again,
        };
        processes.iter().filter(is_worth).find(is_due).cloned()
    }

    /// Bytes that the next trial may add.
    pub fn memory_left(&self) -> u64 {
        self.limits.memory_bytes.saturating_sub(self.totals.kept_bytes)
    }

    /// Takes note of what became of a process's trial; `None`: it could not be made.
    pub fn tried(&mut self, process: &Surveyed, report: Option<&TrialReport>) {
        let kept = report.filter(|report| report.decision == Decision::Kept);
        let added = kept.map(|report| u64::try_from(report.added_bytes).unwrap_or(0));
        self.tried.insert(key_of(process), (Instant::now(), added));
        let totals = &mut self.totals;
        totals.trials += 1;
        totals.kept_bytes += added.unwrap_or(0);
        match report {
            Some(report) => {
                totals.calls_nanos += report.calls.nanos;
                totals.longest_call_nanos = totals.longest_call_nanos.max(report.calls.longest_nanos());
                match report.decision {
                    Decision::Kept => totals.kept += 1,
                    Decision::TakenBack => totals.taken_back += 1,
                    Decision::NotAllTakenBack | Decision::Ended => totals.failed += 1,
                }
            }
            None => totals.failed += 1,
        }
    }

    /// How long to do nothing, so that trials stay within their budgets: by the CPU time that this command has used so
    /// far, and by the calls.
    pub fn pause(&self, used_cpu: Duration) -> Duration {
        self.pause_after(self.began.elapsed(), used_cpu)
    }

    fn pause_after(&self, elapsed: Duration, used_cpu: Duration) -> Duration {
        let of_cpu = used_cpu.div_f64(self.limits.cpu_share);
        let of_calls = Duration::from_nanos(self.totals.calls_nanos).div_f64(self.limits.stall_share);
        of_cpu.max(of_calls).saturating_sub(elapsed)
    }

    /// What was done.
    pub fn totals(&self) -> &AutopilotTotals {
        &self.totals
    }
}

fn key_of(process: &Surveyed) -> (u32, u64) {
    (process.pid, process.started_ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> AutopilotLimits {
        AutopilotLimits {
            comms: Vec::new(),
            least_cpus: 0.1,
            least_small_bytes: 64 << 20,
            least_age: Duration::from_secs(60),
            cpu_share: 0.02,
            stall_share: 0.01,
            memory_bytes: 100,
            again: Duration::from_secs(3600),
        }
    }

    fn process(pid: u32, cpus: f64, mib: u64) -> Surveyed {
        Surveyed {
            pid,
            comm: "db".into(),
            cpus,
            resident_bytes: mib << 20,
            huge_bytes: 0,
            table_bytes: 0,
            helpers: Vec::new(),
            started_ticks: 7,
        }
    }

    #[test]
    fn who_is_worth_it_is_tried_once_in_the_order_of_the_ranking() {
        let mut autopilot = Autopilot::new(limits());
        let all = [process(1, 1.0, 10), process(2, 0.05, 1000), process(3, 0.5, 100), process(4, 0.2, 100)];
        let now = Instant::now();
        let mut tried = Vec::new();
        while let Some(next) = autopilot.choose(&all, now, 7) {
            tried.push(next.pid);
            autopilot.tried(&next, None);
        }
        assert_eq!((tried, autopilot.totals().failed), (vec![3, 4], 2));
        let later = autopilot.choose(&all, now + Duration::from_secs(3700), 7).map(|process| process.pid);
        assert_eq!(later, Some(3));
        let mut choosy = Autopilot::new(AutopilotLimits { comms: vec!["web".into()], ..limits() });
        assert_eq!(choosy.choose(&all, now, 7), None);
        let web = Surveyed { comm: "web".into(), ..process(4, 0.2, 100) };
        assert_eq!(choosy.choose(&[process(3, 0.5, 100), web], now, 7).map(|process| process.pid), Some(4));
        // Another process of that number, since; but not before it has run for a while.
        let new = Surveyed { started_ticks: 9, ..process(4, 0.2, 100) };
        assert_eq!(autopilot.choose(std::slice::from_ref(&new), now, 8), None);
        assert_eq!(autopilot.choose(&[new], now, 9).map(|process| process.pid), Some(4));
    }

    #[test]
    fn it_pauses_until_it_is_within_its_budgets() {
        let mut autopilot = Autopilot::new(limits());
        let seconds = Duration::from_secs;
        assert_eq!(autopilot.pause_after(seconds(10), Duration::from_millis(100)), Duration::ZERO);
        assert_eq!(autopilot.pause_after(seconds(10), seconds(1)), seconds(40));
        autopilot.totals.calls_nanos = 1_000_000_000;
        assert_eq!(autopilot.pause_after(seconds(10), seconds(1)), seconds(90));
    }

    #[test]
    fn memory_of_processes_that_ended_is_free_again() {
        let mut autopilot = Autopilot::new(limits());
        autopilot.tried.insert((3, 7), (Instant::now(), Some(60)));
        autopilot.choose(&[process(3, 1.0, 100)], Instant::now(), 7);
        assert_eq!(autopilot.memory_left(), 40);
        // What was kept is not tried again.
        assert_eq!(autopilot.choose(&[process(3, 1.0, 100)], Instant::now() + Duration::from_secs(7200), 7), None);
        autopilot.choose(&[], Instant::now(), 7);
        assert_eq!(autopilot.memory_left(), 100);
    }
}
