//! Threads of fixed priorities on one CPU, and their releases.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use lookaside_probe::counter::Timer;
use rustix::thread::{clock_nanosleep_absolute, ClockId, Pid, Timespec};
use schemars::JsonSchema;
use serde::Serialize;

use super::error::TaskRunError;

/// How tasks take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// `SCHED_FIFO`: a more important one always runs at once.
    Fifo,
    /// Plain priorities (nice 0 to 19), without the right to the other: a less important one gives way soon, and never
    /// quite.
    Nice,
}

/// Binds the calling thread to these CPUs.
pub(super) fn bind(cpus: &[usize]) -> Result<(), TaskRunError> {
    lookaside_host::bind_to(cpus).map_err(|error| {
        let cpus: Vec<String> = cpus.iter().map(usize::to_string).collect();
        TaskRunError(format!("CPU {} cannot be had: {error}", cpus.join(", ")))
    })
}

/// Whether this thread may have `SCHED_FIFO`; leaves it as it was.
pub(super) fn scheduling() -> Scheduling {
    let mut had = libc::sched_param { sched_priority: 0 };
    // SAFETY: asks the system; the parameter is ours.
    let policy = unsafe {
        libc::sched_getparam(0, &mut had);
        libc::sched_getscheduler(0)
    };
    if !fifo(1) {
        return Scheduling::Nice;
    }
    set(policy, had.sched_priority);
    Scheduling::Fifo
}

/// Makes the calling thread the one of this rank (0: the most important) of so many.
pub(super) fn become_task(scheduling: Scheduling, rank: usize, of: usize) -> bool {
    match scheduling {
        // Linux has 99 of these; distinct as long as there are no more tasks.
        Scheduling::Fifo => fifo((of - rank).clamp(1, 99) as i32),
        Scheduling::Nice => {
            let nice = (19 * rank).checked_div(of - 1).unwrap_or(0) as i32;
            rustix::process::setpriority_process(Some(thread()), nice).is_ok()
        }
    }
}

fn thread() -> Pid {
    rustix::thread::gettid()
}

fn fifo(priority: i32) -> bool {
    set(libc::SCHED_FIFO, priority)
}

fn set(policy: i32, priority: i32) -> bool {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: reads the parameter, changes the calling thread's policy.
    unsafe { libc::sched_setscheduler(0, policy, &param) == 0 }
}

/// Now, in nanoseconds of the system's steady clock.
pub(super) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleeps until a time of that clock; not at all where it has come.
pub(super) fn sleep_until(ns: u64) {
    let until = Duration::from_nanos(ns);
    let until = Timespec { tv_sec: until.as_secs() as _, tv_nsec: until.subsec_nanos().into() };
    // A signal wakes early; any other refusal would be for ever.
    while clock_nanosleep_absolute(ClockId::Monotonic, &until) == Err(rustix::io::Errno::INTR) {}
}

/// A thread that runs when no task does, and writes down when others do. So the CPU does not sleep between jobs either,
/// which in a virtual machine gives it to another one, and whatever that leaves of TLBs and caches.
#[derive(Debug)]
pub(super) struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<[u64; 2]>>>,
}

/// Gaps that are written down; an hour of a tick every 4 ms, or less.
const GAPS: usize = 1 << 20;
/// Ticks between two looks at the timer that are no gap, in nanoseconds: a look takes some 20.
const LOOK_NS: f64 = 500.0;

impl Watch {
    /// On this CPU, behind everybody else.
    pub(super) fn on(cpu: usize, timer: Timer) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = stop.clone();
        let look = LOOK_NS / timer.ns(1);
        let mut last = timer.now();
        let watch = move || {
            let mut gaps = Vec::with_capacity(GAPS);
            // At a plain priority it would take the tasks' time.
            let watches = set(libc::SCHED_IDLE, 0) && bind(&[cpu]).is_ok();
            while watches && !asked.load(Ordering::Relaxed) {
                let now = timer.now();
                if now.wrapping_sub(last) as f64 > look && gaps.len() < GAPS - 1 {
                    gaps.push([last, now]);
                    last = timer.now();
                } else {
                    last = now;
                }
            }
            // What it did not see is a gap too.
            gaps.push([last, timer.now()]);
            gaps
        };
        Self { thread: std::thread::Builder::new().spawn(watch).ok(), stop }
    }

    /// Ends it: when others ran, in the order of time.
    pub(super) fn end(mut self) -> Vec<[u64; 2]> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A thread on the caller's CPU that the caller can switch to and back.
#[derive(Debug)]
pub(super) struct Partner {
    ask: Option<PipeWriter>,
    answer: PipeReader,
    thread: Option<JoinHandle<()>>,
}

impl Partner {
    /// On this CPU, which the caller is bound to.
    pub(super) fn on(cpu: usize) -> Result<Self, TaskRunError> {
        let failed = |error: std::io::Error| TaskRunError(format!("no thread to switch to: {error}"));
        let (mut asked, ask) = std::io::pipe().map_err(failed)?;
        let (answer, mut answered) = std::io::pipe().map_err(failed)?;
        let wait = move || {
            let mut byte = [0];
            // Until the caller closes its end.
            while bind(&[cpu]).is_ok() && asked.read_exact(&mut byte).is_ok() && answered.write_all(&byte).is_ok() {}
        };
        let thread = Some(std::thread::Builder::new().spawn(wait).map_err(failed)?);
        Ok(Self { ask: Some(ask), answer, thread })
    }

    /// There and back.
    pub(super) fn switch(&mut self) {
        let mut byte = [0];
        if self.ask.as_mut().is_some_and(|ask| ask.write_all(&byte).is_ok()) {
            // Where the other has gone there is nothing to wait for.
            let _ = self.answer.read_exact(&mut byte);
        }
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.ask.take();
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}
