//! What the helper did, and the line of JSON about it: told while the program runs, and when it exits.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use lookaside_runtime::bake::Backend;

use crate::area::Plan;
use crate::sys;

/// What the helper is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum State {
    /// There is nothing worth baking yet.
    Looking = 0,
    /// Baking.
    Baking = 1,
    /// Baking as slowly as can be: what it touches stays in the caches by itself.
    Warm = 2,
    /// The program does nothing.
    Idle = 3,
    /// Off: the tables are larger than the last cache.
    TooLarge = 4,
    /// Off: its touches stay cold however fast it goes.
    Hopeless = 5,
    /// Ended: the program may use one CPU only, or not the one that was asked for.
    NoCpu = 6,
    /// Ended: the system refused a call; `errno` says why.
    Refused = 7,
    /// Ended: the program is about to end, or became another user's.
    Left = 8,
    /// Resting: other threads want its CPU.
    Crowded = 9,
}

impl State {
    const NAMES: [(Self, &'static str); 10] = [
        (Self::Looking, "looking"),
        (Self::Baking, "baking"),
        (Self::Warm, "warm"),
        (Self::Idle, "idle"),
        (Self::TooLarge, "off-too-large"),
        (Self::Hopeless, "off-hopeless"),
        (Self::NoCpu, "off-no-cpu"),
        (Self::Refused, "off-refused"),
        (Self::Left, "off-left"),
        (Self::Crowded, "crowded"),
    ];
}

/// Written by the helper, read by it and at exit.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) state: AtomicU32,
    pub(crate) errno: AtomicI32,
    /// `auto` chose the kernel module.
    pub(crate) by_module: AtomicBool,
    pub(crate) started_nanos: AtomicU64,
    pub(crate) rounds: AtomicU64,
    pub(crate) touches: AtomicU64,
    pub(crate) looks: AtomicU64,
    /// Time spent touching, by the clock.
    pub(crate) busy_nanos: AtomicU64,
    pub(crate) cpu_nanos: AtomicU64,
    /// What `auto` sensed last, a touch: after a pause, and right after that round; 0 = nothing yet.
    pub(crate) after_pause_picos: AtomicU64,
    pub(crate) right_after_picos: AtomicU64,
    pub(crate) longest_look_nanos: AtomicU64,
    pub(crate) pause_nanos: AtomicU64,
    pub(crate) ranges: AtomicU64,
    pub(crate) small_bytes: AtomicU64,
    pub(crate) most_small_bytes: AtomicU64,
}

impl Counters {
    /// All anew, for a forked process.
    pub(crate) fn reset(&self, now_nanos: u64) {
        let zero = |counter: &AtomicU64| counter.store(0, Ordering::Relaxed);
        self.state.store(State::Looking as u32, Ordering::Relaxed);
        self.errno.store(0, Ordering::Relaxed);
        self.by_module.store(false, Ordering::Relaxed);
        self.started_nanos.store(now_nanos, Ordering::Relaxed);
        [&self.rounds, &self.touches, &self.looks, &self.longest_look_nanos].into_iter().for_each(zero);
        [&self.busy_nanos, &self.cpu_nanos, &self.after_pause_picos, &self.right_after_picos]
            .into_iter()
            .for_each(zero);
        [&self.pause_nanos, &self.ranges, &self.small_bytes, &self.most_small_bytes].into_iter().for_each(zero);
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u32, Ordering::Relaxed);
    }
}

/// A line in a buffer of its own; what does not fit is lost.
pub(crate) struct Line {
    bytes: [u8; 1024],
    length: usize,
}

impl Line {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            *self.bytes.get_mut(self.length).ok_or(fmt::Error)? = byte;
            self.length += 1;
        }
        Ok(())
    }
}

/// The line of this process.
pub(crate) fn line(plan: &Plan, counters: &Counters, now_nanos: u64) -> Option<Line> {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let state = counters.state.load(Ordering::Relaxed);
    let state = State::NAMES.iter().find(|(kind, _)| *kind as u32 == state).map_or("", |(_, name)| name);
    let by_module = counters.by_module.load(Ordering::Relaxed);
    let backend = if by_module { Backend::Module } else { plan.baker.settings.backend };
    let (pid, baker) = (sys::pid(), plan.baker_text());
    let mut line = Line { bytes: [0; 1024], length: 0 };
    writeln!(
        line,
        "{{\"pid\":{pid},\"bake\":\"{baker}\",\"backend\":\"{backend}\",\"state\":\"{state}\",\"errno\":{},\"elapsed_nanos\":{},\
         \"busy_nanos\":{},\"cpu_nanos\":{},\"rounds\":{},\"touches\":{},\"after_pause_picos\":{},\"right_after_picos\":{},\
         \"pause_nanos\":{},\"looks\":{},\"longest_look_nanos\":{},\"ranges\":{},\"small_bytes\":{},\"most_small_bytes\":{}}}",
        counters.errno.load(Ordering::Relaxed),
        now_nanos.saturating_sub(read(&counters.started_nanos)),
        read(&counters.busy_nanos),
        read(&counters.cpu_nanos),
        read(&counters.rounds),
        read(&counters.touches),
        read(&counters.after_pause_picos),
        read(&counters.right_after_picos),
        read(&counters.pause_nanos),
        read(&counters.looks),
        read(&counters.longest_look_nanos),
        read(&counters.ranges),
        read(&counters.small_bytes),
        read(&counters.most_small_bytes),
    )
    .ok()?;
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_json_and_says_what_was_counted() {
        let counters = Counters::default();
        counters.reset(0);
        let most = |counter: &AtomicU64| counter.store(u64::MAX, Ordering::Relaxed);
        [&counters.rounds, &counters.touches, &counters.looks, &counters.busy_nanos, &counters.cpu_nanos]
            .into_iter()
            .for_each(most);
        [&counters.after_pause_picos, &counters.right_after_picos, &counters.pause_nanos, &counters.ranges]
            .into_iter()
            .for_each(most);
        [&counters.longest_look_nanos, &counters.small_bytes, &counters.most_small_bytes].into_iter().for_each(most);
        counters.errno.store(i32::MIN, Ordering::Relaxed);
        counters.set_state(State::TooLarge);
        let baker =
            "prefetch:t1,stride=262144,nops=1048576,sleep=60000000000ns,cpu=4294967295,share=0.12345678901234567";
        let mut plan = Plan {
            baker: "prefetch:t1".parse().expect("a baker"),
            baker_text: [0; 128],
            start_cpu: 0,
            stats_path: [0; 4096],
        };
        plan.baker_text.iter_mut().zip(baker.bytes()).for_each(|(to, from)| *to = from);
        let line = line(&plan, &counters, u64::MAX).expect("it fits");
        assert_eq!(line.bytes().last(), Some(&b'\n'));
        let read: serde_json::Value = serde_json::from_slice(line.bytes()).expect("JSON");
        assert_eq!(read["touches"], u64::MAX);
        assert_eq!(read["state"], "off-too-large");
        assert_eq!((&read["bake"], &read["backend"]), (&baker.into(), &"prefetch:t1".into()));
        for (at, (state, _)) in State::NAMES.iter().enumerate() {
            assert_eq!(*state as usize, at);
        }
    }
}
