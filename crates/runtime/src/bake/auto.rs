//! What `auto` judges by: times in; rounds, pauses and rests out. The preloaded helper and the baker of programs that
//! start their own have this in common. Nothing here allocates, panics or asks the system.

use super::counters::HelperState;
use super::cpu_demand::{CpuAvailability, CpuCounts, CpuDemand, CpuWatch, CROWDED_NANOS, IDLE_NANOS};
use super::pace::{BatchTimes, Pace, Step};
use super::region::PAGE_BYTES;

/// Bytes of a page-table entry.
const ENTRY_BYTES: u64 = 8;

/// A moment by two clocks: one that goes forward in nanoseconds, and the counter ([`super::freestanding::ticks`]) that
/// batches are timed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockReading {
    /// Nanoseconds.
    pub nanos: u64,
    /// The counter.
    pub ticks: u64,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// A round.
    Round(HelperState),
    /// Nothing until then, in nanoseconds of the clock, or until there is other memory to bake.
    Rest(HelperState, u64),
}

impl Turn {
    /// What that is called.
    pub fn state(self) -> HelperState {
        match self {
            Self::Round(state) | Self::Rest(state, _) => state,
        }
    }
}

/// Chooses when to bake, from what its own rounds took.
#[derive(Debug)]
pub struct Auto {
    cache_bytes: u64,
    /// When it began: how fast the counter goes.
    started: ClockReading,
    pace: Pace,
    times: BatchTimes,
    off_until: u64,
    around: CpuWatch,
}

impl Auto {
    /// Begins now, for a program whose last cache has so many bytes (`u64::MAX`: not known), and so many CPUs.
    pub const fn new(now: ClockReading, cache_bytes: u64, cpus: CpuCounts) -> Self {
        Self {
            cache_bytes,
            started: now,
            pace: Pace::new(),
            times: BatchTimes::new(),
            off_until: 0,
            around: CpuWatch::new(now.nanos, cpus),
        }
    }

    /// What to do now, with so many bytes in small pages to bake. `busy` is asked at times only.
    pub(super) fn turn(&mut self, now_nanos: u64, small_bytes: u64, busy: impl FnOnce() -> CpuDemand) -> Turn {
        if small_bytes / PAGE_BYTES * ENTRY_BYTES > self.cache_bytes {
            Turn::Rest(HelperState::TooLarge, u64::MAX)
        } else if now_nanos < self.off_until {
            Turn::Rest(HelperState::Hopeless, self.off_until)
        } else {
            match self.around.room(now_nanos, busy) {
                CpuAvailability::Idle => Turn::Rest(HelperState::Idle, now_nanos.saturating_add(IDLE_NANOS)),
                CpuAvailability::Crowded => Turn::Rest(HelperState::Crowded, now_nanos.saturating_add(CROWDED_NANOS)),
                CpuAvailability::Free => {
                    Turn::Round(if self.pace.is_slowest() { HelperState::Warm } else { HelperState::Baking })
                }
            }
        }
    }

    /// Where the times of a round's batches go.
    pub(super) fn times(&mut self) -> &mut BatchTimes {
        &mut self.times
    }

    /// After a round; gives the nanoseconds to pause before the next turn.
    pub(super) fn after_round(&mut self, now: ClockReading) -> u64 {
        let micros = (now.nanos.saturating_sub(self.started.nanos) / 1_000).max(1);
        match self.pace.after_round(&mut self.times, now.ticks.saturating_sub(self.started.ticks) / micros) {
            Step::Pause(nanos) => nanos,
            Step::Off(nanos) => {
                self.off_until = now.nanos.saturating_add(nanos);
                0
            }
        }
    }

    /// Picoseconds a touch that the last judgement was made by: after the pause, and right after that; zeros before it.
    pub(super) fn sensed_picos(&self) -> (u64, u64) {
        self.pace.sensed_picos
    }

    /// Other memory: what was sensed of the one before says nothing.
    pub fn forget(&mut self) {
        self.pace.forget(&mut self.times);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::pace::{BATCH_TOUCHES, MOST_PAUSE_NANOS};
    use super::*;

    /// Ticks of a microsecond in these tests.
    const RATE: u64 = 1_000;
    /// Bytes whose entries the cache holds, and the cache.
    const SMALL: (u64, u64) = (1 << 30, 32 << 20);
    const CPUS: CpuCounts = CpuCounts { allowed: 2, online: 2 };

    /// A program that used so much, alone.
    fn alone(program_nanos: u64) -> CpuDemand {
        CpuDemand { program_nanos, runnable: Some(1) }
    }

    /// A machine made up: a helper's clock, and what it was told.
    struct SimulatedClock {
        auto: Auto,
        nanos: u64,
        /// Nanoseconds of each state.
        spent: Vec<(HelperState, u64)>,
        pauses: Vec<u64>,
        /// Threads that want a CPU, beside the helper.
        runnable: u32,
    }

    impl SimulatedClock {
        fn new() -> Self {
            let auto = Auto::new(ClockReading::default(), SMALL.1, CPUS);
            Self { auto, nanos: 0, spent: Vec::new(), pauses: Vec::new(), runnable: 1 }
        }

        /// A turn: a round of 64 batches, each of whose touches takes so long; or a rest.
        fn turn(&mut self, touch_picos: u64, program_nanos: u64) {
            let begin = self.nanos;
            let turn =
                self.auto.turn(self.nanos, SMALL.0, || CpuDemand { program_nanos, runnable: Some(self.runnable) });
            match turn {
                Turn::Rest(_, until) => {
                    assert!(until > self.nanos, "{turn:?} at {}", self.nanos);
                    self.nanos = until;
                }
                Turn::Round(_) => {
                    let batch_ticks = touch_picos * BATCH_TOUCHES * RATE / 1_000_000;
                    (0..64).for_each(|_| self.auto.times().add(batch_ticks));
                    self.nanos += (64 * BATCH_TOUCHES * touch_picos / 1_000).max(1);
                    let now = ClockReading { nanos: self.nanos, ticks: self.nanos * RATE / 1_000 };
                    let pause = self.auto.after_round(now);
                    self.pauses.push(pause);
                    self.nanos += pause;
                }
            }
            self.spent.push((turn.state(), self.nanos - begin));
        }

        fn in_state(&self, state: HelperState) -> u64 {
            self.spent.iter().filter(|(other, _)| *other == state).map(|(_, nanos)| nanos).sum()
        }
    }

    #[test]
    fn tables_larger_than_the_cache_are_left_alone() {
        let mut auto = Auto::new(ClockReading::default(), SMALL.1, CPUS);
        let largest = SMALL.1 / ENTRY_BYTES * PAGE_BYTES;
        assert_eq!(auto.turn(1, largest, || alone(1)), Turn::Round(HelperState::Baking));
        assert_eq!(auto.turn(1, largest + PAGE_BYTES, || alone(1)), Turn::Rest(HelperState::TooLarge, u64::MAX));
        let mut unknown = Auto::new(ClockReading::default(), u64::MAX, CPUS);
        assert_eq!(unknown.turn(1, u64::MAX, || alone(1)), Turn::Round(HelperState::Baking));
    }

    #[test]
    fn of_other_memory_nothing_is_sensed_yet() {
        let mut made = SimulatedClock::new();
        for _ in 0..20 {
            let nanos = made.nanos;
            made.turn(5_000, nanos);
        }
        assert!(made.auto.sensed_picos().1 > 0);
        made.auto.forget();
        assert_eq!(made.auto.sensed_picos(), (0, 0));
    }

    #[test]
    fn what_is_hopeless_is_left_alone_for_nearly_all_the_time() {
        let mut made = SimulatedClock::new();
        while made.nanos < 600_000_000_000 {
            // The program is busy: it uses a CPU as long as the clock goes.
            let nanos = made.nanos;
            made.turn(90_000, nanos);
        }
        let off = made.in_state(HelperState::Hopeless);
        assert!(off as f64 > 0.99 * made.nanos as f64, "{off} of {}", made.nanos);
        assert_eq!(made.auto.sensed_picos().1 / 1_000, 88, "the bucket's begin");
        assert_eq!(made.in_state(HelperState::Idle), 0);
    }

    /// Two stressors beside a program on two CPUs: a helper that never waits itself would have the scheduler put one of
    /// them on the program's.
    #[test]
    fn where_more_threads_than_cpus_want_to_run_no_round_is_made() {
        let mut made = SimulatedClock { runnable: 3, ..SimulatedClock::new() };
        while made.nanos < 10_000_000_000 {
            let nanos = made.nanos;
            made.turn(5_000, nanos);
        }
        assert!(made.pauses.is_empty(), "rounds: {}", made.pauses.len());
        made.runnable = 2;
        while made.nanos < 11_000_000_000 {
            let nanos = made.nanos;
            made.turn(5_000, nanos);
        }
        assert!(made.in_state(HelperState::Crowded) < 10_300_000_000, "it goes on soon after they left");
    }

    #[test]
    fn an_idle_program_is_left_alone() {
        let mut idle = SimulatedClock::new();
        (0..2_000).for_each(|_| idle.turn(5_000, 0));
        assert!(idle.in_state(HelperState::Idle) as f64 > 0.99 * idle.nanos as f64);
    }

    proptest! {
        /// Whatever the touches take, and whatever the program does.
        #[test]
        fn pauses_and_rests_stay_within_their_bounds(
            turns in prop::collection::vec((0..1_000_000u64, 0..40_000_000u64), 1..400)
        ) {
            let (mut made, mut program) = (SimulatedClock::new(), 0u64);
            for (touch_picos, used) in turns {
                program += used;
                made.turn(touch_picos, program);
            }
            prop_assert!(made.pauses.iter().all(|pause| *pause <= MOST_PAUSE_NANOS));
            for (state, nanos) in made.spent {
                let most = match state {
                    HelperState::Hopeless => 80_000_000_000,
                    HelperState::Crowded => CROWDED_NANOS,
                    HelperState::Idle => IDLE_NANOS,
                    // A round takes as long as it takes.
                    _ => 64 * BATCH_TOUCHES * 1_000 + MOST_PAUSE_NANOS,
                };
                prop_assert!(nanos <= most, "{:?} for {}", state, nanos);
            }
        }

        /// From anywhere: what has become warm is baked again, and at the slowest, within the longest time off and some
        /// rounds.
        #[test]
        fn hopeless_is_always_left(turns in prop::collection::vec(1_000..200_000u64, 0..300)) {
            let mut made = SimulatedClock::new();
            for touch_picos in turns {
                let nanos = made.nanos;
                made.turn(touch_picos, nanos);
            }
            let begin = made.nanos;
            for _ in 0..80 {
                let nanos = made.nanos;
                made.turn(5_000, nanos);
            }
            prop_assert_eq!(made.spent.last().map(|spent| spent.0), Some(HelperState::Warm));
            prop_assert!(made.nanos - begin < 82_000_000_000 + 80 * 3_000_000, "{}", made.nanos - begin);
        }
    }
}
