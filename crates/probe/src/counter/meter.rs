//! Misses of a single pass over known pages, by its groups' times: what the counter cannot average, since it happens once.
//!
//! Calibrated on passes that are known to find all their translations, and on passes that are known to find none; half of each gives what a
//! miss takes, and the other half how often such a pass is counted wrongly.

use serde::Serialize;

use super::pass::Ticks;
use super::CounterError;

/// A group that takes so many times what it would if all its pages missed was interrupted: a walk whose tables are in memory is about ten times one
/// whose tables are in the second-level cache (`lookaside probe` on the development machine: 402 and 49 cycles).
const INTERRUPTED: f64 = 10.0;
/// Known passes of which less than this share is recognised make no meter.
const LEAST_RIGHT: f64 = 0.9;
/// Known passes of a kind, at least.
const LEAST_PASSES: usize = 8;

/// Counts the misses of a group by the ticks that it took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Meter {
    /// Each group's pages, its ticks where none misses, and those from which on it was interrupted.
    groups: Vec<Group>,
    /// Ticks that a miss adds.
    pub miss_ticks: f64,
    /// How well passes were counted whose misses are known.
    pub known: Known,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Group {
    pages: u32,
    /// What the first words took longer than the second.
    base_ticks: f64,
    interrupted_ticks: f64,
}

/// Counts of passes whose misses are known, none or all pages; others than those it was calibrated on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Known {
    /// Pages of a pass.
    pub pages: u32,
    /// Passes without a miss that were not interrupted; of these, the ones counted as less than half of the pages.
    pub kept: [usize; 2],
    /// Misses counted in one of them, the mean.
    pub kept_misses: f64,
    /// Passes in which all pages missed and that were not interrupted; of these, the ones counted as at least half.
    pub missed: [usize; 2],
    /// Misses counted in one of them, the mean.
    pub missed_misses: f64,
}

/// What became of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// So many of its pages missed.
    Misses(u32),
    /// Something else ran meanwhile: what missed is not known.
    Interrupted,
}

impl Meter {
    /// From the ticks of passes ([`super::TimedChain::pass`]) over groups of so many pages: where all is kept, and where all is missed.
    ///
    /// # Errors
    /// Too few passes, or the two cannot be told apart.
    pub fn calibrate(pages: &[usize], kept: &[Vec<Ticks>], missed: &[Vec<Ticks>]) -> Result<Self, CounterError> {
        let what = "passes with and without misses";
        let fits = |passes: &[Vec<Ticks>]| {
            passes.len() >= 2 * LEAST_PASSES && passes.iter().all(|pass| pass.len() == pages.len())
        };
        if !fits(kept) || !fits(missed) {
            return Err(CounterError::Indistinct(what, format!("fewer than {} of a kind", 2 * LEAST_PASSES)));
        }
        let (half, other) = (kept.split_at(kept.len() / 2), missed.split_at(missed.len() / 2));
        let medians = |passes: &[Vec<Ticks>]| -> Vec<f64> {
            (0..pages.len()).map(|group| median(passes.iter().map(|pass| pass[group].extra()).collect())).collect()
        };
        let (base, all) = (medians(half.0), medians(other.0));
        let whole = |group: usize| median(half.0.iter().map(|pass| pass[group].whole()).collect());
        let sum: usize = pages.iter().sum();
        let extra = all.iter().sum::<f64>() - base.iter().sum::<f64>();
        let miss_ticks = extra / sum.max(1) as f64;
        if miss_ticks <= 0.0 || sum == 0 {
            return Err(CounterError::Indistinct(what, format!("{miss_ticks:.1} ticks a page")));
        }
        let group = |(number, (&pages, &base_ticks)): (usize, (&usize, &f64))| {
            let interrupted_ticks = whole(number) + INTERRUPTED * miss_ticks * pages as f64;
            Group { pages: pages as u32, base_ticks, interrupted_ticks }
        };
        let groups = pages.iter().zip(&base).enumerate().map(group).collect();
        let mut meter = Self { groups, miss_ticks, known: Known::default() };
        let counted =
            |passes: &[Vec<Ticks>]| -> Vec<u32> { passes.iter().filter_map(|pass| meter.pass(pass)).collect() };
        let (kept, missed) = (counted(half.1), counted(other.1));
        let mean = |counts: &[u32]| counts.iter().map(|c| f64::from(*c)).sum::<f64>() / counts.len().max(1) as f64;
        let below = |count: &&u32| 2 * **count < sum as u32;
        meter.known = Known {
            pages: sum as u32,
            kept: [kept.len(), kept.iter().filter(below).count()],
            kept_misses: mean(&kept),
            missed: [missed.len(), missed.iter().filter(|count| !below(count)).count()],
            missed_misses: mean(&missed),
        };
        for (word, [all, right]) in
            [("passes that find all translations", meter.known.kept), ("passes that find none", meter.known.missed)]
        {
            if all < LEAST_PASSES || (right as f64) < LEAST_RIGHT * all as f64 {
                return Err(CounterError::Indistinct(word, format!("{right} of {all} recognised")));
            }
        }
        Ok(meter)
    }

    /// One that counts nothing, and tells only which groups took so many ticks or more.
    pub fn blind(pages: &[usize], interrupted_ticks: f64) -> Self {
        let group = |&pages: &usize| Group { pages: pages as u32, base_ticks: f64::INFINITY, interrupted_ticks };
        Self { groups: pages.iter().map(group).collect(), miss_ticks: 1.0, known: Known::default() }
    }

    /// The misses of a group that took so many ticks.
    #[inline(never)]
    pub fn group(&self, group: usize, ticks: Ticks) -> Judged {
        let of = &self.groups[group];
        if ticks.whole() >= of.interrupted_ticks {
            return Judged::Interrupted;
        }
        let misses = (ticks.extra() - of.base_ticks) / self.miss_ticks;
        // A negative number becomes 0.
        Judged::Misses((misses.round() as u32).min(of.pages))
    }

    /// Misses of a whole pass; `None`: it was interrupted.
    pub fn pass(&self, ticks: &[Ticks]) -> Option<u32> {
        let judged = ticks.iter().enumerate().map(|(group, &ticks)| self.group(group, ticks));
        judged.map(|judged| if let Judged::Misses(misses) = judged { Some(misses) } else { None }).sum()
    }

    /// Pages of a group.
    pub fn pages(&self, group: usize) -> u32 {
        self.groups[group].pages
    }
}

impl Ticks {
    /// What the first words took longer: translations that were lost.
    fn extra(self) -> f64 {
        self.shot as f64 - self.control as f64
    }

    /// All of it, since the stamp before.
    pub fn whole(self) -> f64 {
        (self.shot + self.control + self.before) as f64
    }
}

fn median(mut ticks: Vec<f64>) -> f64 {
    ticks.sort_by(f64::total_cmp);
    ticks.get(ticks.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Judged, Meter, Ticks};
    use crate::rng::Rng;

    /// Ticks of passes as a machine would take them: a base, so much a miss, now and then lines that the caches lost (of both words alike),
    /// read in grains.
    fn passes(
        rng: &mut Rng,
        pages: &[usize],
        miss: f64,
        grain: u64,
        misses: impl Fn(usize) -> usize,
    ) -> Vec<Vec<Ticks>> {
        let mut one = || {
            let group = |pages: &usize| {
                let lines = 300.0 * (rng.below(8) / 7) as f64;
                let mut read = |ticks: f64| (ticks as u64 + rng.below(grain as usize) as u64) / grain * grain;
                let control = 40.0 + 4.0 * *pages as f64 + lines;
                Ticks { shot: read(control + miss * misses(*pages) as f64), control: read(control), before: read(9.0) }
            };
            pages.iter().map(group).collect::<Vec<Ticks>>()
        };
        (0..64).map(|_| one()).collect()
    }

    proptest! {
        /// Where a group's misses are far beyond the grain, the count of any pass is right within two grains a group, whatever the caches lost.
        #[test]
        fn counts_are_right_within_the_grain(
            seed in any::<u64>(),
            groups in 1..12usize,
            miss in 20.0..80.0f64,
            grain in 1..30u64,
            share in 0..=8usize,
        ) {
            let pages = vec![8; groups];
            let mut rng = Rng::new(seed);
            let kept = passes(&mut rng, &pages, miss, grain, |_| 0);
            let missed = passes(&mut rng, &pages, miss, grain, |pages| pages);
            let meter = Meter::calibrate(&pages, &kept, &missed).expect("told apart");
            prop_assert_eq!((meter.known.kept, meter.known.missed), ([32, 32], [32, 32]));
            prop_assert!((meter.miss_ticks - miss).abs() <= 0.25 * grain as f64 + 0.2, "{}", meter.miss_ticks);
            for ticks in passes(&mut rng, &pages, miss, grain, |_| share) {
                let counted = f64::from(meter.pass(&ticks).expect("not interrupted"));
                let wrong = (counted - (groups * share) as f64).abs();
                prop_assert!(wrong <= groups as f64 * (3.0 * grain as f64 / miss + 0.5), "{} by {}", counted, wrong);
            }
        }
    }

    #[test]
    fn an_interrupt_is_no_miss() {
        let ticks = |shot: &[u64]| -> Vec<Ticks> {
            shot.iter().zip([72, 72, 52]).map(|(shot, control)| Ticks { shot: *shot, control, before: 0 }).collect()
        };
        let (kept, missed) = (vec![ticks(&[72, 72, 52]); 64], vec![ticks(&[312, 312, 142]); 64]);
        let meter = Meter::calibrate(&[8, 8, 3], &kept, &missed).expect("told apart");
        assert_eq!(meter.miss_ticks, 30.0);
        let last = |shot, control| meter.group(2, Ticks { shot, control, before: 0 });
        assert_eq!(last(52 + 90, 52), Judged::Misses(3));
        assert_eq!(last(52 + 899, 52), Judged::Misses(3));
        assert_eq!(last(52 + 900, 52), Judged::Interrupted);
        assert_eq!(last(52, 52 + 900), Judged::Interrupted);
        assert_eq!(last(0, 0), Judged::Misses(0));
        assert_eq!(meter.group(2, Ticks { shot: 52, control: 52, before: 900 }), Judged::Interrupted);
        assert_eq!(meter.pass(&ticks(&[72, 100_000, 52])), None);
        assert_eq!(meter.pass(&ticks(&[72, 132, 52])), Some(2));
        let blind = Meter::blind(&[8, 8, 3], 1000.0);
        assert_eq!(blind.pass(&ticks(&[72, 800, 52])), Some(0));
        assert_eq!(blind.pass(&ticks(&[72, 1000, 52])), None);
    }

    #[test]
    fn what_takes_the_same_is_no_meter() {
        let mut rng = Rng::new(1);
        let all = passes(&mut rng, &[8], 0.0, 1, |_| 0);
        let error = Meter::calibrate(&[8], &all, &all).expect_err("the same").to_string();
        assert!(error.starts_with("passes with and without misses cannot be told apart here"), "{error}");
        let error = Meter::calibrate(&[8], &all[..3], &all).expect_err("few").to_string();
        assert!(error.contains("fewer than 16 of a kind"), "{error}");
        // Half of the passes that should miss do not.
        let missed = passes(&mut rng, &[8], 30.0, 1, |pages| pages);
        let kept = passes(&mut rng, &[8], 30.0, 1, |_| 0);
        let mixed = [&missed[..40], &kept[..24]].concat();
        let error = Meter::calibrate(&[8], &kept, &mixed).expect_err("mixed").to_string();
        assert!(error.starts_with("passes that find none cannot be told apart here: 8 of 32"), "{error}");
    }
}
