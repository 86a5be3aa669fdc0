//! A TLB miss counter without a PMU: which accesses of a short sequence miss, by calibrated timing.
//!
//! Each access of the sequence is timed by itself, in many rounds, and compared with the same access in rounds where
//! its page is touched at another line right before: what is left is what the translation cost. Timing is calibrated
//! on pages of the counter's own whose sets are known, so that they surely hit, miss the first level, or walk; the same
//! procedure is then held against fresh pages of these kinds, and how often it is wrong is part of the result.

use std::collections::BTreeSet;

use lookaside_machine::PageSize;
use lookaside_stats::{median, SplitMix64};
use serde::Serialize;

use crate::counter::error::CounterError;
use crate::counter::error::MOST_TIMED;
use crate::counter::verdict::AccessVerdict;
use crate::counter::verdict::LoadTimes;
use crate::counter::verdict::MissCosts;
use crate::eviction_sets::{PagePicker, TlbLevels};
use crate::metal::single_shot::TimedRound;
use crate::metal::{Metal, MetalError};

/// Rounds of each kind where nobody asks for another number: a grain of 26 ticks then spreads the mean of a difference by
/// 0.8 ticks, and the smallest miss known (5 cycles, 3.5 ticks on Zen 4) is more than four times that.
pub(crate) const ROUNDS: usize = 512;

/// Orders of the timed loads.
const TURNS: usize = 8;
/// Known sequences of each kind, and pages in each (fewer where there are fewer sets).
const KNOWN_SEQUENCES: usize = 16;
/// See [`KNOWN_SEQUENCES`].
const KNOWN_PAGES: usize = 8;
/// A miss that adds less than this cannot be seen.
const LEAST_TICKS: f64 = 1.0;
/// A kind that is recognised less often than this is not told apart.
const LEAST_RIGHT: f64 = 0.9;
/// Attempts at a calibration: a neighbour may have disturbed one.
const ATTEMPTS: u64 = 3;

/// A calibrated counter. While it lives, its [`crate::HostMachine`] keeps the thread on one CPU.
#[derive(Debug)]
pub struct MissCounter<M: Metal> {
    metal: M,
    levels: TlbLevels,
    marks: MissCosts,
    /// The timer's grain: the smallest difference of two times so far.
    grain: f64,
    confusion: Confusion,
    rounds: usize,
    /// Orders of timed loads.
    rng: SplitMix64,
}

/// Order of timed loads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoadOrder {
    AsGiven,
    Random,
}

/// What became of the accesses of a sequence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MissCounts {
    /// Accesses that miss the first level (those that walk too).
    pub l1_misses: usize,
    /// Accesses that miss all levels.
    pub stlb_misses: usize,
    /// Accesses that do now this, now that; in neither of the two above.
    pub mixed: usize,
    /// Rounds that each access was timed in.
    pub rounds: usize,
    /// Each access, in order.
    pub accesses: Vec<JudgedAccess>,
}

/// One access of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct JudgedAccess {
    /// What it does.
    pub verdict: AccessVerdict,
    /// Ticks that its translation took beyond that of a hit, the mean of the rounds.
    pub extra_ticks: f64,
}

/// How known accesses were judged, each by as many rounds as the counter makes: what its errors are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Confusion {
    /// Judgements of accesses that are known to hit, to miss the first level, and to miss all levels; each in the
    /// order [`AccessVerdict`] has: hit, L1 miss, STLB miss, mixed.
    pub judged: [[usize; 4]; 3],
}

impl Confusion {
    /// Share of the accesses known to be `known` that are judged as `judged`; none where none are known.
    pub fn share(&self, known: AccessVerdict, judged: AccessVerdict) -> Option<f64> {
        let row = self.judged.get(known as usize)?;
        let all: usize = row.iter().sum();
        (all > 0).then(|| row[judged as usize] as f64 / all as f64)
    }

    /// Share of known hits counted as misses of any kind.
    pub fn hits_as_misses(&self) -> Option<f64> {
        self.share(AccessVerdict::Hit, AccessVerdict::Hit).map(|right| 1.0 - right)
    }

    /// Share of known misses of any kind counted as hits.
    pub fn misses_as_hits(&self) -> Option<f64> {
        let all: usize = self.judged[1..].iter().flatten().sum();
        (all > 0).then(|| self.judged[1..].iter().map(|row| row[0]).sum::<usize>() as f64 / all as f64)
    }
}

impl<M: Metal> MissCounter<M> {
    /// Calibrates on pages of the machine's own, chosen by these levels; a few tenths of a second. `rounds` is how
    /// often each access will be timed, with and without the control: at least 16, a multiple of 8 (rounded up); 512 is
    /// a good number.
    ///
    /// # Errors
    /// The machine cannot time loads from addresses, or known misses cannot be told from hits.
    pub fn calibrate(metal: M, levels: TlbLevels, rounds: usize, seed: u64) -> Result<Self, CounterError> {
        let marks = MissCosts { l1_miss_ticks: 0.0, walk_ticks: None };
        let rounds = rounds.max(2 * TURNS).next_multiple_of(TURNS);
        let (grain, confusion, rng) = (f64::INFINITY, Confusion::default(), SplitMix64::new(seed));
        let mut counter = Self { metal, levels, marks, grain, confusion, rounds, rng };
        let mut last = Ok(());
        for attempt in 0..ATTEMPTS {
            last = counter.calibrate_once(seed.wrapping_add(attempt));
            if last.is_ok() || matches!(last, Err(CounterError::Metal(_))) {
                break;
            }
        }
        last.map(|()| counter)
    }

    /// What misses take here.
    pub fn marks(&self) -> MissCosts {
        self.marks
    }

    /// How often known accesses were judged rightly.
    pub fn confusion(&self) -> &Confusion {
        &self.confusion
    }

    /// The levels that it was calibrated on.
    pub fn levels(&self) -> &TlbLevels {
        &self.levels
    }

    /// Loads from `before`, in order, then from `sequence`, in order: which accesses of the sequence miss. Nothing is
    /// written to. `2 * rounds + 16` times.
    ///
    /// # Errors
    /// The sequence is empty or too long.
    ///
    /// # Safety
    /// Each pointer lies in a page that can be read as a whole.
    pub unsafe fn count(&mut self, before: &[*const u8], sequence: &[*const u8]) -> Result<MissCounts, CounterError> {
        // SAFETY: the caller's.
        unsafe { self.judge(before, &mut || (), sequence, LoadOrder::AsGiven) }
    }

    /// Loads from `prime`, in order, lets `act` run, then loads from `timed`, in a random order: which of these miss.
    /// With the same pages in `prime` and `timed`: which of them did `act` evict? The order changes, since in an even
    /// one a prefetcher may run ahead and fill what was evicted (seen on Zen 4: pages three apart, their lines out of
    /// the first-level cache). `act` runs `2 * rounds + 16` times; what it touches itself (its stack, what it calls)
    /// counts as part of it.
    ///
    /// # Errors
    /// `timed` is empty or too long.
    ///
    /// # Safety
    /// Each pointer lies in a page that can be read as a whole, also while `act` runs and afterwards.
    pub unsafe fn evicted(
        &mut self,
        prime: &[*const u8],
        mut act: impl FnMut(),
        timed: &[*const u8],
    ) -> Result<MissCounts, CounterError> {
        // SAFETY: the caller's.
        unsafe { self.judge(prime, &mut act, timed, LoadOrder::Random) }
    }

    /// # Safety
    /// As for [`MissCounter::evicted`].
    unsafe fn judge(
        &mut self,
        prime: &[*const u8],
        act: &mut dyn FnMut(),
        timed: &[*const u8],
        order: LoadOrder,
    ) -> Result<MissCounts, CounterError> {
        if timed.is_empty() || timed.len() > MOST_TIMED {
            return Err(CounterError::Length(timed.len()));
        }
        let [prime, timed] = [prime, timed].map(|list| list.iter().map(|at| *at as u64).collect::<Vec<u64>>());
        // SAFETY: the caller's.
        let times = unsafe { self.times(&prime, act, &timed, order)? };
        let mut misses = MissCounts {
            l1_misses: 0,
            stlb_misses: 0,
            mixed: 0,
            rounds: self.rounds,
            accesses: Vec::with_capacity(times.len()),
        };
        for (shot, control) in times {
            let verdict = self.marks.verdict(shot, control, self.grain);
            misses.l1_misses += usize::from(matches!(verdict, AccessVerdict::L1Miss | AccessVerdict::StlbMiss));
            // Where there is no second level, a miss of the first walks.
            let walks =
                verdict == AccessVerdict::StlbMiss || verdict == AccessVerdict::L1Miss && self.levels.second.is_none();
            misses.stlb_misses += usize::from(walks);
            misses.mixed += usize::from(verdict == AccessVerdict::Mixed);
            misses.accesses.push(JudgedAccess { verdict, extra_ticks: shot.mean - control.mean });
        }
        Ok(misses)
    }

    /// Times of each timed access, without and with its page touched before.
    ///
    /// # Safety
    /// As for [`Metal::rounds`].
    unsafe fn times(
        &mut self,
        prime: &[u64],
        act: &mut dyn FnMut(),
        timed: &[u64],
        order: LoadOrder,
    ) -> Result<Vec<(LoadTimes, LoadTimes)>, MetalError> {
        let mut all = [vec![Vec::new(); timed.len()], vec![Vec::new(); timed.len()]];
        let mut places: Vec<usize> = (0..timed.len()).collect();
        for _ in 0..TURNS {
            if order == LoadOrder::Random {
                self.rng.shuffle(&mut places);
            }
            let timed: Vec<u64> = places.iter().map(|&place| timed[place]).collect();
            let mut round = TimedRound { prime, act, timed: &timed };
            // SAFETY: the caller's.
            let rounds = unsafe { self.metal.rounds(&mut round, self.rounds / TURNS + 1)? };
            // The first round follows upon other work.
            for pair in rounds.iter().skip(1) {
                for (kind, ticks) in [&pair.shot, &pair.control].into_iter().enumerate() {
                    self.grain = self.grain.min(least_gap(ticks));
                    for (&place, &ticks) in places.iter().zip(ticks) {
                        all[kind][place].push(ticks);
                    }
                }
            }
        }
        let [shots, controls] = all.map(|kind| kind.into_iter().map(LoadTimes::of).collect::<Vec<LoadTimes>>());
        Ok(shots.into_iter().zip(controls).collect())
    }

    fn calibrate_once(&mut self, seed: u64) -> Result<(), CounterError> {
        let levels = self.levels.clone();
        let mut picker = PagePicker::new(&levels, self.metal.page_bits(PageSize::K4), seed);
        // First the costs, from the medians of known sequences; then how often fresh ones are judged rightly.
        let mut extra = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..KNOWN_SEQUENCES / 2 {
            for (kind, extra) in extra.iter_mut().enumerate().take(kinds(&levels)) {
                let known = self.known(&mut picker, kind)?;
                extra.extend(known.iter().map(|(shot, control)| shot.mean - control.mean));
            }
        }
        let [hit, l1, all] = extra.map(|extra| median(extra).unwrap_or_default());
        let walk = levels.second.is_some().then_some(all - l1);
        if l1 - hit < LEAST_TICKS {
            let seen = format!("{l1:.1} and {hit:.1} ticks beyond a control");
            return Err(CounterError::Indistinct("known misses of the first level and hits", seen));
        }
        if walk.is_some_and(|walk| walk < LEAST_TICKS) {
            let seen = format!("{all:.1} and {l1:.1} ticks beyond a control");
            return Err(CounterError::Indistinct("known walks and misses of the first level", seen));
        }
        self.marks = MissCosts { l1_miss_ticks: l1, walk_ticks: walk };
        let mut confusion = Confusion::default();
        for _ in 0..KNOWN_SEQUENCES {
            for kind in 0..kinds(&levels) {
                for (shot, control) in self.known(&mut picker, kind)? {
                    confusion.judged[kind][self.marks.verdict(shot, control, self.grain) as usize] += 1;
                }
            }
        }
        self.confusion = confusion;
        for (kind, word) in ["known hits", "known misses of the first level", "known walks"].into_iter().enumerate() {
            let [row, all] = [self.confusion.judged[kind][kind], self.confusion.judged[kind].iter().sum()];
            if (row as f64) < LEAST_RIGHT * all as f64 {
                return Err(CounterError::Indistinct(word, format!("{row} of {all} recognised")));
            }
        }
        Ok(())
    }

    /// Times of pages that surely do what `kind` says: 0 hit, 1 miss the first level, 2 miss all.
    fn known(&mut self, picker: &mut PagePicker<'_>, kind: usize) -> Result<Vec<(LoadTimes, LoadTimes)>, MetalError> {
        picker.move_window();
        let pages = picker.in_different_sets(KNOWN_PAGES.min(picker.levels.last().sets as usize / 2).max(1));
        let sets: BTreeSet<u64> = pages.iter().map(|&page| picker.set(page)).collect();
        let between = match kind {
            0 => Vec::new(),
            1 if picker.levels.second.is_some() => picker.flooding_first_level(&sets),
            1 => picker.evicting(&pages),
            _ => [picker.evicting(&pages), picker.flooding_first_level(&sets)].concat(),
        };
        let mut addresses = Vec::new();
        for &page in pages.iter().chain(&between) {
            addresses.push(self.metal.address(PageSize::K4, page)?);
        }
        let timed = addresses[..pages.len()].to_vec();
        // SAFETY: the machine's own pages, which it keeps: there are few.
        unsafe { self.times(&addresses, &mut || (), &timed, LoadOrder::Random) }
    }
}

/// The least difference between two different times.
fn least_gap(ticks: &[f64]) -> f64 {
    let mut ticks = ticks.to_vec();
    ticks.sort_by(f64::total_cmp);
    // Half a tick is no difference.
    ticks.windows(2).map(|pair| pair[1] - pair[0]).filter(|&gap| gap > 0.5).fold(f64::INFINITY, f64::min)
}

/// Kinds of access that can be known: without a second level, no miss of the first hits it.
fn kinds(levels: &TlbLevels) -> usize {
    if levels.second.is_some() {
        3
    } else {
        2
    }
}
