//! Misses of a single pass over known pages, by its groups' times: what the counter cannot average, since it happens
//! once.
//!
//! Calibrated on passes that are known to find all their translations, and on passes that are known to find none; half
//! of each gives what a miss takes, and the other half how often such a pass is counted wrongly. A group's count is
//! signed and not whole: the timer's grain goes both ways, and rounding each group up from none would add up to misses
//! that were not there.

use lookaside_stats::median;
use serde::Serialize;

use crate::counter::error::CounterError;
use crate::counter::timed_chain::GroupTicks;

/// A group that takes so many times what it would if all its pages missed was interrupted: a walk whose tables are in
/// memory is about ten times one whose tables are in the second-level cache (`lookaside machine probe` on the
/// development machine: 402 and 49 cycles).
const INTERRUPTED: f64 = 10.0;
/// Known passes of which less than this share is recognised make no meter.
const LEAST_RIGHT: f64 = 0.9;
/// Known passes of a kind, at least.
const LEAST_PASSES: usize = 8;

/// Counts the misses of a group by the ticks that it took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PassMeter {
    /// Each group's pages, its ticks where none misses, and those from which on it was interrupted.
    groups: Vec<GroupBaseline>,
    /// Ticks that a miss adds.
    pub miss_ticks: f64,
    /// How well passes were counted whose misses are known.
    pub known: MeterAccuracy,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct GroupBaseline {
    pages: u32,
    /// What the first words take longer than the second, at least and at most: beyond, it is not the group's
    /// translations.
    extra_ticks: [f64; 2],
    /// Of these, where none misses.
    kept_ticks: f64,
    misses_a_tick: f64,
    interrupted_ticks: f64,
}

/// Counts of passes whose misses are known, none or all pages; others than those it was calibrated on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct MeterAccuracy {
    /// Pages of a pass.
    pub pages: u32,
    /// Passes without a miss that were not interrupted; of these, the ones counted as less than half of the pages.
    pub kept: [usize; 2],
    /// Misses counted in one of them, the mean; may be a little less than none.
    pub kept_misses: f64,
    /// Passes in which all pages missed and that were not interrupted; of these, the ones counted as at least half.
    pub missed: [usize; 2],
    /// Misses counted in one of them, the mean.
    pub missed_misses: f64,
}

impl MeterAccuracy {
    /// Of several meters of the same pages: passes added up, means over all of them.
    pub fn of_all<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let add = |[passes, right]: [usize; 2], [more, more_right]: [usize; 2]| [passes + more, right + more_right];
        // A mean by how many it is of.
        let mean = |mean: f64, [passes, _]: [usize; 2], other: f64, [others, _]: [usize; 2]| {
            (mean * passes as f64 + other * others as f64) / (passes + others).max(1) as f64
        };
        all.fold(Self::default(), |sum, one| Self {
            pages: one.pages,
            kept: add(sum.kept, one.kept),
            kept_misses: mean(sum.kept_misses, sum.kept, one.kept_misses, one.kept),
            missed: add(sum.missed, one.missed),
            missed_misses: mean(sum.missed_misses, sum.missed, one.missed_misses, one.missed),
        })
    }
}

/// What became of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GroupVerdict {
    /// So many of its pages missed, give or take what the timer's grain does: it may be less than none. Sums over
    /// groups are right.
    Misses(f64),
    /// Something else ran meanwhile: what missed is not known.
    Interrupted,
}

impl PassMeter {
    /// From the ticks of passes ([`super::TimedChain::pass`]) over groups of so many pages: where all is kept, and
    /// where all is missed. `interrupt_ticks`: what no interrupt takes less than; of small groups a few walks through
    /// memory would be taken for one.
    ///
    /// # Errors
    /// Too few passes, or the two cannot be told apart.
    pub fn calibrate(
        pages: &[usize],
        kept: &[Vec<GroupTicks>],
        missed: &[Vec<GroupTicks>],
        interrupt_ticks: f64,
    ) -> Result<Self, CounterError> {
        let what = "passes with and without misses";
        let fits = |passes: &[Vec<GroupTicks>]| {
            passes.len() >= 2 * LEAST_PASSES && passes.iter().all(|pass| pass.len() == pages.len())
        };
        if !fits(kept) || !fits(missed) {
            return Err(CounterError::Indistinct(what, format!("fewer than {} of a kind", 2 * LEAST_PASSES)));
        }
        // Every other pass, so that what changes meanwhile meets both halves alike.
        let every_other =
            |passes: &[Vec<GroupTicks>], from| passes.iter().skip(from).step_by(2).cloned().collect::<Vec<_>>();
        let (half, other) = ([0, 1].map(|from| every_other(kept, from)), [0, 1].map(|from| every_other(missed, from)));
        let of = |passes: &[Vec<GroupTicks>], group: usize, figure: fn(GroupTicks) -> f64| -> Vec<f64> {
            passes.iter().map(|pass| figure(pass[group])).collect()
        };
        let medians = |passes: &[Vec<GroupTicks>]| -> Vec<f64> {
            (0..pages.len()).map(|group| median(of(passes, group, GroupTicks::extra)).unwrap_or_default()).collect()
        };
        let (base, all) = (medians(&half[0]), medians(&other[0]));
        let sum: usize = pages.iter().sum();
        let extra = all.iter().sum::<f64>() - base.iter().sum::<f64>();
        let miss_ticks = extra / sum.max(1) as f64;
        let indistinct = || Err(CounterError::Indistinct(what, format!("{miss_ticks:.1} ticks a page")));
        if miss_ticks <= 0.0 || sum == 0 {
            return indistinct();
        }
        let mut groups = Vec::new();
        for (group, (&pages, base)) in pages.iter().zip(&base).enumerate() {
            let all_ticks = miss_ticks * pages as f64;
            let extra_ticks = [base - all_ticks, base + all_ticks];
            // Of what is cut at these, so that what that takes off is taken off here, too.
            let usual = |passes: &[Vec<GroupTicks>]| {
                let extra = of(passes, group, GroupTicks::extra).into_iter();
                midmean(extra.map(|ticks| ticks.clamp(extra_ticks[0], extra_ticks[1])).collect())
            };
            let (kept_ticks, missed_ticks) = (usual(&half[0]), usual(&other[0]));
            if missed_ticks <= kept_ticks {
                return indistinct();
            }
            groups.push(GroupBaseline {
                pages: pages as u32,
                extra_ticks,
                kept_ticks,
                misses_a_tick: pages as f64 / (missed_ticks - kept_ticks),
                interrupted_ticks: median(of(&half[0], group, GroupTicks::whole)).unwrap_or_default()
                    + interrupt_ticks.max(INTERRUPTED * all_ticks),
            });
        }
        let mut meter = Self { groups, miss_ticks, known: MeterAccuracy::default() };
        let counted =
            |passes: &[Vec<GroupTicks>]| -> Vec<f64> { passes.iter().filter_map(|pass| meter.pass(pass)).collect() };
        let (kept, missed) = (counted(&half[1]), counted(&other[1]));
        let mean = |counts: &[f64]| counts.iter().sum::<f64>() / counts.len().max(1) as f64;
        let below = |count: &&f64| 2.0 * **count < sum as f64;
        meter.known = MeterAccuracy {
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
        let group = |&pages: &usize| GroupBaseline {
            pages: pages as u32,
            extra_ticks: [0.0; 2],
            kept_ticks: 0.0,
            misses_a_tick: 0.0,
            interrupted_ticks,
        };
        Self { groups: pages.iter().map(group).collect(), miss_ticks: 1.0, known: MeterAccuracy::default() }
    }

    /// The misses of a group that took so many ticks.
    #[inline(never)]
    pub fn group(&self, group: usize, ticks: GroupTicks) -> GroupVerdict {
        let of = &self.groups[group];
        if ticks.whole() >= of.interrupted_ticks {
            return GroupVerdict::Interrupted;
        }
        let [least, most] = of.extra_ticks;
        GroupVerdict::Misses((ticks.extra().clamp(least, most) - of.kept_ticks) * of.misses_a_tick)
    }

    /// Misses of a whole pass; `None`: it was interrupted.
    pub fn pass(&self, ticks: &[GroupTicks]) -> Option<f64> {
        let judged = ticks.iter().enumerate().map(|(group, &ticks)| self.group(group, ticks));
        judged.map(|judged| if let GroupVerdict::Misses(misses) = judged { Some(misses) } else { None }).sum()
    }

    /// Pages of a group.
    pub fn pages(&self, group: usize) -> u32 {
        self.groups[group].pages
    }
}

impl GroupTicks {
    /// What the first words took longer: translations that were lost.
    pub fn extra(self) -> f64 {
        self.shot as f64 - self.control as f64
    }

    /// All of it, since the stamp before.
    pub fn whole(self) -> f64 {
        (self.shot + self.control + self.before) as f64
    }
}

/// Mean of the middle half: robust as a median is, and finer than the grain.
fn midmean(mut ticks: Vec<f64>) -> f64 {
    ticks.sort_by(f64::total_cmp);
    let quarter = ticks.len() / 4;
    let middle = &ticks[quarter..ticks.len() - quarter];
    middle.iter().sum::<f64>() / middle.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::{GroupVerdict, MeterAccuracy, PassMeter};
    use proptest::prelude::*;

    use crate::counter::timed_chain::GroupTicks;
    use lookaside_stats::SplitMix64;

    /// Ticks of passes as a machine would take them: a base, so much a miss, now and then lines that the caches lost
    /// (of both words alike), read in grains.
    fn passes(
        rng: &mut SplitMix64,
        pages: &[usize],
        miss: f64,
        grain: u64,
        misses: impl Fn(usize) -> usize,
    ) -> Vec<Vec<GroupTicks>> {
        let mut one = || {
            let group = |pages: &usize| {
                let lines = 300.0 * (rng.index(8) / 7) as f64;
                let mut read = |ticks: f64| (ticks as u64 + rng.below(grain)) / grain * grain;
                let control = 40.0 + 4.0 * *pages as f64 + lines;
                GroupTicks {
                    shot: read(control + miss * misses(*pages) as f64),
                    control: read(control),
                    before: read(9.0),
                }
            };
            pages.iter().map(group).collect::<Vec<GroupTicks>>()
        };
        (0..64).map(|_| one()).collect()
    }

    proptest! {
        /// Where a group's misses are far beyond the grain, the count of any pass is right within two grains a group,
        /// whatever the caches lost.
        #[test]
        fn counts_are_right_within_the_grain(
            seed in any::<u64>(),
            groups in 1..12usize,
            miss in 20.0..80.0f64,
            grain in 1..30u64,
            share in 0..=8usize,
        ) {
            let pages = vec![8; groups];
            let mut rng = SplitMix64::new(seed);
            let kept = passes(&mut rng, &pages, miss, grain, |_| 0);
            let missed = passes(&mut rng, &pages, miss, grain, |pages| pages);
            let meter = PassMeter::calibrate(&pages, &kept, &missed, 0.0).expect("told apart");
            prop_assert_eq!((meter.known.kept, meter.known.missed), ([32, 32], [32, 32]));
            prop_assert!((meter.miss_ticks - miss).abs() <= 0.25 * grain as f64 + 0.2, "{}", meter.miss_ticks);
            let mut sum = 0.0;
            for ticks in passes(&mut rng, &pages, miss, grain, |_| share) {
                let counted = meter.pass(&ticks).expect("not interrupted");
                let wrong = (counted - (groups * share) as f64).abs();
                prop_assert!(wrong <= groups as f64 * (3.0 * grain as f64 / miss + 0.5), "{} by {}", counted, wrong);
                sum += counted;
            }
            // Of many passes the grain's wrongs go: what is left is how well 32 passes tell a group's, and what is cut
            // off beyond its pages.
            let wrong = (sum / 64.0 - (groups * share) as f64).abs() / groups as f64;
            prop_assert!(wrong <= 0.75 * grain as f64 / miss + 0.1, "{} a group", wrong);
        }
    }

    /// Grains as large as two thirds of a miss, pages in twos: rounding each group up from none would count some eight
    /// misses of 64 that were not there.
    #[test]
    fn a_coarse_timer_adds_up_to_no_misses() {
        let mut rng = SplitMix64::new(3);
        let pages = vec![2; 32];
        let kept = passes(&mut rng, &pages, 40.0, 26, |_| 0);
        let missed = passes(&mut rng, &pages, 40.0, 26, |pages| pages);
        let meter = PassMeter::calibrate(&pages, &kept, &missed, 0.0).expect("told apart");
        let mean = |misses: usize, rng: &mut SplitMix64| {
            let all = passes(rng, &pages, 40.0, 26, |_| misses);
            all.iter().map(|pass| meter.pass(pass).expect("not interrupted")).sum::<f64>() / all.len() as f64
        };
        for (misses, expected) in [(0, 0.0), (1, 32.0), (2, 64.0)] {
            let counted = mean(misses, &mut rng);
            assert!((counted - expected).abs() < 2.5, "{misses} a group: {counted}");
        }
    }

    #[test]
    fn what_several_meters_know_is_added_up() {
        let known = |kept: [usize; 2], kept_misses, missed: [usize; 2], missed_misses| MeterAccuracy {
            pages: 8,
            kept,
            kept_misses,
            missed,
            missed_misses,
        };
        let all = [known([30, 29], 1.0, [10, 10], 8.0), known([10, 10], -1.0, [30, 20], 4.0)];
        assert_eq!(MeterAccuracy::of_all(all.iter()), known([40, 39], 0.5, [40, 30], 5.0));
        assert_eq!(MeterAccuracy::of_all([].iter()), MeterAccuracy::default());
    }

    #[test]
    fn an_interrupt_is_no_miss() {
        let ticks = |shot: &[u64]| -> Vec<GroupTicks> {
            shot.iter()
                .zip([72, 72, 52])
                .map(|(shot, control)| GroupTicks { shot: *shot, control, before: 0 })
                .collect()
        };
        let (kept, missed) = (vec![ticks(&[72, 72, 52]); 64], vec![ticks(&[312, 312, 142]); 64]);
        let meter = PassMeter::calibrate(&[8, 8, 3], &kept, &missed, 0.0).expect("told apart");
        assert_eq!(meter.miss_ticks, 30.0);
        let last = |shot, control| meter.group(2, GroupTicks { shot, control, before: 0 });
        assert_eq!(last(52 + 90, 52), GroupVerdict::Misses(3.0));
        assert_eq!(last(52 + 899, 52), GroupVerdict::Misses(3.0));
        assert_eq!(last(52 + 900, 52), GroupVerdict::Interrupted);
        assert_eq!(last(52, 52 + 900), GroupVerdict::Interrupted);
        assert_eq!(last(0, 0), GroupVerdict::Misses(0.0));
        // Noise goes both ways, but not beyond the group's pages.
        assert_eq!(last(52, 52 + 30), GroupVerdict::Misses(-1.0));
        assert_eq!(last(52, 52 + 800), GroupVerdict::Misses(-3.0));
        assert_eq!(meter.group(2, GroupTicks { shot: 52, control: 52, before: 900 }), GroupVerdict::Interrupted);
        assert_eq!(meter.pass(&ticks(&[72, 100_000, 52])), None);
        assert_eq!(meter.pass(&ticks(&[72, 132, 52])), Some(2.0));
        // Nothing that short is an interrupt.
        let meter = PassMeter::calibrate(&[8, 8, 3], &kept, &missed, 2000.0).expect("told apart");
        let last = |shot, control| meter.group(2, GroupTicks { shot, control, before: 0 });
        assert_eq!((last(52 + 1999, 52), last(52 + 2000, 52)), (GroupVerdict::Misses(3.0), GroupVerdict::Interrupted));
        let blind = PassMeter::blind(&[8, 8, 3], 1000.0);
        assert_eq!(blind.pass(&ticks(&[72, 800, 52])), Some(0.0));
        assert_eq!(blind.pass(&ticks(&[72, 1000, 52])), None);
    }

    #[test]
    fn what_takes_the_same_is_no_meter() {
        let mut rng = SplitMix64::new(1);
        let all = passes(&mut rng, &[8], 0.0, 1, |_| 0);
        let error = PassMeter::calibrate(&[8], &all, &all, 0.0).expect_err("the same").to_string();
        assert!(error.starts_with("passes with and without misses cannot be told apart here"), "{error}");
        let error = PassMeter::calibrate(&[8], &all[..3], &all, 0.0).expect_err("few").to_string();
        assert!(error.contains("fewer than 16 of a kind"), "{error}");
        // Many of the passes that should miss do not.
        let missed = passes(&mut rng, &[8], 30.0, 1, |pages| pages);
        let kept = passes(&mut rng, &[8], 30.0, 1, |_| 0);
        let mixed = [&missed[..40], &kept[..24]].concat();
        let error = PassMeter::calibrate(&[8], &kept, &mixed, 0.0).expect_err("mixed").to_string();
        assert!(error.starts_with("passes that find none cannot be told apart here: 20 of 32"), "{error}");
    }
}
