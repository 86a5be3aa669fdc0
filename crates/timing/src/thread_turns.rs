//! How a program's threads share the CPUs.

use std::collections::BTreeMap;

/// Threads that run at once, and those that take turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadTurns {
    /// Threads that run at the same time, each on a CPU of its own.
    pub at_once: usize,
    /// Threads that take turns on each of these CPUs; 1 = it has it for itself.
    pub on_each: usize,
    /// CPU seconds of a turn; infinite where none ended.
    pub seconds: f64,
}

/// Counts how many threads take part in the same stretch of CPU time, by samples of it.
#[derive(Clone, Debug, Default)]
pub struct ThreadsAtATime {
    /// Samples of the stretch by thread, and how many they are.
    stretch: BTreeMap<(u32, u32), u64>,
    samples: u64,
    /// Pairs of samples of the same stretch, and those of the same thread among them.
    pairs: u64,
    same: u64,
}

impl ThreadsAtATime {
    /// The next sample, in order of time, is of this thread of this process; a stretch is `samples` long.
    pub fn sample(&mut self, thread: (u32, u32), samples: u64) {
        *self.stretch.entry(thread).or_default() += 1;
        self.samples += 1;
        if self.samples >= samples {
            self.end_stretch();
        }
    }

    /// The mean; 0 without two samples of the same stretch. Threads with equal shares of the time count one each. (The
    /// inverse of Simpson's index, whose estimate by pairs drawn without replacement is unbiased: Simpson, Measurement
    /// of diversity, Nature 163, 1949.)
    pub fn mean(mut self) -> f64 {
        self.end_stretch();
        match self.same {
            0 => 0.0,
            same => self.pairs as f64 / same as f64,
        }
    }

    fn end_stretch(&mut self) {
        let pairs = |count: u64| count * count.saturating_sub(1) / 2;
        self.pairs += pairs(self.samples);
        self.same += std::mem::take(&mut self.stretch).into_values().map(pairs).sum::<u64>();
        self.samples = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NativeClock;

    /// The mean of samples whose threads have these numbers, in stretches of eight.
    fn mean(threads: impl IntoIterator<Item = u32>) -> f64 {
        let mut counted = ThreadsAtATime::default();
        threads.into_iter().for_each(|thread| counted.sample((1, thread), 8));
        counted.mean()
    }

    #[test]
    fn threads_of_a_stretch_are_counted() {
        assert_eq!((mean([]), mean([1]), mean([1; 20])), (0.0, 0.0, 1.0));
        // One after the other, each for long: one at a time.
        assert_eq!(mean((0..32).map(|at| at / 8)), 1.0);
        // Of 28 pairs of a stretch 12 or 4 are of the same thread.
        assert_eq!((mean((0..32).map(|at| at % 2)), mean((0..32).map(|at| at % 4))), (28.0 / 12.0, 7.0));
        // Drawn at random, four threads are four.
        let mut rng = lookaside_stats::SplitMix64::new(1);
        let drawn = mean((0..100_000).map(|_| rng.index(4) as u32));
        assert!((3.9..4.1).contains(&drawn), "{drawn}");
        // One that seldom runs counts little.
        let seldom = mean((0..100_000).map(|_| u32::from(rng.index(10) == 0)));
        assert!((1.2..1.24).contains(&seldom), "{seldom}");
    }

    #[test]
    fn turns_are_of_the_threads_that_have_no_cpu_of_their_own() {
        let clock = |user_seconds, threads_at_a_time, switches| NativeClock {
            user_seconds,
            threads_at_a_time,
            switches,
            wall_seconds: 1.0,
            ..NativeClock::default()
        };
        let turns = |at_once, on_each, seconds| ThreadTurns { at_once, on_each, seconds };
        assert_eq!(clock(1.9, 4.1, 500).thread_turns(2), turns(2, 2, 0.0038));
        assert_eq!(clock(1.9, 2.1, 0).thread_turns(2), turns(2, 1, f64::INFINITY));
        assert_eq!(clock(3.9, 4.0, 10).thread_turns(2).at_once, 2);
        assert_eq!(clock(0.2, 0.0, 10).thread_turns(0), turns(1, 1, 0.02));
    }
}
