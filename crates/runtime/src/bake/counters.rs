//! What a helper does and did, in numbers that others may read while it runs. Nothing here allocates or panics.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use super::settings::BakeBackend;

/// What a helper is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum HelperState {
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
    /// Ended: the program is about to end, its first thread has, or it became another user's.
    Left = 8,
    /// Resting: other threads want its CPU.
    Crowded = 9,
}

impl HelperState {
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
pub struct HelperCounters {
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

impl HelperCounters {
    /// All anew, from this moment on (of the clock that only goes forward).
    pub fn reset(&self, now_nanos: u64) {
        let zero = |counter: &AtomicU64| counter.store(0, Ordering::Relaxed);
        self.state.store(HelperState::Looking as u32, Ordering::Relaxed);
        self.errno.store(0, Ordering::Relaxed);
        self.by_module.store(false, Ordering::Relaxed);
        self.started_nanos.store(now_nanos, Ordering::Relaxed);
        [&self.rounds, &self.touches, &self.looks, &self.longest_look_nanos].into_iter().for_each(zero);
        [&self.busy_nanos, &self.cpu_nanos, &self.after_pause_picos, &self.right_after_picos]
            .into_iter()
            .for_each(zero);
        [&self.pause_nanos, &self.ranges, &self.small_bytes, &self.most_small_bytes].into_iter().for_each(zero);
    }

    /// Nanoseconds from the reset until now.
    pub fn elapsed_nanos(&self, now_nanos: u64) -> u64 {
        now_nanos.saturating_sub(self.started_nanos.load(Ordering::Relaxed))
    }

    /// What it does from now on.
    pub fn set_state(&self, state: HelperState) {
        self.state.store(state as u32, Ordering::Relaxed);
    }

    /// What it does.
    pub fn state(&self) -> HelperState {
        let state = self.state.load(Ordering::Relaxed);
        HelperState::NAMES
            .iter()
            .map(|(kind, _)| *kind)
            .find(|kind| *kind as u32 == state)
            .unwrap_or(HelperState::Looking)
    }

    /// How it touches, which `auto` may have chosen otherwise than was asked.
    pub fn backend(&self, asked: BakeBackend) -> BakeBackend {
        if self.by_module.load(Ordering::Relaxed) {
            BakeBackend::Module
        } else {
            asked
        }
    }

    /// So many bytes in so many ranges are there to be baked.
    pub(super) fn set_small_pages(&self, ranges: u64, small_bytes: u64) {
        self.ranges.store(ranges, Ordering::Relaxed);
        self.small_bytes.store(small_bytes, Ordering::Relaxed);
        self.most_small_bytes.fetch_max(small_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_their_numbers_and_names() {
        let counters = HelperCounters::default();
        for (at, (state, name)) in HelperState::NAMES.iter().enumerate() {
            assert_eq!((*state as usize, state.name()), (at, *name));
            counters.set_state(*state);
            assert_eq!(counters.state(), *state);
        }
    }

    #[test]
    fn all_begins_anew_from_the_moment_of_a_reset_on() {
        let counters = HelperCounters::default();
        counters.set_state(HelperState::Baking);
        counters.errno.store(7, Ordering::Relaxed);
        counters.by_module.store(true, Ordering::Relaxed);
        let counted = |counters: &HelperCounters| {
            let HelperCounters { rounds, touches, looks, busy_nanos, cpu_nanos, pause_nanos, .. } = counters;
            let HelperCounters { after_pause_picos, right_after_picos, longest_look_nanos, .. } = counters;
            [rounds, touches, looks, busy_nanos, cpu_nanos, pause_nanos, after_pause_picos, right_after_picos]
                .into_iter()
                .chain([longest_look_nanos, &counters.ranges, &counters.small_bytes, &counters.most_small_bytes])
                .map(|counter| counter.fetch_add(1, Ordering::Relaxed))
                .collect::<Vec<u64>>()
        };
        counters.set_small_pages(3, 5 << 20);
        counters.set_small_pages(1, 4 << 20);
        assert_eq!(counted(&counters)[9..], [1, 4 << 20, 5 << 20], "and the most that it was");
        counters.reset(1_000);
        assert_eq!(counted(&counters), [0; 12]);
        assert_eq!((counters.state(), counters.errno.load(Ordering::Relaxed)), (HelperState::Looking, 0));
        assert_eq!(counters.backend(BakeBackend::Scan), BakeBackend::Scan);
        assert_eq!([999, 1_000, 5_500].map(|now| counters.elapsed_nanos(now)), [0, 0, 4_500]);
    }
}
