//! Does a thread on another CPU use the entries that a thread here has made? (PT-Baker, §4.4.5.1, Figure 4.6.)
//!
//! A circle through an array's pages is walked here: alone; beside a thread that stays on one page; beside one that walks
//! through the *same* pages; beside one that walks through as many pages of its own. What is compared are second-level misses an
//! access, by a proven counter, else by the time that translations take, so that a core that two threads share, or
//! data caches, make no misses. The paper's two runs, alone and with the same pages, do not tell entries that threads compete
//! for from entries that are shared out, nor shared ones from none that the other thread could reach: the other two do.

use lookaside_stats::median;
use serde::Serialize;

use super::lab::Lab;
use super::twice;
use crate::bench::{Bench, Halt};
use crate::finding::Finding;
use crate::metal::{Act, Walk};
use crate::pick::Levels;
use crate::pmu::Event;

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

/// Whose the entries are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entries {
    /// Both threads use the entries of either: a walk through the same pages costs nothing, one through others does.
    Shared,
    /// Each thread uses entries of its own, and they compete for room: the same pages cost as others do.
    Tagged,
    /// Each thread has its part of the room: there is less of it as soon as the other thread runs, whatever that does.
    Partitioned,
    /// The other thread has no effect on entries here: it has a TLB of its own.
    Apart,
}

/// What was found about the thread on another CPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sharing {
    /// Whose the entries are.
    pub entries: Entries,
    /// The event that was counted; `None` = misses were told by timing.
    pub counter: Option<&'static str>,
    /// What was measured, an array each.
    pub looks: Vec<Look>,
}

/// Second-level misses an access of a walk through an array.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Look {
    /// Pages of the array.
    pub pages: usize,
    /// With nothing on the other CPU.
    pub alone: Misses,
    /// Beside a thread that stays on one page.
    pub one_page: Misses,
    /// Beside a thread that walks through the same pages.
    pub same_pages: Misses,
    /// Beside a thread that walks through as many others.
    pub other_pages: Misses,
    /// Rounds that the other thread made through its array for each of ours, the slower of the two kinds.
    pub rounds_a_round: f64,
}

/// Misses an access, over repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Misses {
    /// The median.
    pub median: f64,
    /// The second of the repetitions in order, and the last but one: 98.8 % of such intervals hold the median.
    pub low: f64,
    /// See `low`.
    pub high: f64,
}

/// Looks whether a thread on `cpu` uses the entries of this one, on an array of as many pages as both levels have entries (the
/// paper's) and on one that fits by itself; what two looks agree on is confirmed. `counter` is an event that is proven to
/// count second-level misses.
///
/// # Errors
/// It is to end.
pub fn sharing(
    bench: &mut Bench<'_>,
    levels: &Levels,
    cpu: usize,
    counter: Option<&Event>,
) -> Result<Finding<Sharing>, Halt> {
    let mut lab = match Lab::new(bench, levels) {
        Ok(Ok(lab)) => lab,
        Ok(Err(reason)) => return Ok(Finding::not_determined(reason)),
        Err(Halt::Metal(error)) => return Ok(Finding::not_determined(error.to_string())),
        Err(halt) => return Err(halt),
    };
    by(&mut lab, cpu, counter)
}

/// The same in a lab.
pub(super) fn by(lab: &mut Lab<'_, '_, '_>, cpu: usize, counter: Option<&Event>) -> Result<Finding<Sharing>, Halt> {
    let levels = lab.picker.levels;
    let paper = (levels.first.entries + levels.last().entries) as usize;
    let fits = levels.last().entries as usize * EIGHTHS / 8;
    let most = lab.bench.max_pages();
    if paper + TIMED > most {
        let reason = format!("needs {} pages in memory, {most} are allowed (--memory)", paper + TIMED);
        return Ok(Finding::not_determined(reason));
    }
    lab.bench.note(&format!("whether a thread on CPU {cpu} shares entries"));
    let mut looks: Vec<Look> = Vec::new();
    let found = twice(
        || {
            let pages = if looks.len().is_multiple_of(2) { fits } else { paper };
            let look = look(lab, cpu, pages, counter)?;
            looks.push(look);
            Ok(look.says())
        },
        |a, b| a == b,
    );
    // However that ended, the thread is to go.
    let gone = lab.bench.metal().neighbour(None);
    let found = match found.and_then(|found| Ok(gone.map(|()| found)?)) {
        Err(Halt::Metal(error)) => return Ok(Finding::not_determined(error.to_string())),
        other => other?,
    };
    let seen: Vec<String> = looks.iter().map(Look::words).collect();
    // What one look says and another denies is nothing, though two may agree.
    let says: Vec<Entries> = looks.iter().filter_map(Look::says).collect();
    Ok(match found {
        Ok((entries, _)) if says.iter().all(|other| *other == entries) => {
            Finding::confirmed(Sharing { entries, counter: counter.map(|event| event.name), looks }, seen)
        }
        _ if looks.iter().any(|look| look.rounds_a_round < KEPT_UP) => {
            Finding::not_determined(format!("a thread on CPU {cpu} hardly runs")).with_evidence(seen)
        }
        _ => Finding::not_determined("no two looks see the same").with_evidence(seen),
    })
}

fn look(lab: &mut Lab<'_, '_, '_>, cpu: usize, pages: usize, counter: Option<&Event>) -> Result<Look, Halt> {
    let mut misses = [(); 4].map(|()| Vec::with_capacity(REPETITIONS));
    let mut made = [0; 4];
    let mut done = 0;
    for _ in 0..REPETITIONS {
        let block = (pages as u64).next_power_of_two();
        let first = lab.bench.page() & !(block - 1);
        let mut circle: Vec<u64> = (first..first + pages as u64).collect();
        // An even order would be translated ahead of.
        lab.bench.rng.shuffle(&mut circle);
        // Room for pages of its own is taken once.
        let most_pages = lab.most_pages();
        let walk = |pages, first| Some(Walk { cpu, pages, first, most_pages });
        let beside = [None, walk(1, None), walk(pages, Some(first)), walk(pages, None)];
        for ((walk, misses), made) in beside.into_iter().zip(&mut misses).zip(&mut made) {
            lab.bench.metal().neighbour(walk)?;
            let before = lab.bench.metal().neighbour_loads();
            misses.push(lab.misses_an_access(&circle, counter)?);
            *made += lab.bench.metal().neighbour_loads().saturating_sub(before);
        }
        done += match counter {
            Some(_) => u64::from(ROUNDS),
            None => 2 * (WALKS as u64 + 1), // each with its control
        };
    }
    let [alone, one_page, same_pages, other_pages] = misses.map(Misses::of);
    let rounds_a_round = made[2].min(made[3]) as f64 / (done * pages as u64) as f64;
    Ok(Look { pages, alone, one_page, same_pages, other_pages, rounds_a_round })
}

impl Lab<'_, '_, '_> {
    /// Most pages of its own that the other thread walks through.
    fn most_pages(&self) -> usize {
        (self.picker.levels.first.entries + self.picker.levels.last().entries) as usize
    }

    /// Second-level misses an access of a circle through these pages.
    fn misses_an_access(&mut self, circle: &[u64], counter: Option<&Event>) -> Result<f64, Halt> {
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

impl Misses {
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

impl Look {
    /// Whose the entries are, if this tells.
    pub fn says(&self) -> Option<Entries> {
        let more = [&self.same_pages, &self.other_pages].map(|misses| misses.exceed(&self.one_page));
        let fewer = self.one_page.exceed(&self.same_pages) == Some(true);
        // A thread on one page needs no room: that it is there at all takes some.
        if self.one_page.exceed(&self.alone)? {
            return (!fewer && !more.contains(&Some(true))).then_some(Entries::Partitioned);
        }
        match (more[0]?, more[1]?) {
            (true, true) => Some(Entries::Tagged),
            (false, true) => Some(Entries::Shared),
            (false, false) => (self.rounds_a_round >= KEPT_UP).then_some(Entries::Apart),
            (true, false) => None, // no TLB does that
        }
    }

    /// What was measured, in words.
    pub fn words(&self) -> String {
        let misses = |misses: &Misses| format!("{:.2} ({:.2} to {:.2})", misses.median, misses.low, misses.high);
        format!(
            "misses an access to {} pages: {} alone, {} beside a thread on one page, {} on the same pages, {} on as many others, \
             where it goes round {:.1} times a round of ours",
            self.pages,
            misses(&self.alone),
            misses(&self.one_page),
            misses(&self.same_pages),
            misses(&self.other_pages),
            self.rounds_a_round
        )
    }
}
