//! An idle core: which CPU has most of its core to itself, and times taken while no other thread is at work there.
//!
//! A core's other hardware thread takes entries of its TLBs and lines of its caches. In a virtual machine it may be
//! somebody else's, and nothing here names it. That it runs shows in how many additions a cycle are left, and not at
//! which clock. Most rest for a while: a sample before or after which fewer additions were left than at the best of
//! times is taken again.

use std::time::{Duration, Instant};

use lookaside_host::Pinned;
use lookaside_stats::quantile;

use crate::metal::{clock, MetalError};

/// A look at a CPU, and looks at each, in turns: neighbours come and go in fractions of a second.
const LOOK: Duration = Duration::from_millis(15);
/// See [`LOOK`].
const LOOKS: usize = 8;
/// CPUs that are looked at, that at hand among them.
const MOST: usize = 8;
/// Additions one after the other, and as many abreast as fill a core for about as long: a microsecond.
const ADDS: u64 = 2048;
/// See [`ADDS`]; a multiple of 12.
const ABREAST: u64 = 12288;
/// Another CPU is gone to if it has so many times the additions a cycle.
const WORTH_WHILE: f64 = 1.02;

/// Goes to the CPU with most of its core to itself, of those that the thread may use; stays if they are alike.
pub(crate) fn move_to_idlest(pinned: &mut Pinned) -> Result<(), MetalError> {
    let here = pinned.cpu();
    let cpus: Vec<usize> = std::iter::once(here).chain(pinned.others()).take(MOST).collect();
    if cpus.len() < 2 {
        return Ok(());
    }
    let mut seen = vec![Vec::new(); cpus.len()];
    for _ in 0..LOOKS {
        for (cpu, seen) in cpus.iter().zip(&mut seen) {
            // One that was taken from us meanwhile is left out.
            if pinned.move_to(*cpu).is_ok() {
                look(seen);
            }
        }
    }
    let means: Vec<(usize, f64)> = cpus.iter().zip(&seen).map(|(cpu, seen)| (*cpu, mean(seen))).collect();
    pinned.move_to(idlest(&means).unwrap_or(here)).map_err(MetalError::affinity)
}

/// Adds what is seen on the CPU at hand.
fn look(seen: &mut Vec<f64>) {
    let start = Instant::now();
    while start.elapsed() < LOOK {
        seen.push(additions_a_cycle());
    }
}

/// Additions a cycle that this core has left for us now; a look of a microsecond, give or take the timer's grain.
///
/// A row of dependent additions takes a cycle each, whoever else is on the core: it is the clock. Those abreast want
/// all of the core's adders, and get fewer where another thread adds too. Both are of registers: cores since Golden
/// Cove add small constants while they rename, where a row of them would be faster than the clock and those abreast
/// would show the width of renaming, not what adders are left.
pub(crate) fn additions_a_cycle() -> f64 {
    let (row, abreast) = (clock::adds(ADDS), clock::adds_abreast(ABREAST));
    ABREAST as f64 * row.max(1) as f64 / (ADDS * abreast.max(1)) as f64
}

/// The mean of all but the highest and lowest hundredth, in which something came between.
fn mean(seen: &[f64]) -> f64 {
    let mut seen = seen.to_vec();
    seen.sort_by(f64::total_cmp);
    let cut = seen.len() / 100;
    let middle = &seen[cut..seen.len() - cut];
    middle.iter().sum::<f64>() / middle.len().max(1) as f64
}

/// The CPU with the highest figure, or the first if it is nearly as high.
fn idlest(figures: &[(usize, f64)]) -> Option<usize> {
    let (first, here) = *figures.first()?;
    let (other, most) = *figures.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(if most > WORTH_WHILE * here { other } else { first })
}

/// Of the most additions a cycle, what a core to itself has at least: a busy neighbour leaves 0.7 to 0.9 of them on Zen
/// 5, and a look is off by up to a twentieth, since the timer's grain is 26 ticks.
const QUIET: f64 = 0.95;
/// Looks of which the most are taken, at first.
const FIRST_LOOKS: usize = 4000;
/// What these take at most, where others have the CPU too.
const FIRST: Duration = Duration::from_millis(100);
/// Looks in a row that are to show more than was thought the most, and by how much.
const MORE: (usize, f64) = (4, 1.01);
/// Most waiting for one sample, and least: half as much after each time that it was in vain, twice as much after each
/// that it was not. Some neighbours rest for parts of milliseconds, some work for seconds.
const WAIT: [Duration; 2] = [Duration::from_micros(500), Duration::from_millis(50)];
/// Of the time since the begin, one part in so many may be waited.
const WAITED_PART: u32 = 3;

/// Whether the core is ours alone now.
#[derive(Debug)]
pub(crate) struct IdleCore {
    /// Additions a cycle at the best of times.
    most: f64,
    /// Looks in a row that showed more, and the least of these.
    more: (usize, f64),
    since: Instant,
    waited: Duration,
    /// How long to wait for one sample.
    patience: Duration,
}

impl IdleCore {
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
    fn the_idlest_is_gone_to_and_one_nearly_as_idle_stayed_on() {
        assert_eq!(idlest(&[]), None);
        assert_eq!(idlest(&[(3, 4.0)]), Some(3));
        assert_eq!(idlest(&[(3, 4.0), (1, 4.05), (2, 3.0)]), Some(3));
        assert_eq!(idlest(&[(3, 4.0), (1, 4.2), (2, 4.6)]), Some(2));
    }

    /// What the adders leave: never less than the row beside them, and never more than there are adders (8 in the
    /// widest cores known). A row that is done while renaming, several in a cycle, would make it less than one.
    #[test]
    fn a_core_adds_at_least_one_and_at_most_its_adders_in_a_cycle() {
        if clock::check().is_err() || crate::metal::emulator::emulator().is_some() {
            eprintln!("LEFT OUT: no timer, or an emulator's");
            return;
        }
        let found = quantile((0..2000).map(|_| additions_a_cycle()), 0.5).unwrap_or_default();
        assert!((0.9..8.5).contains(&found), "{found}");
    }

    #[test]
    fn what_came_between_does_not_count() {
        let mut seen = vec![4.5; 198];
        seen.extend([0.001, 900.0]);
        assert_eq!(mean(&seen), 4.5);
        assert!(mean(&[]).is_finite());
    }

    #[test]
    fn it_ends_on_a_cpu_of_its_own() {
        let Ok(mut pinned) = Pinned::here().inspect_err(|e| eprintln!("LEFT OUT: {e}")) else { return };
        let mut allowed: Vec<usize> = pinned.others().collect();
        allowed.push(pinned.cpu());
        move_to_idlest(&mut pinned).expect("it may use some CPU");
        assert!(allowed.contains(&pinned.cpu()), "{allowed:?}");
    }

    #[test]
    fn quiet_is_what_nearly_has_the_most_additions() {
        let mut quiet = IdleCore::seen((0..=100).map(|look| 3.0 + f64::from(look) / 50.0).collect());
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
        let mut quiet = IdleCore { most: f64::INFINITY, ..IdleCore::seen(vec![4.0]) };
        let mut samples = 0;
        for _ in 0..50 {
            quiet.sample(|| samples += 1);
            assert!(quiet.waited <= quiet.since.elapsed() / WAITED_PART + Duration::from_millis(20), "{quiet:?}");
        }
        assert!(samples >= 50);
        // Nobody in the way: each once.
        let mut quiet = IdleCore::seen(vec![0.0]);
        let mut samples = 0;
        (0..50).for_each(|_| quiet.sample(|| samples += 1));
        assert!(samples >= 50 && quiet.waited < Duration::from_secs(5), "{quiet:?}");
    }
}
