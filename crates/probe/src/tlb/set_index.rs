//! The set-index function as a matrix: which flips of page-number bits lead back to the same set.
//!
//! Half of a crowd of one set stays, half is moved by a vector `v`: the two still crowd each other exactly if `v` does
//! not change the set. Going through the bits, each is either independent of those before (a new index bit), or has
//! the same effect as one sum of them, which is looked for among all sums, many in one experiment.

use crate::bench::{ChainBench, Halt};
use crate::gf2;
use crate::tlb::busy_core::{clear_at_times, least, rest};
use crate::tlb::core_use::CoreUse;
use crate::tlb::level_meter::{LevelMeter, MissRounds};
use crate::tlb::near_vectors::random_vectors;
use lookaside_stats::median;

/// More index bits than any known array has.
const MOST_BITS: usize = 10;
/// Pages in one experiment: few enough for a first-level data cache.
const PAGES: usize = 192;

/// The same where a neighbour may take entries of any of their sets.
const FEW_PAGES: usize = 64;
/// The same where walks are counted: a look tells of few pages as well as of many, and is clear the sooner.
const FEW_PAGES_OF_WALKS: usize = 24;

/// Both halves are clearly not in one set where they have less than this share of the misses that they would have.
const CLEAR: f64 = 0.4;

/// Looks that have to say that both halves are in one set; and where a neighbour may say so too, at one vector.
const YES: u32 = 3;
/// See [`YES`].
const SURELY: u32 = 24;
/// Of these, looks that say neither.
const DOUBTS: u32 = 4;
/// Pauses between them do not grow beyond that of so many looks: some thirty bits have to be asked about.
const SHORT: u32 = 2;

/// Times that all sums are gone through before a bit is taken for independent of the others, which is rare.
const SCANS: usize = 2;

/// How much of the level is free beside what floods the level above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelHeadroom {
    /// Nearly all.
    Ample,
    /// Half of each set, hardly more.
    Scarce,
}

/// Halves of a crowd of one set.
#[derive(Clone, Debug)]
pub struct Halves {
    kernel: Vec<u64>,
    ways: u32,
    room: LevelHeadroom,
    /// Pages that stay and that are moved, and the misses from which on both are in one set.
    stay: usize,
    moved: usize,
    threshold: f64,
}

impl Halves {
    /// From vectors that do not change the set, and the ways of a set (or somewhat fewer).
    pub fn new(
        bench: &mut ChainBench<'_>,
        level: &LevelMeter,
        kernel: Vec<u64>,
        ways: u32,
        room: LevelHeadroom,
    ) -> Result<Self, Halt> {
        let mut halves = Self { kernel, ways, room, stay: 0, moved: 0, threshold: 0.0 };
        halves.measure(bench, level)?;
        Ok(halves)
    }

    /// Vectors that do not change the set.
    pub fn kernel(&self) -> &[u64] {
        &self.kernel
    }

    /// Whether the vectors found so far make up this one.
    fn knows(&self, vector: u64) -> bool {
        gf2::reduce(&self.kernel).iter().fold(vector, |rest, row| {
            if rest & row & row.wrapping_neg() != 0 {
                rest ^ row
            } else {
                rest
            }
        }) == 0
    }

    /// Another vector that does not change the set was found.
    fn add(&mut self, bench: &mut ChainBench<'_>, level: &LevelMeter, vector: u64) -> Result<(), Halt> {
        self.kernel = gf2::reduce(&[&self.kernel[..], &[vector]].concat());
        self.measure(bench, level)
    }

    /// What it looks like when both halves are in one set: depends on the policy.
    fn measure(&mut self, bench: &mut ChainBench<'_>, level: &LevelMeter) -> Result<(), Halt> {
        // Either fits in a set with room for a foreign page or two, both together do not.
        let known = 1usize << self.kernel.len().min(16);
        let half = self.ways as usize / 2 + 1;
        let most = match level.core {
            CoreUse::Own => (3 * self.ways as usize).div_ceil(4).max(half),
            CoreUse::Shared => half,
        };
        // Where fillers may lie in the set that pages are moved to, they need room there too.
        let movable = if self.room == LevelHeadroom::Scarce { (self.ways as usize / 2).max(1) } else { most };
        let moved = movable.min(known / 2).max(1);
        let stay = most.min(known - moved);
        if (stay, moved) != (self.stay, self.moved) {
            (self.stay, self.moved) = (stay, moved);
            let usual = match level.core {
                CoreUse::Own => {
                    let mut misses = Vec::new();
                    for _ in 0..5 {
                        misses.push(self.misses(bench, level, &[0])?);
                    }
                    misses.sort_by(f64::total_cmp);
                    misses[1]
                }
                CoreUse::Shared => least(bench, f64::NEG_INFINITY, |bench| self.misses(bench, level, &[0]))?,
            };
            // At least so many pages are always out, at most all. A walk may cost less here than where its cost was
            // measured.
            let over = ((stay + moved) as f64 - f64::from(self.ways)).max(1.0);
            self.threshold = (0.5 * usual).clamp(over / 3.0, (stay + moved) as f64 / 2.0).max(0.5);
        }
        Ok(())
    }

    /// Vectors that one experiment can take: its pages have to fit the level, whatever sets they come into.
    pub fn vectors_at_once(&self, bench: &mut ChainBench<'_>, level: &LevelMeter) -> usize {
        let room = if level.above.is_some() { (self.ways as usize) << level.lanes.len() >> 2 } else { PAGES };
        let most = match (level.core, level.counts_walks(bench)) {
            (CoreUse::Own, _) => PAGES,
            (CoreUse::Shared, false) => FEW_PAGES,
            (CoreUse::Shared, true) => FEW_PAGES_OF_WALKS,
        };
        (room.min(most) / self.moved).saturating_sub(1).max(1)
    }

    fn misses(&self, bench: &mut ChainBench<'_>, level: &LevelMeter, vectors: &[u64]) -> Result<f64, Halt> {
        self.look(bench, level, vectors)?.misses(bench)
    }

    fn look(&self, bench: &mut ChainBench<'_>, level: &LevelMeter, vectors: &[u64]) -> Result<MissRounds, Halt> {
        let start = bench.page();
        let mut stay = random_vectors(bench, &self.kernel, self.stay + self.moved);
        let moved = stay.split_off(self.stay.min(stay.len()));
        let mut pages: Vec<u64> = stay.iter().map(|v| v ^ start).collect();
        for vector in vectors {
            pages.extend(moved.iter().map(|v| v ^ vector ^ start));
        }
        level.look(bench, &pages)
    }

    /// Whether it is clear that all of these vectors change the set: what they miss is next to nothing.
    pub fn surely_apart(&self, bench: &mut ChainBench<'_>, level: &LevelMeter, vectors: &[u64]) -> Result<bool, Halt> {
        if level.core == CoreUse::Shared {
            let clear = CLEAR * self.threshold;
            return clear_at_times(bench, clear, |bench| self.misses(bench, level, vectors));
        }
        let mut seen = [0.0; 5];
        for misses in &mut seen {
            let look = self.look(bench, level, vectors)?;
            *misses = look.misses(bench)?;
            if *misses > CLEAR * self.threshold {
                look.settle(bench)?;
                *misses = misses.min(look.misses(bench)?);
            }
        }
        Ok(median(seen).is_some_and(|misses| misses < 0.5 * self.threshold))
    }

    /// Whether one of these vectors does not change the set. No two of them may lead to one set, but for that.
    ///
    /// Pages that do meet always miss; others do where something disturbs or a foreign page comes in by chance. So
    /// one clear "no" is believed, and a "yes" has to be repeated.
    pub fn meets(&self, bench: &mut ChainBench<'_>, level: &LevelMeter, vectors: &[u64]) -> Result<bool, Halt> {
        if level.core == CoreUse::Shared {
            return self.meets_always(bench, level, vectors);
        }
        let (mut yes, mut no) = (0, 0);
        loop {
            let misses = self.misses(bench, level, vectors)?;
            if misses > self.threshold {
                yes += 1;
            } else {
                let clear = misses.abs() < CLEAR * self.threshold;
                no += if clear { 2 } else { 1 };
            }
            if yes == YES || no >= 2 {
                return Ok(no < 2);
            }
        }
    }

    /// The same where a neighbour makes pages miss that do not meet: one clear "no" is believed, and a "yes" about one
    /// vector has to stand for long, since who took one for another cannot go back.
    fn meets_always(&self, bench: &mut ChainBench<'_>, level: &LevelMeter, vectors: &[u64]) -> Result<bool, Halt> {
        let enough = if vectors.len() == 1 { SURELY } else { YES };
        let (mut yes, mut doubts) = (0, 0);
        while yes < enough {
            let misses = self.misses(bench, level, vectors)?;
            if misses.abs() < CLEAR * self.threshold || doubts == DOUBTS {
                return Ok(false);
            }
            if misses > self.threshold {
                yes += 1;
                rest(bench, yes.min(SHORT))?;
            } else {
                doubts += 1;
            }
        }
        Ok(true)
    }
}

/// The masks of the index, in reduced form; or why there are none. `window` has the bits out of which the kernel came:
/// what they do is known. The kernel grows by what is found, and what the level knows of its sets.
pub fn masks(
    bench: &mut ChainBench<'_>,
    level: &mut LevelMeter,
    halves: &mut Halves,
    window: u64,
) -> Result<Result<Vec<u64>, String>, Halt> {
    let bits = bench.bits();
    let mut independent = level.lanes.clone();
    more_of_one_set(bench, level, halves)?;
    let mut known = halves.kernel().iter().fold(window, |known, vector| known | vector);
    for flip in (0..bits).map(|bit| 1u64 << bit).filter(|flip| window & flip == 0) {
        match same_effect(bench, level, halves, &independent, flip)? {
            Some(sum) => halves.add(bench, level, flip ^ sum)?,
            None if independent.len() >= MOST_BITS => {
                return Ok(Err(format!("more than {} sets, or no function of this kind", 1 << MOST_BITS)));
            }
            None => independent.push(flip),
        }
        known |= flip;
        level.know_within(known, halves.kernel(), bits);
    }
    // The masks are what every vector of the kernel maps to nothing.
    Ok(Ok(gf2::reduce(&gf2::null_space(halves.kernel(), bits))))
}

/// Adds bits that have no effect to the kernel until both halves can be large, the bits beside its own first.
fn more_of_one_set(bench: &mut ChainBench<'_>, level: &LevelMeter, halves: &mut Halves) -> Result<(), Halt> {
    let top = halves.kernel().iter().fold(0, |all, v| all | v).checked_ilog2().unwrap_or(0);
    for bit in (top + 1..bench.bits()).chain((0..=top).rev()) {
        if 1u64 << halves.kernel().len() >= 2 * u64::from(halves.ways) {
            break;
        }
        let flip = 1u64 << bit;
        let is_new = gf2::reduce(&[halves.kernel(), &[flip]].concat()).len() > halves.kernel().len();
        if is_new && halves.meets(bench, level, &[flip])? {
            halves.add(bench, level, flip)?;
        }
    }
    Ok(())
}

/// The sum of `independent` flips that moves a page to where `flip` does.
fn same_effect(
    bench: &mut ChainBench<'_>,
    level: &LevelMeter,
    halves: &Halves,
    independent: &[u64],
    flip: u64,
) -> Result<Option<u64>, Halt> {
    let mut sums = gf2::span(independent);
    sums.sort_by_key(|sum| sum.count_ones());
    // What is known already need not be seen, and could not: both halves would be the same pages.
    if let Some(known) = sums.iter().find(|&&sum| halves.knows(flip ^ sum)) {
        return Ok(Some(*known));
    }
    // The commonest by far alone: no effect.
    let (none, others) = sums.split_at(1);
    for _ in 0..SCANS {
        for group in std::iter::once(none).chain(others.chunks(halves.vectors_at_once(bench, level))) {
            let moved: Vec<u64> = group.iter().map(|sum| sum ^ flip).collect();
            if let Some(found) = search(bench, level, halves, &moved)? {
                return Ok(Some(found ^ flip));
            }
        }
    }
    Ok(None)
}

/// The vector that does not change the set.
pub fn search(
    bench: &mut ChainBench<'_>,
    level: &LevelMeter,
    halves: &Halves,
    among: &[u64],
) -> Result<Option<u64>, Halt> {
    if among.is_empty() || !halves.meets(bench, level, among)? {
        return Ok(None);
    }
    if let [one] = among {
        return Ok(Some(*one));
    }
    let (left, right) = among.split_at(among.len() / 2);
    match search(bench, level, halves, left)? {
        None => search(bench, level, halves, right),
        found => Ok(found),
    }
}
