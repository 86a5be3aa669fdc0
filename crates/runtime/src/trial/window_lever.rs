//! Huge pages for chosen windows of processes, made and split again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lookaside_host::Process;

use super::error::TrialError;
use super::journal::JournalProcess;
use super::lever::{Lever, LeverCalls, LeverState};
use super::request::TrialRequest;
use super::target::TrialTarget;
use crate::hugepages::{
    check_way_back, choose, see, CollapseHandle, CollapseResult, HotWindow, MemoryObservation, ObservedBy, PlanFinder,
    ProcessMemory, ProcessView, SplitResult,
};

/// The windows that a trial switches.
pub(super) struct WindowLever {
    processes: Vec<SwitchedProcess>,
    calls: LeverCalls,
    most_stall_nanos: u64,
}

/// A process and its windows.
struct SwitchedProcess {
    target: TrialTarget,
    handle: CollapseHandle,
    windows: BTreeSet<u64>,
}

/// What was chosen, and how.
pub(super) struct WindowsChoice {
    pub(super) windows: usize,
    /// Of all samples, or bytes referenced; absent for a plan's windows.
    pub(super) share: Option<f64>,
    /// Why there are no samples.
    pub(super) no_samples: Option<String>,
    pub(super) notes: Vec<String>,
}

/// What the choice is bound to.
pub(super) struct WindowLimits<'a> {
    pub(super) budget: usize,
    pub(super) memory_bytes: u64,
    pub(super) by: Option<ObservedBy>,
    pub(super) plan: Option<&'a dyn PlanFinder>,
}

impl WindowLever {
    /// Looks at the processes and chooses. Nothing is changed.
    ///
    /// # Errors
    /// There is no right to, huge pages can't be taken back here, or nothing can be chosen: in a line.
    pub(super) fn choose(
        request: &TrialRequest<'_>,
        targets: &[TrialTarget],
        limits: &WindowLimits<'_>,
    ) -> Result<(Self, WindowsChoice), TrialError> {
        let (mut held, mut refused) = (Vec::new(), None);
        for target in targets {
            match CollapseHandle::open(target.pid) {
                Ok(handle) => held.push((target, handle)),
                Err(e) => refused = Some(e),
            }
        }
        let mut notes: Vec<String> = refused.iter().filter(|_| !held.is_empty()).map(ToString::to_string).collect();
        if let (true, Some(e)) = (held.is_empty(), refused) {
            return Err(e.into());
        }
        check_way_back()?;
        let pids: Vec<u32> = held.iter().map(|(target, _)| target.pid).collect();
        let seen = look(request, &pids, limits)?;
        let (chosen, share) = match limits.plan {
            Some(plan) => (planned(&pids, plan)?, None),
            None => by_what_was_seen(&seen, limits.budget),
        };
        let no_samples = seen.iter().find_map(|(_, seen)| seen.no_samples.clone());
        notes.extend(no_samples.clone());
        let mut windows: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
        let (mut bytes, mut count, mut left_out) = (0, 0, 0);
        for window in chosen.iter().take(limits.budget) {
            if bytes + window.bloat_bytes > limits.memory_bytes {
                left_out += 1;
                continue;
            }
            bytes += window.bloat_bytes;
            count += 1;
            windows.entry(window.pid).or_default().insert(window.window.start);
        }
        if left_out > 0 {
            notes.push(format!("{left_out} windows were left out: they would add more memory than --memory allows"));
        }
        if count == 0 {
            return Err(TrialError::Bad(nothing(&pids, &seen, left_out)));
        }
        let processes = held.into_iter().filter_map(|(target, handle)| {
            let windows = windows.remove(&target.pid)?;
            Some(SwitchedProcess { target: target.clone(), handle, windows })
        });
        let most_stall_nanos = u64::try_from(request.most_stall.as_nanos()).unwrap_or(u64::MAX);
        let lever = Self { processes: processes.collect(), calls: LeverCalls::default(), most_stall_nanos };
        Ok((lever, WindowsChoice { windows: count, share, no_samples, notes }))
    }

    /// The windows, by process.
    pub(super) fn windows(&self) -> BTreeMap<u32, BTreeSet<u64>> {
        self.processes.iter().map(|process| (process.target.pid, process.windows.clone())).collect()
    }
}

/// Why nothing was chosen.
fn nothing(pids: &[u32], seen: &[(u32, MemoryObservation)], left_out: usize) -> String {
    let who = match pids {
        [pid] => format!("process {pid}"),
        more => format!("{} processes", more.len()),
    };
    let huge = seen.iter().flat_map(|(_, seen)| &seen.memory.windows).filter(|window| window.is_huge()).count();
    match (left_out, huge) {
        (1.., _) => format!("{who}: each window would add more memory than --memory allows: raise it"),
        (_, 1..) => format!("{who}: it has huge pages where it is seen ({huge} windows); nothing is left to try"),
        _ => format!("{who}: it was not seen waiting in any whole window of 2 MiB of private memory; nothing to try"),
    }
}

/// Looks at all of them at the same time; a plan needs no look.
fn look(
    request: &TrialRequest<'_>,
    pids: &[u32],
    limits: &WindowLimits<'_>,
) -> Result<Vec<(u32, MemoryObservation)>, TrialError> {
    if limits.plan.is_some() {
        return Ok(Vec::new());
    }
    let stopped = std::sync::atomic::AtomicBool::new(false);
    let (sampler, time, by) = (&*request.sampler, request.look, limits.by);
    let seen: Vec<_> = std::thread::scope(|scope| {
        let stopped = &stopped;
        let halt = move || stopped.load(std::sync::atomic::Ordering::Relaxed);
        let threads: Vec<_> =
            pids.iter().map(|&pid| (pid, scope.spawn(move || see(pid, time, by, sampler, &halt)))).collect();
        let done =
            |threads: &[(u32, std::thread::ScopedJoinHandle<'_, _>)]| threads.iter().all(|(_, t)| t.is_finished());
        while !done(&threads) {
            stopped.store((request.stop)(), std::sync::atomic::Ordering::Relaxed);
            std::thread::sleep(super::meter::STEP);
        }
        threads.into_iter().filter_map(|(pid, thread)| Some((pid, thread.join().ok()?))).collect()
    });
    let (mut found, mut problem) = (Vec::new(), None);
    for (pid, seen) in seen {
        match seen {
            Ok(seen) => found.push((pid, seen)),
            Err(e) => problem = Some(e),
        }
    }
    match (found.is_empty(), problem) {
        (true, Some(e)) => Err(e.into()),
        _ => Ok(found),
    }
}

/// The windows seen most, and their share of all that was seen.
fn by_what_was_seen(seen: &[(u32, MemoryObservation)], budget: usize) -> (Vec<HotWindow>, Option<f64>) {
    let views: Vec<ProcessView<'_>> = seen
        .iter()
        .map(|(pid, seen)| ProcessView {
            pid: *pid,
            areas: &seen.memory.areas,
            windows: &seen.memory.windows,
            weights: &seen.weights,
        })
        .collect();
    let weight: u64 = seen.iter().map(|(_, seen)| seen.weight()).sum();
    let choice = choose(&views, budget);
    let share = (weight > 0).then(|| choice.chosen_weight as f64 / weight as f64);
    (choice.chosen, share)
}

/// The windows of a plan that the processes have, those that save most first.
fn planned(pids: &[u32], plan: &dyn PlanFinder) -> Result<Vec<HotWindow>, TrialError> {
    let (mut found, mut why): (Vec<(f64, HotWindow)>, _) = (Vec::new(), String::from("none of them is there"));
    for &pid in pids {
        let memory = ProcessMemory::of(pid)?;
        let maps = Process::of(pid).maps_text().map_err(|e| TrialError::Bad(e.to_string()))?;
        for region in plan.find(&maps) {
            match region.windows {
                Ok(windows) => found.extend(windows.iter().filter_map(|planned| {
                    let window = *memory.window(planned.start)?;
                    let bloat_bytes = window.bloat_bytes();
                    let chosen = HotWindow { pid, window, region: region.region.clone(), weight: 0, bloat_bytes };
                    (!window.is_huge()).then_some((planned.cycles, chosen))
                })),
                Err(problem) => why = format!("{}: {problem}", region.region),
            }
        }
    }
    if found.is_empty() {
        return Err(TrialError::Bad(format!("the plan's windows: {why}")));
    }
    found.sort_by(|one, other| other.0.total_cmp(&one.0));
    Ok(found.into_iter().map(|(_, window)| window).collect())
}

impl Lever for WindowLever {
    fn switch(&mut self, on: bool, stop: &dyn Fn() -> bool) -> Result<(), TrialError> {
        let _hurried = Hurried::begin();
        for process in &self.processes {
            for &window in &process.windows {
                // What is applied is always taken back, whoever asks to stop.
                if on && stop() {
                    return Ok(());
                }
                let (nanos, why, longest) = match on {
                    true => {
                        let made = process.handle.collapse(window);
                        let why = match &made {
                            CollapseResult::Refused { why, .. } => Some(why.clone()),
                            CollapseResult::Collapsed { .. } => None,
                        };
                        (made.nanos(), why, &mut self.calls.longest_apply_nanos)
                    }
                    false => {
                        let split = process.handle.split_patiently(window);
                        let why = match &split {
                            SplitResult::Refused { why, .. } => Some(why.clone()),
                            SplitResult::Split { .. } => None,
                        };
                        (split.nanos(), why, &mut self.calls.longest_take_back_nanos)
                    }
                };
                self.calls.calls += 1;
                self.calls.nanos += nanos;
                *longest = nanos.max(*longest);
                if let Some(why) = why {
                    *self.calls.refused.entry(why).or_default() += 1;
                }
                if on && nanos > self.most_stall_nanos {
                    let [took, most] = [nanos, self.most_stall_nanos].map(Duration::from_nanos);
                    let line = format!("a call took {took:.1?}, more than --max-stall allows ({most:?})");
                    return Err(TrialError::Bad(line));
                }
            }
        }
        Ok(())
    }

    fn state(&self) -> LeverState {
        let mut state = LeverState::default();
        for process in self.processes.iter().filter(|process| process.handle.is_same()) {
            for &window in &process.windows {
                match process.handle.is_huge(window) {
                    true => state.applied += 1,
                    false => state.not_applied += 1,
                }
            }
        }
        state
    }

    fn calls(&self) -> LeverCalls {
        self.calls.clone()
    }

    fn to_undo(&self) -> Vec<JournalProcess> {
        let of = |process: &SwitchedProcess| JournalProcess {
            pid: process.target.pid,
            identity: process.target.identity.clone(),
            windows: process.windows.iter().copied().collect(),
        };
        self.processes.iter().map(of).collect()
    }

    fn stays(&self) -> bool {
        true
    }

    fn advice(&self) -> String {
        "for every start: lookaside hugepages run --budget K CMD, or the allocator's switch".into()
    }
}

/// While it lives this thread goes before all others that share the CPU, where the system lets it: it would keep a page
/// fault of the program waiting if it lost the CPU in the middle of a call.
struct Hurried {
    before: libc::c_int,
}

impl Hurried {
    /// The least nice value (setpriority(2)).
    const FIRST: libc::c_int = -20;

    fn begin() -> Self {
        // SAFETY: takes numbers only; 0 is the calling thread (NOTES of setpriority(2)).
        let before = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        Self::set(Self::FIRST);
        Self { before }
    }

    fn set(nice: libc::c_int) {
        // SAFETY: as above. Without the right to, all stays as it is.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    }
}

impl Drop for Hurried {
    fn drop(&mut self) {
        Self::set(self.before);
    }
}
