//! What a helper within its program does, and the line of JSON about it: told while the program runs and, by the preloaded one, when it
//! exits. Nothing here allocates or panics.

use std::ffi::CStr;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use super::Backend;

/// What a helper is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
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
    const NAMES: [(Self, &'static CStr); 10] = [
        (Self::Looking, c"looking"),
        (Self::Baking, c"baking"),
        (Self::Warm, c"warm"),
        (Self::Idle, c"idle"),
        (Self::TooLarge, c"off-too-large"),
        (Self::Hopeless, c"off-hopeless"),
        (Self::NoCpu, c"off-no-cpu"),
        (Self::Refused, c"off-refused"),
        (Self::Left, c"off-left"),
        (Self::Crowded, c"crowded"),
    ];

    /// What it is called.
    pub fn name(self) -> &'static CStr {
        Self::NAMES.iter().find(|(state, _)| *state == self).map_or(c"", |(_, name)| name)
    }
}

/// Written by the helper, read by whoever wants to know.
#[derive(Debug, Default)]
pub struct Counters {
    state: AtomicU32,
    /// Error number of the call that the system refused last; 0 = none.
    pub errno: AtomicI32,
    /// `auto` chose the kernel module.
    pub by_module: AtomicBool,
    started_nanos: AtomicU64,
    /// Whole rounds.
    pub rounds: AtomicU64,
    /// Touches.
    pub touches: AtomicU64,
    /// Looks at what there is to bake.
    pub looks: AtomicU64,
    /// Time spent touching, by the clock.
    pub busy_nanos: AtomicU64,
    /// CPU time of the helper.
    pub cpu_nanos: AtomicU64,
    /// What `auto` sensed last, a touch: after a pause; 0 = nothing yet.
    pub after_pause_picos: AtomicU64,
    /// The same right after that round.
    pub right_after_picos: AtomicU64,
    /// Longest look, waits for a CPU included.
    pub longest_look_nanos: AtomicU64,
    /// Pause after the last round.
    pub pause_nanos: AtomicU64,
    /// Ranges that are baked.
    pub ranges: AtomicU64,
    /// Bytes of these.
    pub small_bytes: AtomicU64,
    /// Most that it was at a time.
    pub most_small_bytes: AtomicU64,
}

impl Counters {
    /// All anew, from this moment on (of the clock that only goes forward).
    pub fn reset(&self, now_nanos: u64) {
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

    /// What it does from now on.
    pub fn set_state(&self, state: State) {
        self.state.store(state as u32, Ordering::Relaxed);
    }

    /// What it does.
    pub fn state(&self) -> State {
        let state = self.state.load(Ordering::Relaxed);
        State::NAMES.iter().map(|(kind, _)| *kind).find(|kind| *kind as u32 == state).unwrap_or(State::Looking)
    }

    /// How it touches, which `auto` may have chosen otherwise than was asked.
    pub fn backend(&self, asked: Backend) -> Backend {
        if self.by_module.load(Ordering::Relaxed) {
            Backend::Module
        } else {
            asked
        }
    }

    /// So many bytes in so many ranges are there to be baked.
    pub fn found(&self, ranges: u64, small_bytes: u64) {
        self.ranges.store(ranges, Ordering::Relaxed);
        self.small_bytes.store(small_bytes, Ordering::Relaxed);
        self.most_small_bytes.fetch_max(small_bytes, Ordering::Relaxed);
    }
}

/// A line in a buffer of its own; one that does not fit is none.
#[derive(Debug)]
pub struct Line {
    bytes: [u8; 1024],
    length: usize,
}

impl Line {
    /// With its line break.
    pub fn bytes(&self) -> &[u8] {
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

/// The line of a process: its number, what was asked for as text and the backend of that.
pub fn line(pid: i32, bake: &str, asked: Backend, counters: &Counters, now_nanos: u64) -> Option<Line> {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (state, backend) = (counters.state().name().to_str().unwrap_or_default(), counters.backend(asked));
    let mut line = Line { bytes: [0; 1024], length: 0 };
    writeln!(
        line,
        "{{\"pid\":{pid},\"bake\":\"{bake}\",\"backend\":\"{backend}\",\"state\":\"{state}\",\"errno\":{},\"elapsed_nanos\":{},\
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
    use super::super::Hint;
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
        let backend: Backend = Backend::Prefetch(Hint::T1);
        let line = line(i32::MAX, baker, backend, &counters, u64::MAX).expect("it fits");
        assert_eq!(line.bytes().last(), Some(&b'\n'));
        let read: serde_json::Value = serde_json::from_slice(line.bytes()).expect("JSON");
        assert_eq!(read["touches"], u64::MAX);
        assert_eq!(read["state"], "off-too-large");
        assert_eq!((&read["bake"], &read["backend"]), (&baker.into(), &"prefetch:t1".into()));
        counters.by_module.store(true, Ordering::Relaxed);
        assert_eq!(counters.backend(backend), Backend::Module);
        for (at, (state, name)) in State::NAMES.iter().enumerate() {
            assert_eq!((*state as usize, state.name()), (at, *name));
            counters.set_state(*state);
            assert_eq!(counters.state(), *state);
        }
    }
}
