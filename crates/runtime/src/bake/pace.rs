//! How fast to bake (`auto`): from the time that the baker's own touches take.
//!
//! A touch of an entry that is in a cache is cheap, one that has to come from memory is dear. So, every few rounds, the
//! middle time of a batch of touches after the usual pause is held against that of the round right after it:
//!
//! - at most 1.1 times as long: nothing was lost in the pause, or what is lost does not depend on it. The pause
//!   doubles, up to [`MOST_PAUSE_NANOS`].
//! - more than 1.3 times as long: entries were lost. The pause is halved; quartered at more than twice as long.
//! - a part of the entries came from memory even right after: a round takes so long that they are lost meanwhile, which
//!   a pause makes worse, however little. There is none.
//! - the round right after is at memory's own time too: the entries don't stay in the cache ([`Step::Off`] if so again
//!   and again).

/// Longest pause between rounds. On the development machine random reads over 1 GiB lost a part of the gain by pauses
/// of 5 ms and none by 0.2 ms, though the helper's own touches hardly got dearer.
pub(super) const MOST_PAUSE_NANOS: u64 = 2_000_000;
/// Shortest pause that is made.
const LEAST_PAUSE_NANOS: u64 = 100_000;
/// Touches of a batch whose time is taken: the clock costs about one touch.
pub(super) const BATCH_TOUCHES: u64 = 64;
/// Batches that a judgement needs.
const LEAST_BATCHES: u32 = 64;
/// A touch that takes longer than this came from memory, and found no other to overlap with: batches of 64 touches of
/// which each missed took 30 to 60 ns a touch on the development machine (Zen 4 in a virtual machine), those that found
/// their entries 3 to 20.
const COLD_PICOS: u64 = 60_000;
/// Touches that take between these right after a round found a part of their entries: 14 to 28 ns with 16 MiB of tables
/// on the second development machine (Zen 5), where rounds without a pause brought 10 % more than rounds with one of 2
/// ms, and 5 to 6 with tables that stay. Above, nearly all missed. On Zen 4 it may take tables that stay for such,
/// where touches that find their entries take up to 20 ns (see [`COLD_PICOS`]): it then bakes without a pause.
const PARTLY_PICOS: std::ops::RangeInclusive<u64> = 12_000..=30_000;
/// Cold judgements in a row that make it hopeless.
const MOST_COLD: u32 = 8;
/// The pause to begin with.
const FIRST_PAUSE_NANOS: u64 = 400_000;
/// Rounds between two judgements that are not timed.
const PLAIN_ROUNDS: u32 = 2;
/// How long it is off at first; doubles each time.
const OFF_NANOS: u64 = 5_000_000_000;

/// Times of batches: eight buckets an octave, so that the middle is right within an eighth.
#[derive(Debug)]
pub(super) struct BatchTimes {
    buckets: [u32; 512],
    batches: u32,
}

impl BatchTimes {
    pub(super) const fn new() -> Self {
        Self { buckets: [0; 512], batches: 0 }
    }

    /// One batch of [`BATCH_TOUCHES`] touches took so many ticks.
    pub fn add(&mut self, ticks: u64) {
        let ticks = ticks.max(8);
        let octave = 63u32.wrapping_sub(ticks.leading_zeros());
        let eighth = (ticks >> octave.wrapping_sub(3)) & 7;
        if let Some(bucket) = self.buckets.get_mut((octave as usize).wrapping_mul(8).wrapping_add(eighth as usize)) {
            *bucket = bucket.saturating_add(1);
        }
        self.batches = self.batches.saturating_add(1);
    }

    /// A call that took so long for so many touches: batches of their mean time.
    pub(super) fn add_call(&mut self, ticks: u64, touches: u64) {
        let batch_ticks = ticks.saturating_mul(BATCH_TOUCHES).checked_div(touches).unwrap_or_default();
        (0..touches / BATCH_TOUCHES).for_each(|_| self.add(batch_ticks));
    }

    /// The middle time, once there are enough of them; then it begins anew.
    fn take_middle(&mut self) -> Option<u64> {
        if self.batches < LEAST_BATCHES {
            return None;
        }
        let (mut seen, mut middle) = (0u32, 0u64);
        for (index, bucket) in self.buckets.iter().enumerate() {
            seen = seen.saturating_add(*bucket);
            if seen >= self.batches.div_ceil(2) {
                let (octave, eighth) = ((index / 8) as u32, (index % 8) as u64);
                middle = (8 | eighth).checked_shl(octave.saturating_sub(3)).unwrap_or(u64::MAX);
                break;
            }
        }
        *self = Self::new();
        Some(middle)
    }
}

/// What to do after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Pause for so many nanoseconds, then the next round.
    Pause(u64),
    /// The entries can't be kept: nothing for so many nanoseconds.
    Off(u64),
}

/// What the next round is for.
#[derive(Debug)]
enum Phase {
    /// Its time says what the pause before it cost.
    After,
    /// Right after it: what touches take at best.
    Again { after_ticks: u64 },
    /// Baking only, so many rounds.
    Plain(u32),
}

/// The pace of `auto`.
#[derive(Debug)]
pub(super) struct Pace {
    pause_nanos: u64,
    phase: Phase,
    cold: u32,
    off_nanos: u64,
    /// Picoseconds a touch that the last judgement was made by: after the pause, and right after that; zeros before it.
    pub(super) sensed_picos: (u64, u64),
}

impl Pace {
    pub(super) const fn new() -> Self {
        Self {
            pause_nanos: FIRST_PAUSE_NANOS,
            phase: Phase::Plain(1),
            cold: 0,
            off_nanos: OFF_NANOS,
            sensed_picos: (0, 0),
        }
    }

    /// Whether it is as slow as can be: nothing is lost between rounds.
    pub(super) fn is_slowest(&self) -> bool {
        self.pause_nanos == MOST_PAUSE_NANOS
    }

    /// Other memory: what was sensed of the one before says nothing.
    pub(super) fn forget(&mut self, times: &mut BatchTimes) {
        *times = BatchTimes::new();
        self.phase = Phase::Plain(1);
        self.cold = 0;
        self.sensed_picos = (0, 0);
    }

    /// After a round; `ticks_per_micro` is the counter's rate.
    pub(super) fn after_round(&mut self, times: &mut BatchTimes, ticks_per_micro: u64) -> Step {
        match self.phase {
            Phase::Plain(left) => {
                *times = BatchTimes::new();
                self.phase = left.checked_sub(1).map_or(Phase::After, Phase::Plain);
                Step::Pause(self.pause_nanos)
            }
            Phase::After => match times.take_middle() {
                Some(after_ticks) => {
                    self.phase = Phase::Again { after_ticks };
                    Step::Pause(0)
                }
                None => Step::Pause(self.pause_nanos),
            },
            Phase::Again { after_ticks } => match times.take_middle() {
                Some(again_ticks) => self.judge(after_ticks, again_ticks, ticks_per_micro),
                None => Step::Pause(0),
            },
        }
    }

    fn judge(&mut self, after_ticks: u64, again_ticks: u64, ticks_per_micro: u64) -> Step {
        self.phase = Phase::Plain(PLAIN_ROUNDS);
        let picos = |ticks: u64| ticks.saturating_mul(1_000_000) / BATCH_TOUCHES / ticks_per_micro.max(1);
        self.sensed_picos = (picos(after_ticks), picos(again_ticks));
        if self.sensed_picos.1 > COLD_PICOS {
            self.cold = self.cold.saturating_add(1);
            if self.cold >= MOST_COLD {
                self.cold = 0;
                let off = self.off_nanos;
                self.off_nanos = self.off_nanos.saturating_mul(2).min(16 * OFF_NANOS);
                return Step::Off(off);
            }
        } else {
            (self.cold, self.off_nanos) = (0, OFF_NANOS);
        }
        let (after, again) = (after_ticks.saturating_mul(10), again_ticks);
        if PARTLY_PICOS.contains(&self.sensed_picos.1) {
            self.pause_nanos = 0;
        } else if after > again.saturating_mul(13) {
            self.pause_nanos /= if after > again.saturating_mul(20) { 4 } else { 2 };
            if self.pause_nanos < LEAST_PAUSE_NANOS {
                self.pause_nanos = 0;
            }
        } else if after <= again.saturating_mul(11) {
            self.pause_nanos = self.pause_nanos.saturating_mul(2).clamp(LEAST_PAUSE_NANOS, MOST_PAUSE_NANOS);
        }
        Step::Pause(self.pause_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks of a microsecond in these tests.
    const RATE: u64 = 2_600;

    /// Rounds on a machine on which a batch takes as long as `batch_ticks` says, by the pause before it.
    fn rounds(pace: &mut Pace, count: usize, mut batch_ticks: impl FnMut(u64) -> u64) -> Vec<Step> {
        let (mut times, mut pause) = (BatchTimes::new(), FIRST_PAUSE_NANOS);
        (0..count)
            .map(|round| {
                for batch in 0..100u64 {
                    // A tenth of them are disturbed.
                    let noise = if (batch + round as u64).is_multiple_of(10) { 20 } else { 1 };
                    times.add(batch_ticks(pause) * noise + batch % 7);
                }
                let step = pace.after_round(&mut times, RATE);
                if let Step::Pause(nanos) = step {
                    pause = nanos;
                }
                step
            })
            .collect()
    }

    #[test]
    fn the_middle_is_within_an_eighth() {
        for ticks in [8u64, 9, 100, 1_000, 12_345, 1 << 40] {
            let mut times = BatchTimes::new();
            (0..64).for_each(|_| times.add(ticks));
            let middle = times.take_middle().expect("enough of them");
            assert!(middle <= ticks && ticks - middle <= ticks / 8, "{ticks}: {middle}");
            assert_eq!(times.take_middle(), None);
            // A call of as many touches as 64 batches, and some that are none.
            times.add_call(64 * ticks, 64 * BATCH_TOUCHES);
            assert_eq!(times.take_middle(), Some(middle));
            times.add_call(ticks, BATCH_TOUCHES - 1);
            times.add_call(ticks, 0);
            assert_eq!(times.batches, 0);
        }
    }

    fn pauses(steps: &[Step]) -> Vec<u64> {
        steps.iter().filter_map(|step| if let Step::Pause(nanos) = step { Some(*nanos) } else { None }).collect()
    }

    #[test]
    fn warm_tables_slow_it_down_and_so_does_what_pace_does_not_change() {
        for ticks in [1_000, 64 * 40 * RATE / 1_000] {
            let mut pace = Pace::new();
            let steps = rounds(&mut pace, 50, |_| ticks);
            assert!(pauses(&steps).contains(&MOST_PAUSE_NANOS));
            assert!(pace.is_slowest());
        }
    }

    #[test]
    fn tables_that_are_lost_within_a_round_are_baked_without_a_pause() {
        let mut pace = Pace::new();
        let steps = rounds(&mut pace, 40, |_| 64 * 20 * RATE / 1_000);
        assert_eq!(pauses(&steps[10..]).iter().max(), Some(&0), "{steps:?}");
        assert!(!pace.is_slowest());
        // Once they stay, it slows down.
        rounds(&mut pace, 60, |_| 1_000);
        assert!(pace.is_slowest());
    }

    #[test]
    fn what_is_lost_in_half_a_millisecond_is_baked_more_often() {
        let mut pace = Pace::new();
        let steps = rounds(&mut pace, 100, |pause| if pause > 500_000 { 4_000 } else { 1_000 });
        // It tries the next longer pause, and goes back.
        assert!(pauses(&steps).iter().max() <= Some(&800_000), "{steps:?}");
        assert!(pauses(&steps[50..]).contains(&200_000), "{steps:?}");
        let (after, again) = pace.sensed_picos;
        assert!((1..=1_000 * 1_000_000 / BATCH_TOUCHES / RATE).contains(&again) && after >= again, "{after} {again}");
    }

    #[test]
    fn what_is_lost_at_once_is_baked_without_a_pause() {
        let mut pace = Pace::new();
        let steps = rounds(&mut pace, 40, |pause| 1_000 + pause / 50);
        assert!(pauses(&steps[20..]).iter().max() <= Some(&LEAST_PAUSE_NANOS), "{steps:?}");
    }

    #[test]
    fn what_is_always_cold_is_given_up_and_tried_again_later() {
        let mut pace = Pace::new();
        let offs = |steps: &[Step]| -> Vec<u64> {
            steps.iter().filter_map(|step| if let Step::Off(nanos) = step { Some(*nanos) } else { None }).collect()
        };
        let steps = rounds(&mut pace, 130, |_| 64 * 80 * RATE / 1_000);
        assert_eq!(offs(&steps), [OFF_NANOS, 2 * OFF_NANOS, 4 * OFF_NANOS]);
        // Then it pays: it goes on, and would be off for the shortest time again.
        assert_eq!(offs(&rounds(&mut pace, 20, |_| 1_000)), [0u64; 0]);
        assert_eq!(pace.off_nanos, OFF_NANOS);
    }

    /// At a thousand ticks a microsecond a batch of 320 ticks is 64 touches of 5 ns.
    #[test]
    fn the_pause_follows_what_was_lost_in_it() {
        let judged = |pause_nanos, after, again| {
            let mut pace = Pace { pause_nanos, ..Pace::new() };
            let step = pace.judge(after, again, 1_000);
            assert_eq!(step, Step::Pause(pace.pause_nanos));
            pace.pause_nanos
        };
        // In tenths of the time right after: 11 at most, up to 13, up to 20, and more.
        let tenths = |tenths: u64, more: u64| judged(1_600_000, 32 * tenths + more, 320);
        assert_eq!(
            [tenths(10, 0), tenths(11, 0), tenths(11, 1), tenths(13, 0)],
            [2_000_000, 2_000_000, 1_600_000, 1_600_000]
        );
        assert_eq!([tenths(13, 1), tenths(20, 0), tenths(20, 1)], [800_000, 800_000, 400_000]);
        // From none to the shortest, and back.
        assert_eq!([judged(0, 320, 320), judged(500_000, 320, 320)], [100_000, 1_000_000]);
        assert_eq!([judged(200_000, 600, 320), judged(199_999, 600, 320), judged(0, 600, 320)], [100_000, 0, 0]);
        // 12 to 30 ns right after: a part is lost within a round.
        let partly = |nanos: u64| judged(1_600_000, 64 * nanos, 64 * nanos);
        assert_eq!([partly(11), partly(12), partly(30), partly(31)], [2_000_000, 0, 0, 2_000_000]);
        let mut pace = Pace::new();
        pace.judge(640, 320, 1_000);
        assert_eq!(pace.sensed_picos, (10_000, 5_000));
        let mut pace = Pace::new();
        pace.judge(640, 320, 0);
        assert_eq!(pace.sensed_picos, (10_000_000, 5_000_000), "a counter that stands still");
    }

    #[test]
    fn eight_cold_rounds_in_a_row_are_hopeless_and_one_that_is_not_begins_anew() {
        let mut pace = Pace::new();
        let mut judge = |nanos: u64, times: u32| (0..times).map(|_| pace.judge(64 * nanos, 64 * nanos, 1_000)).last();
        assert!(matches!(judge(61, 7), Some(Step::Pause(_))));
        assert!(matches!(judge(60, 1), Some(Step::Pause(_))), "not quite");
        assert!(matches!(judge(61, 7), Some(Step::Pause(_))));
        // Twice as long each time, up to sixteen times.
        let offs: Vec<_> = [1, 8, 8, 8, 8, 8].map(|times| judge(61, times)).to_vec();
        assert_eq!(offs, [1, 2, 4, 8, 16, 16].map(|times| Some(Step::Off(times * OFF_NANOS))));
    }

    #[test]
    fn other_memory_is_judged_anew() {
        let (mut pace, mut times) = (Pace::new(), BatchTimes::new());
        (0..7).for_each(|_| _ = pace.judge(64 * 61, 64 * 61, 1_000));
        (0..64).for_each(|_| times.add(100));
        pace.forget(&mut times);
        assert_eq!((pace.sensed_picos, pace.cold, times.batches), ((0, 0), 0, 0));
        let steps: Vec<Step> = (0..3).map(|_| pace.after_round(&mut times, RATE)).collect();
        assert_eq!(steps, [Step::Pause(pace.pause_nanos); 3], "two rounds, and one that has no times");
    }

    #[test]
    fn few_batches_are_no_judgement() {
        let mut pace = Pace::new();
        let mut times = BatchTimes::new();
        assert_eq!(pace.after_round(&mut times, RATE), Step::Pause(FIRST_PAUSE_NANOS));
        assert_eq!(pace.after_round(&mut times, RATE), Step::Pause(FIRST_PAUSE_NANOS));
        (0..LEAST_BATCHES - 1).for_each(|_| times.add(1 << 30));
        assert_eq!(pace.after_round(&mut times, RATE), Step::Pause(FIRST_PAUSE_NANOS));
        times.add(1 << 30);
        // Now the round right after.
        assert_eq!(pace.after_round(&mut times, RATE), Step::Pause(0));
    }
}
