//! Does a thread on another CPU use the entries that a thread here has made? (PT-Baker, §4.4.5.1, Figure 4.6.)
//!
//! A circle through an array's pages is walked here: alone; beside a thread that stays on one page; beside one that
//! walks through the *same* pages; beside one that walks through as many pages of its own. What is compared are
//! second-level misses an access, by a proven counter, else by the time that translations take, so that a core that two
//! threads share, or data caches, make no misses. The paper's two runs, alone and with the same pages, do not tell
//! entries that threads compete for from entries that are shared out, nor shared ones from none that the other thread
//! could reach: the other two do.

use crate::bench::{ChainBench, Halt};
use crate::effects::eviction_bench::EvictionBench;
use crate::effects::repeat::until_answers_agree;
use crate::eviction_sets::TlbLevels;
use crate::finding::Finding;
use crate::metal::single_shot::Act;
use crate::metal::NeighbourWalk;
use crate::pmu::events::PmuEvent;
use crate::report::effects::EntryOwnership;
use crate::report::effects::MissesPerAccess;
use crate::report::effects::SharingMeasurement;
use crate::report::effects::TlbSharing;
use lookaside_stats::median;

/// Repetitions of each measurement, all four once before any again, each with the array at another place.
const REPETITIONS: usize = 11;
/// Walks through the array that are timed in a repetition, and the pages of it whose loads are, one by one.
const WALKS: usize = 24;
/// See [`WALKS`].
const TIMED: usize = 64;
/// Rounds that a counter counts in a repetition.
const ROUNDS: u32 = 8;
/// Misses an access: more than this between what is surely there and what was there at most is a rise.
const RISE: f64 = 0.15;
/// Medians nearer than this are alike.
const ALIKE: f64 = 0.05;
/// Where this part of the accesses misses anyway, nothing says that no more would.
const FULL: f64 = 0.75;
/// Rounds through its pages that the other thread has to have made, for each of ours, if it is to have had no effect.
const KEPT_UP: f64 = 0.5;
/// The array that fits by itself, in eighths of the second level's entries; twice that does not fit.
const EIGHTHS: usize = 5;

/// Looks whether a thread on `cpu` uses the entries of this one, on an array of as many pages as both levels have
/// entries (the paper's) and on one that fits by itself; what two looks agree on is confirmed. `counter` is an event
/// that is proven to count second-level misses.
///
/// # Errors
/// It is to end.
pub fn measure_sharing(
    bench: &mut ChainBench<'_>,
    levels: &TlbLevels,
    cpu: usize,
    counter: Option<&PmuEvent>,
) -> Result<Finding<TlbSharing>, Halt> {
    let mut evictions = match EvictionBench::new(bench, levels) {
        Ok(Ok(evictions)) => evictions,
        Ok(Err(reason)) => return Ok(Finding::not_determined(reason)),
        Err(Halt::Metal(error)) => return Ok(Finding::not_determined(error.to_string())),
        Err(halt) => return Err(halt),
    };
    measure_sharing_beside(&mut evictions, cpu, counter)
}

/// The same with what misses cost known already.
pub(super) fn measure_sharing_beside(
    evictions: &mut EvictionBench<'_, '_, '_>,
    cpu: usize,
    counter: Option<&PmuEvent>,
) -> Result<Finding<TlbSharing>, Halt> {
    let levels = evictions.picker.levels;
    let paper = (levels.first.entries + levels.last().entries) as usize;
    let fits = levels.last().entries as usize * EIGHTHS / 8;
    let most = evictions.bench.max_pages();
    if paper + TIMED > most {
        let reason = format!("needs {} pages in memory, {most} are allowed (--memory)", paper + TIMED);
        return Ok(Finding::not_determined(reason));
    }
    evictions.bench.note(&format!("whether a thread on CPU {cpu} shares entries"));
    let mut looks: Vec<SharingMeasurement> = Vec::new();
    let found = until_answers_agree(
        || {
            let pages = if looks.len().is_multiple_of(2) { fits } else { paper };
            let look = look(evictions, cpu, pages, counter)?;
            looks.push(look);
            Ok(look.says())
        },
        |a, b| a == b,
    );
    // However that ended, the thread is to go.
    let gone = evictions.bench.metal().neighbour(None);
    let found = match found.and_then(|found| Ok(gone.map(|()| found)?)) {
        Err(Halt::Metal(error)) => return Ok(Finding::not_determined(error.to_string())),
        other => other?,
    };
    let seen: Vec<String> = looks.iter().map(SharingMeasurement::words).collect();
    // What one look says and another denies is nothing, though two may agree.
    let says: Vec<EntryOwnership> = looks.iter().filter_map(SharingMeasurement::says).collect();
    Ok(match found {
        Ok((entries, _)) if says.iter().all(|other| *other == entries) => {
            Finding::confirmed(TlbSharing { entries, counter: counter.map(|event| event.name), looks }, seen)
        }
        _ if looks.iter().any(|look| look.rounds_a_round < KEPT_UP) => {
            Finding::not_determined(format!("a thread on CPU {cpu} hardly runs")).with_evidence(seen)
        }
        _ => Finding::not_determined("no two measurements agree").with_evidence(seen),
    })
}

fn look(
    evictions: &mut EvictionBench<'_, '_, '_>,
    cpu: usize,
    pages: usize,
    counter: Option<&PmuEvent>,
) -> Result<SharingMeasurement, Halt> {
    let mut misses = [(); 4].map(|()| Vec::with_capacity(REPETITIONS));
    let mut made = [0; 4];
    let mut done = 0;
    for _ in 0..REPETITIONS {
        let block = (pages as u64).next_power_of_two();
        let first = evictions.bench.page() & !(block - 1);
        let mut circle: Vec<u64> = (first..first + pages as u64).collect();
        // An even order would be translated ahead of.
        evictions.bench.rng.shuffle(&mut circle);
        // Room for pages of its own is taken once.
        let most_pages = evictions.most_pages();
        let walk = |pages, first| Some(NeighbourWalk { cpu, pages, first, most_pages, all_lines: false });
        let beside = [None, walk(1, None), walk(pages, Some(first)), walk(pages, None)];
        for ((walk, misses), made) in beside.into_iter().zip(&mut misses).zip(&mut made) {
            evictions.bench.metal().neighbour(walk)?;
            let before = evictions.bench.metal().neighbour_loads();
            misses.push(evictions.misses_an_access(&circle, counter)?);
            *made += evictions.bench.metal().neighbour_loads().saturating_sub(before);
        }
        done += match counter {
            Some(_) => u64::from(ROUNDS),
            None => 2 * (WALKS as u64 + 1), // each with its control
        };
    }
    let [alone, one_page, same_pages, other_pages] = misses.map(MissesPerAccess::of);
    let rounds_a_round = made[2].min(made[3]) as f64 / (done * pages as u64) as f64;
    Ok(SharingMeasurement { pages, alone, one_page, same_pages, other_pages, rounds_a_round })
}

impl EvictionBench<'_, '_, '_> {
    /// Most pages of its own that the other thread walks through.
    fn most_pages(&self) -> usize {
        (self.picker.levels.first.entries + self.picker.levels.last().entries) as usize
    }

    /// Second-level misses an access of a circle through these pages.
    fn misses_an_access(&mut self, circle: &[u64], counter: Option<&PmuEvent>) -> Result<f64, Halt> {
        if let Some(event) = counter {
            self.bench.check()?;
            let count = self.bench.count(event, circle, ROUNDS)?;
            return Ok(count as f64 / (circle.len() as f64 * f64::from(ROUNDS)));
        }
        // The first of the circle once more: they come after all others, as in every round.
        let timed = &circle[..TIMED.min(circle.len())];
        let extra = self.extra(&[Act::Load(circle)], timed, WALKS)? / timed.len() as f64;
        Ok((extra - self.l1_ticks) / self.walk_ticks)
    }
}

impl MissesPerAccess {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let (last, cut) = (values.len() - 1, (values.len() - 1) / 10);
        Self { median: median(&values).unwrap_or_default(), low: values[cut], high: values[last - cut] }
    }

    /// Whether there are more misses than there; `None` = cannot be told.
    fn exceed(&self, other: &Self) -> Option<bool> {
        if self.low - other.high > RISE {
            Some(true)
        } else if self.median - other.median < ALIKE && self.low <= other.high && other.median < FULL {
            Some(false)
        } else {
            None
        }
    }
}

impl SharingMeasurement {
    /// Whose the entries are, if this tells.
    pub fn says(&self) -> Option<EntryOwnership> {
        let more = [&self.same_pages, &self.other_pages].map(|misses| misses.exceed(&self.one_page));
        let fewer = self.one_page.exceed(&self.same_pages) == Some(true);
        // A thread on one page needs no room: that it is there at all takes some.
        if self.one_page.exceed(&self.alone)? {
            return (!fewer && !more.contains(&Some(true))).then_some(EntryOwnership::Partitioned);
        }
        match (more[0]?, more[1]?) {
            (true, true) => Some(EntryOwnership::Tagged),
            (false, true) => Some(EntryOwnership::Shared),
            (false, false) => (self.rounds_a_round >= KEPT_UP).then_some(EntryOwnership::Apart),
            (true, false) => None, // no TLB does that
        }
    }

    /// What was measured, in words.
    pub fn words(&self) -> String {
        let misses =
            |misses: &MissesPerAccess| format!("{:.2} ({:.2} to {:.2})", misses.median, misses.low, misses.high);
        format!(
            "misses an access to {} pages: {} alone, {} beside a thread on one page, {} on the same pages, {} on as \
             many others, where it goes round {:.1} times a round of ours",
            self.pages,
            misses(&self.alone),
            misses(&self.one_page),
            misses(&self.same_pages),
            misses(&self.other_pages),
            self.rounds_a_round
        )
    }
}
