//! Times taken while the core has no other thread at work, as far as that can be had.
//!
//! Who shares the core is not told, and not to be kept away; but most neighbours rest for a while, and how many additions a cycle
//! are left says when. A sample before or after which there were fewer than at the best of times is taken again.

use std::time::{Duration, Instant};

use lookaside_stats::quantile;

use super::calm::additions_a_cycle;

/// Of the most additions a cycle, what a core to itself has at least: a busy neighbour leaves 0.7 to 0.9 of them on Zen 5, and a look is off by up
/// to a twentieth, since the timer's grain is 26 ticks.
const QUIET: f64 = 0.95;
/// Looks of which the most are taken, at first.
const FIRST_LOOKS: usize = 4000;
/// What these take at most, where others have the CPU too.
const FIRST: Duration = Duration::from_millis(100);
/// Looks in a row that are to show more than was thought the most, and by how much.
const MORE: (usize, f64) = (4, 1.01);
/// Most waiting for one sample, and least: half as much after each time that it was in vain, twice as much after each that it was not. Some neighbours rest for
/// parts of milliseconds, some work for seconds.
const WAIT: [Duration; 2] = [Duration::from_micros(500), Duration::from_millis(50)];
/// Of the time since the begin, one part in so many may be waited.
const WAITED_PART: u32 = 3;

/// Whether the core is ours alone now.
#[derive(Debug)]
pub(crate) struct Quiet {
    /// Additions a cycle at the best of times.
    most: f64,
    /// Looks in a row that showed more, and the least of these.
    more: (usize, f64),
    since: Instant,
    waited: Duration,
    /// How long to wait for one sample.
    patience: Duration,
}

impl Quiet {
    /// For the CPU that the thread is bound to; takes some hundredths of a second.
    pub(crate) fn here() -> Self {
        let since = Instant::now();
        let looks = std::iter::repeat_with(additions_a_cycle).take(FIRST_LOOKS);
        Self::seen(looks.take_while(|_| since.elapsed() < FIRST).collect())
    }

    fn seen(looks: Vec<f64>) -> Self {
        // What something came between is beyond all others.
        let most = quantile(looks, 0.9).unwrap_or_default();
        Self { most, more: (0, f64::INFINITY), since: Instant::now(), waited: Duration::ZERO, patience: WAIT[1] }
    }

    /// What `sample` gives: again as long as the core was not quiet before and after, and as there is time to wait.
    pub(crate) fn sample<T>(&mut self, mut sample: impl FnMut() -> T) -> T {
        let began = Instant::now();
        let most = (self.since.elapsed() / WAITED_PART).saturating_sub(self.waited).min(self.patience);
        loop {
            while !self.is_quiet(additions_a_cycle()) && began.elapsed() < most {}
            let start = began.elapsed();
            let taken = sample();
            let in_vain = start >= most;
            if in_vain || self.is_quiet(additions_a_cycle()) {
                self.waited += start;
                self.patience = if in_vain { self.patience / 2 } else { self.patience * 2 }.clamp(WAIT[0], WAIT[1]);
                return taken;
            }
        }
    }

    fn is_quiet(&mut self, additions: f64) -> bool {
        if additions > MORE.1 * self.most {
            self.more = (self.more.0 + 1, self.more.1.min(additions));
            if self.more.0 == MORE.0 {
                (self.most, self.more) = (self.more.1, (0, f64::INFINITY));
            }
        } else {
            self.more = (0, f64::INFINITY);
        }
        additions >= QUIET * self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_is_what_nearly_has_the_most_additions() {
        let mut quiet = Quiet::seen((0..100).map(|look| 3.0 + f64::from(look) / 50.0).collect());
        assert_eq!(quiet.most, 4.8);
        assert!(quiet.is_quiet(4.7) && !quiet.is_quiet(4.5));
        // Three looks that show more may be the timer's grain, four are not.
        assert!([5.2; 3].into_iter().all(|look| quiet.is_quiet(look)));
        assert!(quiet.is_quiet(4.7) && quiet.most == 4.8);
        [5.3, 5.2, 5.4, 5.2].into_iter().for_each(|look| assert!(quiet.is_quiet(look)));
        assert!(quiet.most == 5.2 && !quiet.is_quiet(4.7));
    }

    #[test]
    fn who_never_finds_it_quiet_waits_no_longer_than_it_may() {
        let mut quiet = Quiet { most: f64::INFINITY, ..Quiet::seen(vec![4.0]) };
        let mut samples = 0;
        for _ in 0..50 {
            quiet.sample(|| samples += 1);
            assert!(quiet.waited <= quiet.since.elapsed() / WAITED_PART + Duration::from_millis(20), "{quiet:?}");
        }
        assert!(samples >= 50);
        // Nobody in the way: each once.
        let mut quiet = Quiet::seen(vec![0.0]);
        let mut samples = 0;
        (0..50).for_each(|_| quiet.sample(|| samples += 1));
        assert!(samples >= 50 && quiet.waited < Duration::from_secs(5), "{quiet:?}");
    }
}
