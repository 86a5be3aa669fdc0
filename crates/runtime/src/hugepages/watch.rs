//! Choices again and again, for a program and those that it starts, as long as it lives.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lookaside_host::Process;
use serde::Serialize;

use super::choose::{choose, ProcessView, WindowWeight, WindowWeights};
use super::collapse::{CollapseHandle, CollapseResult, CollapseSide};
use super::error::HugePageError;
use super::pages::ProcessMemory;
use super::sampler::{see, MemoryObservation};
use super::sampler::{AddressSampler, ObservedBy};
use super::windows::FitWindow;
use crate::bake::{family, Identity};

/// First look at the program, and each next one after twice as long, up to the last.
const FIRST_LOOK: Duration = Duration::from_millis(100);
const LAST_LOOK: Duration = Duration::from_secs(1);
/// A process with less in small pages is not looked at closer: second-level TLBs of today reach that far (2,048 entries
/// of 4 KiB).
const LARGE_BYTES: u64 = 8 << 20;
/// While the memory grows by more than one part in so many from a look to the next, the program is still being set up …
const GROWTH: u64 = 20;
/// … for so long at most; after that it is taken as it is.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long is looked before a choice: 2,000 samples of each thread that runs all the time.
const SAMPLING: Duration = Duration::from_secs(2);
/// Pause after a closer look, and twice as long after each next one, up to the last: sampling costs 1.6 % of the
/// program's CPU time (docs/results/sampling.md), in the end for a sixteenth of the time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(30);
/// A choice takes half of what is left of the budget, but not less than so many windows (16 MiB).
const LEAST_TAKEN: usize = 8;
/// How soon the end of the program is heeded.
const STEP: Duration = Duration::from_millis(20);

/// How huge pages are to be chosen while a program runs: `auto:K`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugePageSettings {
    /// Huge pages in use at a time at most, of all its processes together.
    pub budget: usize,
}

impl FromStr for HugePageSettings {
    type Err = HugePageError;

    fn from_str(text: &str) -> Result<Self, HugePageError> {
        let budget = text.strip_prefix("auto:").and_then(|number| number.parse().ok()).filter(|&budget| budget > 0);
        let budget = budget.ok_or_else(|| {
            HugePageError::Bad(format!("`{text}`: want auto:K, K huge pages of 2 MiB at most, such as auto:64"))
        })?;
        Ok(Self { budget })
    }
}

impl fmt::Display for HugePageSettings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "auto:{}", self.budget)
    }
}

/// What was done for a program and those that it started.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct PromotionSummary {
    /// Huge pages in use at a time at most.
    pub budget: usize,
    /// How it was seen the last time; absent: nothing was looked at closer.
    pub by: Option<ObservedBy>,
    /// Who makes huge pages of the process that was taken hold of last; absent: of none.
    pub way: Option<CollapseSide>,
    /// Times that windows were looked for.
    pub choices: u32,
    /// Samples taken, or bytes referenced, in all.
    pub weight: u64,
    /// Windows made huge.
    pub collapsed: usize,
    /// Of these, in use when last looked at.
    pub in_use: usize,
    /// Bytes in memory that this added.
    pub bloat_bytes: u64,
    /// Share of all samples of the last time that fell in windows that were huge already or were made so then.
    pub covered: Option<f64>,
    /// Nanoseconds of all calls.
    pub calls_nanos: u64,
    /// The longest call: page faults of the program may have waited as long.
    pub longest_call_nanos: u64,
    /// Calls that were refused, by why.
    pub refused: BTreeMap<String, u64>,
    /// What else has to be known.
    pub notes: Vec<String>,
}

/// The thread beside a program.
#[derive(Debug)]
pub struct HugePageWatch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<PromotionSummary>,
}

impl HugePageWatch {
    /// Begins to watch a process and those that it starts.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(pid: u32, settings: HugePageSettings, look: Arc<dyn AddressSampler>) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let beside = std::thread::Builder::new().name("hugepages".into());
        let thread = beside.spawn(move || {
            let mut followed = Follow::new(settings, &*look, &stopped);
            followed.all(pid);
            followed.done
        })?;
        Ok(Self { stop, thread })
    }

    /// Ends it; gives what was done. Returns within a tenth of a second, a call that is being made apart.
    pub fn end(self) -> PromotionSummary {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().unwrap_or_default()
    }
}

/// A process of the program.
struct Kept {
    /// The hold on it.
    handle: CollapseHandle,
    /// How often its windows were seen; older sights count half from choice to choice.
    weights: WindowWeights,
    /// Windows that were made huge here.
    ours: BTreeSet<u64>,
    /// Windows that the kernel makes no huge pages of.
    never: BTreeSet<u64>,
}

struct Follow<'a> {
    settings: HugePageSettings,
    look: &'a dyn AddressSampler,
    stopped: &'a AtomicBool,
    processes: BTreeMap<u32, Kept>,
    done: PromotionSummary,
}

impl<'a> Follow<'a> {
    fn new(settings: HugePageSettings, look: &'a dyn AddressSampler, stopped: &'a AtomicBool) -> Self {
        let done = PromotionSummary { budget: settings.budget, ..PromotionSummary::default() };
        Self { settings, look, stopped, processes: BTreeMap::new(), done }
    }

    fn stop(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Waits; `false` = it is to stop.
    fn wait(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while !self.stop() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(STEP));
        }
        false
    }

    /// Until the program has ended.
    fn all(&mut self, pid: u32) {
        let (mut wait, mut pause) = (FIRST_LOOK, FIRST_PAUSE);
        let (mut before, mut large_since, mut due) = (0, None, Instant::now());
        while self.wait(wait) {
            wait = (wait * 2).min(LAST_LOOK);
            let large: Vec<(u32, u64)> = family(pid)
                .into_iter()
                .map(|pid| (pid, anonymous_bytes(pid)))
                .filter(|&(_, bytes)| bytes >= LARGE_BYTES)
                .collect();
            let bytes = large.iter().map(|&(_, bytes)| bytes).sum();
            let grows = has_grown(before, bytes);
            before = bytes;
            if large.is_empty() || Instant::now() < due {
                continue;
            }
            let since = *large_since.get_or_insert_with(Instant::now);
            if grows && since.elapsed() < PATIENCE {
                continue;
            }
            // A closer look costs some 10 ms a GiB: not each second.
            let memories = self.look_closer(&large);
            let left = self.settings.budget.saturating_sub(self.done.in_use);
            if left > 0 && memories.values().any(|memory| memory.small_bytes() >= LARGE_BYTES) {
                self.choose(&memories, left);
            }
            due = Instant::now() + pause;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// The memory of these processes, and how much of the budget is in use.
    fn look_closer(&mut self, large: &[(u32, u64)]) -> BTreeMap<u32, ProcessMemory> {
        // One that has ended, or runs another program, has given back its windows.
        self.processes.retain(|_, kept| kept.handle.is_same());
        let mut memories = BTreeMap::new();
        for &(pid, _) in large {
            if !self.processes.contains_key(&pid) {
                let handle = match CollapseHandle::open(pid) {
                    Ok(handle) => handle,
                    // Some of it passes: it is tried again at the next look.
                    Err(e) => {
                        if Identity::of(pid).is_ok() {
                            self.note(e.to_string());
                        }
                        continue;
                    }
                };
                self.done.way = Some(handle.way());
                let (weights, ours, never) = (WindowWeights::new(), BTreeSet::new(), BTreeSet::new());
                self.processes.insert(pid, Kept { handle, weights, ours, never });
            }
            let Some(kept) = self.processes.get_mut(&pid) else { continue };
            // It may have ended meanwhile: nothing to tell.
            let Ok(memory) = ProcessMemory::of(pid) else { continue };
            kept.ours.retain(|&start| memory.window(start).is_some_and(FitWindow::is_huge));
            memories.insert(pid, memory);
        }
        self.done.in_use = self.processes.values().map(|kept| kept.ours.len()).sum();
        memories
    }

    /// One choice.
    fn choose(&mut self, memories: &BTreeMap<u32, ProcessMemory>, left: usize) {
        let large = memories.iter().filter(|(_, memory)| memory.small_bytes() >= LARGE_BYTES);
        let pids: Vec<u32> = large.map(|(&pid, _)| pid).collect();
        let stop = || self.stop();
        let look = self.look;
        let seen: Vec<(u32, Result<MemoryObservation, HugePageError>)> = std::thread::scope(|scope| {
            let stop: &(dyn Fn() -> bool + Sync) = &stop;
            let threads: Vec<_> = pids
                .iter()
                .map(|&pid| (pid, scope.spawn(move || see(pid, SAMPLING, None, look, &|| stop()))))
                .collect();
            let joined = threads.into_iter().filter_map(|(pid, thread)| Some((pid, thread.join().ok()?)));
            joined.collect()
        });
        if self.stop() {
            return;
        }
        let mut sights: Vec<(u32, MemoryObservation)> = Vec::new();
        for (pid, seen) in seen {
            match (seen, self.processes.get_mut(&pid)) {
                (Ok(mut seen), Some(kept)) => {
                    age_and_add(&mut kept.weights, &seen.weights);
                    seen.memory.windows.retain(|window| !kept.never.contains(&window.start));
                    sights.push((pid, seen));
                }
                // It has ended meanwhile.
                _ => continue,
            }
        }
        if sights.is_empty() {
            return;
        }
        self.done.choices += 1;
        let reasons: Vec<String> = sights.iter().filter_map(|(_, seen)| seen.no_samples.clone()).collect();
        for why in reasons {
            self.note(format!("by referenced bits, known only per mapping: {why}"));
        }
        let views = sights.iter().filter_map(|(pid, seen)| {
            let weights = &self.processes.get(pid)?.weights;
            Some(ProcessView { pid: *pid, areas: &seen.memory.areas, windows: &seen.memory.windows, weights })
        });
        let views: Vec<ProcessView<'_>> = views.collect();
        let choice = choose(&views, left.div_ceil(2).max(LEAST_TAKEN).min(left));
        let weight: u64 = sights.iter().map(|(_, seen)| seen.weight()).sum();
        self.done.by = sights.first().map(|(_, seen)| seen.by).or(self.done.by);
        self.done.weight += weight;
        let mut covered: u64 = sights.iter().map(|(_, seen)| huge_weight(seen)).sum();
        for chosen in choice.chosen {
            if self.stop() {
                break;
            }
            let Some(kept) = self.processes.get_mut(&chosen.pid) else { continue };
            let start = chosen.window.start;
            let tried = kept.handle.collapse(start);
            self.done.calls_nanos += tried.nanos();
            self.done.longest_call_nanos = self.done.longest_call_nanos.max(tried.nanos());
            match tried {
                CollapseResult::Collapsed { .. } => {
                    kept.ours.insert(start);
                    self.done.collapsed += 1;
                    self.done.in_use += 1;
                    self.done.bloat_bytes += chosen.bloat_bytes;
                    let seen = sights.iter().find(|(pid, _)| *pid == chosen.pid);
                    covered += seen.and_then(|(_, seen)| seen.weights.get(&start)).map_or(0, |weight| weight.all());
                }
                CollapseResult::Refused { errno, why, .. } => {
                    match errno {
                        libc::EINVAL => {
                            kept.never.insert(start);
                        }
                        // It may become huge yet: the budget has room for it until the next look.
                        libc::ETIMEDOUT => {
                            kept.ours.insert(start);
                            self.done.in_use += 1;
                        }
                        _ => {}
                    }
                    *self.done.refused.entry(why).or_default() += 1;
                }
            }
        }
        if weight > 0 {
            self.done.covered = Some(covered as f64 / weight as f64);
        }
    }

    fn note(&mut self, note: String) {
        if !self.done.notes.contains(&note) {
            self.done.notes.push(note);
        }
    }
}

/// The program is still being set up.
fn has_grown(before: u64, bytes: u64) -> bool {
    bytes > before + before / GROWTH
}

/// Waits until a process and those that it started have set up their memory, for half a minute at most, or until
/// `stop` says so or it ends. Gives those of them with 8 MiB or more of anonymous memory.
pub fn when_set_up(pid: u32, stop: &dyn Fn() -> bool) -> Vec<u32> {
    let (began, mut before) = (Instant::now(), 0);
    loop {
        let large: Vec<(u32, u64)> =
            family(pid).into_iter().map(|pid| (pid, anonymous_bytes(pid))).filter(|row| row.1 >= LARGE_BYTES).collect();
        let bytes = large.iter().map(|row| row.1).sum();
        let is_set_up = bytes > 0 && !has_grown(before, bytes);
        if is_set_up || stop() || began.elapsed() >= PATIENCE || Identity::of(pid).is_err() {
            return large.into_iter().map(|row| row.0).collect();
        }
        before = bytes;
        let next = Instant::now() + LAST_LOOK;
        while Instant::now() < next && !stop() && Identity::of(pid).is_ok() {
            std::thread::sleep(STEP);
        }
    }
}

/// What was seen before counts half of what it did.
fn age_and_add(weights: &mut WindowWeights, new: &WindowWeights) {
    for weight in weights.values_mut() {
        *weight = WindowWeight { even: weight.even / 2, odd: weight.odd / 2 };
    }
    for (&start, weight) in new {
        let sum = weights.entry(start).or_default();
        *sum = WindowWeight { even: sum.even + weight.even, odd: sum.odd + weight.odd };
    }
    weights.retain(|_, weight| weight.all() > 0);
}

/// Weight of what was seen in windows that are huge already.
fn huge_weight(seen: &MemoryObservation) -> u64 {
    let huge = seen.memory.windows.iter().filter(|window| window.is_huge());
    huge.filter_map(|window| seen.weights.get(&window.start)).map(|weight| weight.all()).sum()
}

/// Bytes of a process's anonymous memory that are in memory; 0 where there is none.
fn anonymous_bytes(pid: u32) -> u64 {
    Process::of(pid).status().unwrap_or_default().bytes("RssAnon").unwrap_or(0)
}

#[cfg(test)]
pub(super) mod tests;
