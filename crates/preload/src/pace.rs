//! How fast to bake (`auto`): from the time that the baker's own touches take.
//!
//! A touch of an entry that is in a cache is cheap, one that has to come from memory is dear. So, once a round,
//! with the middle time of a batch of touches:
//!
//! - it is near the least seen: nothing was lost since the last round. The pause between rounds doubles, up to [`MOST_PAUSE_NANOS`].
//! - it is more than twice the least seen: entries were lost. The pause is quartered.
//! - it stays at memory's own time, however fast the rounds follow: the entries don't stay in the cache ([`Step::Off`]).
//!
//! Where the rounds' pace changes nothing, the pause grows as well: baking faster would not help.

/// Longest pause between rounds: what the program evicts meanwhile, it pays for until the next.
pub(crate) const MOST_PAUSE_NANOS: u64 = 20_000_000;
/// Shortest pause that is made.
const LEAST_PAUSE_NANOS: u64 = 100_000;
/// Touches of a batch whose time is taken: the clock costs about one touch.
pub(crate) const BATCH_TOUCHES: u64 = 64;
/// Batches that a judgement needs.
const LEAST_BATCHES: u32 = 64;
/// A touch that takes longer than this came from memory, and found no other to overlap with: batches of 64 touches
/// of which each missed took 30 to 60 ns a touch on the development machine (Zen 4 in a virtual machine), those that found their entries 3 to 20.
const COLD_PICOS: u64 = 60_000;
/// Cold judgements in a row, without a pause, that make it hopeless.
const MOST_COLD: u32 = 8;
/// How long it is off at first; doubles each time.
const OFF_NANOS: u64 = 5_000_000_000;

/// Times of batches: eight buckets an octave, so that the middle is right within an eighth.
pub(crate) struct Times {
    buckets: [u32; 512],
    batches: u32,
}

impl Times {
    pub(crate) const fn new() -> Self {
        Self { buckets: [0; 512], batches: 0 }
    }

    /// One batch of touches.
    pub(crate) fn add(&mut self, ticks: u64) {
        let ticks = ticks.max(8);
        let octave = 63u32.wrapping_sub(ticks.leading_zeros());
        let eighth = (ticks >> octave.wrapping_sub(3)) & 7;
        if let Some(bucket) = self.buckets.get_mut((octave as usize).wrapping_mul(8).wrapping_add(eighth as usize)) {
            *bucket = bucket.saturating_add(1);
        }
        self.batches = self.batches.saturating_add(1);
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
pub(crate) enum Step {
    /// Pause for so many nanoseconds, then the next round.
    Pause(u64),
    /// The entries can't be kept: nothing for so many nanoseconds.
    Off(u64),
}

/// The pace of `auto`.
pub(crate) struct Pace {
    pause_nanos: u64,
    least_ticks: u64,
    cold: u32,
    off_nanos: u64,
}

impl Pace {
    pub(crate) const fn new() -> Self {
        Self { pause_nanos: 0, least_ticks: u64::MAX, cold: 0, off_nanos: OFF_NANOS }
    }

    /// Whether it is as slow as can be: nothing is lost between rounds.
    pub(crate) fn is_slowest(&self) -> bool {
        self.pause_nanos == MOST_PAUSE_NANOS
    }

    /// Other memory: what was sensed of the one before says nothing.
    pub(crate) fn forget(&mut self) {
        self.least_ticks = u64::MAX;
        self.cold = 0;
    }

    /// After a round; `ticks_per_micro` is the counter's rate.
    pub(crate) fn after_round(&mut self, times: &mut Times, ticks_per_micro: u64) -> Step {
        let Some(middle) = times.take_middle() else { return Step::Pause(self.pause_nanos) };
        // The least seen is forgotten slowly: the program, and so the cache's share that is left, changes.
        let aged = self.least_ticks.saturating_add(self.least_ticks / 128);
        self.least_ticks = middle.min(aged);
        let picos = middle.saturating_mul(1_000_000) / BATCH_TOUCHES / ticks_per_micro.max(1);
        if picos > COLD_PICOS && self.pause_nanos == 0 {
            self.cold = self.cold.saturating_add(1);
            if self.cold >= MOST_COLD {
                let off = self.off_nanos;
                self.off_nanos = self.off_nanos.saturating_mul(2).min(16 * OFF_NANOS);
                self.forget();
                return Step::Off(off);
            }
            return Step::Pause(0);
        }
        self.cold = 0;
        if picos <= COLD_PICOS {
            self.off_nanos = OFF_NANOS;
        }
        if middle > self.least_ticks.saturating_mul(2) {
            self.pause_nanos /= 4;
            if self.pause_nanos < LEAST_PAUSE_NANOS {
                self.pause_nanos = 0;
            }
        } else if middle <= self.least_ticks.saturating_add(self.least_ticks / 2) {
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
        let (mut times, mut pause) = (Times::new(), 0);
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
            let mut times = Times::new();
            (0..64).for_each(|_| times.add(ticks));
            let middle = times.take_middle().expect("enough of them");
            assert!(middle <= ticks && ticks - middle <= ticks / 8, "{ticks}: {middle}");
            assert_eq!(times.take_middle(), None);
        }
    }

    #[test]
    fn warm_tables_slow_it_down() {
        let mut pace = Pace::new();
        let steps = rounds(&mut pace, 20, |_| 1_000);
        assert_eq!(steps.last(), Some(&Step::Pause(MOST_PAUSE_NANOS)));
        assert!(pace.is_slowest());
    }

    #[test]
    fn what_is_lost_in_a_millisecond_is_baked_more_often() {
        let mut pace = Pace::new();
        let steps = rounds(&mut pace, 60, |pause| if pause > 1_000_000 { 4_000 } else { 1_000 });
        let longest = steps[20..].iter().map(|step| if let Step::Pause(nanos) = step { *nanos } else { u64::MAX });
        // It tries the next longer pause, and goes back.
        assert!(longest.max() <= Some(4_000_000), "{steps:?}");
        assert!(steps[20..].iter().any(|step| matches!(step, Step::Pause(nanos) if *nanos <= 1_000_000)));
    }

    #[test]
    fn what_is_always_cold_is_given_up_and_tried_again_later() {
        let mut pace = Pace::new();
        let offs = |steps: &[Step]| -> Vec<u64> {
            steps.iter().filter_map(|step| if let Step::Off(nanos) = step { Some(*nanos) } else { None }).collect()
        };
        let steps = rounds(&mut pace, 24, |_| 64 * 80 * RATE / 1_000);
        assert_eq!(offs(&steps), [OFF_NANOS, 2 * OFF_NANOS, 4 * OFF_NANOS]);
        // Then it pays: it goes on, and would be off for the shortest time again.
        assert_eq!(offs(&rounds(&mut pace, 20, |_| 1_000)), [0u64; 0]);
        assert_eq!(pace.off_nanos, OFF_NANOS);
    }

    #[test]
    fn few_batches_are_no_judgement() {
        let (mut pace, mut times) = (Pace::new(), Times::new());
        (0..LEAST_BATCHES - 1).for_each(|_| times.add(1 << 30));
        assert_eq!(pace.after_round(&mut times, RATE), Step::Pause(0));
        assert_eq!(pace.least_ticks, u64::MAX);
    }
}
