//! Searches for the geometry of the two TLB levels (entries, ways, sets, set index), for one page size.

use crate::bench::{ChainBench, Halt};
use crate::finding::Finding;
use crate::gf2;
use crate::tlb::busy_core::least;
use crate::tlb::confirm::contradiction;
use crate::tlb::core_use::CoreUse;
use crate::tlb::first_level_flood::FirstLevelFlood;
use crate::tlb::geometry::FoundLevel;
use crate::tlb::geometry::Geometry;
use crate::tlb::level_meter::LevelMeter;
use crate::tlb::near_vectors::random_vectors;
use crate::tlb::one_set::{lowest_one_set, one_set};
use crate::tlb::set_capacity::{overloaded, ways};
use crate::tlb::set_index::{masks, Halves, LevelHeadroom};

/// log2 of the pages of the largest crowd: 32 Ki pages overload 8192 entries four times over.
const MOST_LOG2: usize = 15;
/// log2 of the crowds tried in the second level. The first fits a first-level data cache; the last overload 8192
/// entries.
const FAR_LOG2: [usize; 4] = [8, 10, 12, 14];
/// From which of these on they are tried in each attempt: small ones disturb least, large ones tell more of the sets,
/// out of which fillers then keep. `None`: as if somebody else used the core too, by walks where these are counted.
const FAR_FROM: [Option<usize>; ATTEMPTS] = [Some(0), None, Some(1), None, Some(0), Some(2), None];
/// log2 of the largest crowd of one set: 512 pages crowd 128 ways, and 256 nearly so.
const ONE_SET_LOG2: usize = 9;
/// Half of the pages that crowd their sets do so too where this share misses: more than random replacement misses in
/// sets that are just full, before it has settled.
const SURELY: f64 = 0.3;
/// Accesses miss where they take longer than hits by this share of a load's hit.
pub(super) const MISSES: f64 = 0.4;
/// Nearly all miss where twice the pages take no longer than this times as long.
const FLAT: f64 = 1.25;
/// Nearly all miss, where a neighbour makes full sets miss, if up to four times the pages in a set have at most 1 /
/// this times the misses.
const FULL: f64 = 0.75;
/// Windows of page-number bits tried for crowds that do not fit the first-level data cache.
const WINDOWS: usize = 4;
/// A walk costs more than this many times what a miss of the first level does.
pub(super) const WALK: f64 = 1.0;

/// Pages for each way of the first level that are walked through between two uses of a page: for policies that forget
/// in order, and for others, under which some stay.
pub(super) const FLOOD: (f64, f64) = (2.0, 3.0);
/// Where the second level has less than so many times the entries of the first, fillers take up much of it.
const SMALL: usize = 6;

/// A second level with less than so many times the entries of the first is not confirmed: of 96 made-up machines with 4
/// times or more, one with 7.75 times was taken for another. Cores have 4 to 43 times as many, most 16 or more.
const TIMES_THE_FIRST: u32 = 8;

/// Attempts at one level.
const ATTEMPTS: usize = 7;

/// Ticks of a step that hits everything: a chain of two pages.
pub(super) fn hit_ticks(bench: &mut ChainBench<'_>) -> Result<f64, Halt> {
    let start = bench.page();
    Ok(bench.pages(&[start, start ^ 1])? / 2.0)
}

/// The first level.
pub fn first_level(bench: &mut ChainBench<'_>) -> Result<FoundLevel, Halt> {
    attempts(|_| {
        let hit_ticks = hit_ticks(bench)?;
        first_once(bench, hit_ticks, MISSES * hit_ticks)
    })
}

/// The first level that stores use, by updates: where loads have another one, the smaller of both. A miss is held
/// against what a load takes: an update takes longer, hit or not.
pub fn first_level_of_stores(bench: &mut ChainBench<'_>) -> Result<FoundLevel, Halt> {
    let clear = MISSES * hit_ticks(bench)?;
    bench.updating(|bench| {
        attempts(|_| {
            let hit_ticks = hit_ticks(bench)?;
            first_once(bench, hit_ticks, clear)
        })
    })
}

/// `clear` is how many ticks longer than a hit an access takes at least that misses.
fn first_once(bench: &mut ChainBench<'_>, hit_ticks: f64, clear: f64) -> Result<FoundLevel, Halt> {
    // Where a disturbance has a hit take no time at all, no more than a hit is no miss all the same.
    let clear = clear.max(0.0);
    let mut steps: Vec<f64> = vec![0.0]; // ticks beyond a hit, by log2 of neighbouring pages
    let mut plateau = None;
    for log2 in 1..=MOST_LOG2.min(bench.max_pages().max(1).ilog2() as usize).min(bench.bits() as usize) {
        let basis: Vec<u64> = (0..log2).map(|bit| 1 << bit).collect();
        steps.push(step(bench, &basis)? - hit_ticks);
        plateau = flat_end(&steps, clear);
        if plateau.is_some() {
            break;
        }
    }
    // In the largest array that can be seen there is no more room for a second step.
    let most = steps.last().copied().filter(|&last| last > clear);
    let Some(miss_ticks) = plateau.or(most) else {
        let pages = 1u64 << (steps.len() - 1);
        return Ok(FoundLevel::nothing(format!(
            "no access of {pages} neighbouring pages takes longer than one of two"
        )));
    };
    let log2 = steps.iter().position(|&ticks| ticks > SURELY * miss_ticks).unwrap_or(steps.len() - 1);
    let level = LevelMeter { hit_ticks, miss_ticks, ..LevelMeter::default() };
    let crowd: Vec<u64> = (0..log2).map(|bit| 1 << bit).collect();
    found(bench, level, &crowd)
}

/// What nearly all accesses take beyond a hit, if the last two of these steps show it: both miss, and alike. One that
/// missed where twice the pages do not was a disturbance.
fn flat_end(steps: &[f64], clear: f64) -> Option<f64> {
    let &[before, now] = steps.last_chunk()?;
    (before > clear && now > clear && now < FLAT * before).then_some(now)
}

/// The second level, behind a first one that is known.
pub fn second_level(
    bench: &mut ChainBench<'_>,
    first: &Geometry,
    first_level: &LevelMeter,
) -> Result<FoundLevel, Halt> {
    let mut second = attempts(|attempt| second_once(bench, first, first_level, attempt))?;
    if let Finding::Confirmed { value, evidence } = &mut second.geometry {
        if value.entries < TIMES_THE_FIRST * first.entries {
            let reason = format!(
                "{} sets of {} ways seen, less than {TIMES_THE_FIRST} times the first level's entries: its pages disturb \
                 so small a level too much for a sure answer",
                value.sets, value.ways
            );
            let evidence = std::mem::take(evidence);
            second.geometry = Finding::NotDetermined { reason, evidence, asked: true };
        }
    }
    Ok(second)
}

fn second_once(
    bench: &mut ChainBench<'_>,
    first: &Geometry,
    first_level: &LevelMeter,
    attempt: usize,
) -> Result<FoundLevel, Halt> {
    let core = if FAR_FROM[attempt].is_some() { CoreUse::Own } else { CoreUse::Shared };
    let in_order = forgets_in_order(bench, first_level, first)?;
    // With entries of a neighbour in it, who knows in which order it forgets.
    let flood = if in_order && core == CoreUse::Own { FLOOD.0 } else { FLOOD.1 };
    let mut level = behind(bench, first, first_level, flood, core)?;
    if level.counts_walks(bench) {
        let Some(kernel) = lowest_one_set(bench, &level)? else {
            return Ok(FoundLevel::nothing(
                "no run of page-number bits gives pages that evict each other from this level".to_string(),
            ));
        };
        let start = bench.page();
        let pages: Vec<u64> = gf2::span(&kernel).into_iter().map(|v| v ^ start).collect();
        level.miss_ticks = level.ticks_of_crowd(bench, &pages)?.max(level.above_ticks);
        let window = kernel.iter().fold(0, |all, bit| all | bit);
        level.know_within(window, &kernel, bench.bits());
        let geometry = of_one_set(bench, level.clone(), kernel, window, "counts of walks")?;
        return Ok(known(level, geometry));
    }
    let crowd = match FAR_FROM[attempt] {
        Some(from) => second_crowd(bench, &level, from)?,
        None => full_crowd(bench, &level)?,
    };
    let Some((crowd, ticks)) = crowd else {
        return Ok(FoundLevel::nothing("no pages were found that evict each other from it".to_string()));
    };
    level.miss_ticks = ticks;
    found(bench, level, &crowd)
}

/// A level behind the first, of whose sets and misses nothing is known yet.
pub(super) fn behind(
    bench: &mut ChainBench<'_>,
    first: &Geometry,
    first_level: &LevelMeter,
    flood: f64,
    core: CoreUse,
) -> Result<LevelMeter, Halt> {
    let mut above = FirstLevelFlood::new(first.masks.clone(), first.ways, flood, bench.bits());
    let least_crowded = least_crowded_window(bench, above.least_crowded_log2())?;
    above.least_crowded(least_crowded);
    let above_ticks = first_level.miss_ticks;
    Ok(LevelMeter { above: Some(above), above_ticks, core, lanes: Vec::new(), ..first_level.clone() })
}

/// The window of so many bits whose pages take least.
fn least_crowded_window(bench: &mut ChainBench<'_>, log2: usize) -> Result<Vec<u64>, Halt> {
    let mut least = (f64::MAX, Vec::new());
    for low in 0..WINDOWS {
        let basis: Vec<u64> = (low..low + log2).map(|bit| 1 << bit).collect();
        let ticks = step(bench, &basis)?;
        if ticks < least.0 {
            least = (ticks, basis);
        }
    }
    Ok(least.1)
}

/// Whether a set forgets the page used longest ago, or filled longest ago: then a few pages too many in a circle put
/// out all, where others keep some.
fn forgets_in_order(bench: &mut ChainBench<'_>, level: &LevelMeter, geometry: &Geometry) -> Result<bool, Halt> {
    let kernel = gf2::null_space(&geometry.masks, bench.bits());
    let start = bench.page();
    let pages: Vec<u64> =
        random_vectors(bench, &kernel, geometry.ways as usize + 2).into_iter().map(|v| v ^ start).collect();
    let ticks = bench.pages(&pages)? / pages.len() as f64;
    Ok(ticks > level.hit_ticks + 0.95 * level.miss_ticks)
}

/// A space whose pages crowd their sets of the second level, and the ticks that a miss there adds. The nearest window
/// of page-number bits, of the smallest spaces that do: few and near pages disturb caches and page-table caches least.
fn second_crowd(bench: &mut ChainBench<'_>, level: &LevelMeter, from: usize) -> Result<Option<(Vec<u64>, f64)>, Halt> {
    let bits = bench.bits() as usize;
    for log2 in FAR_LOG2.into_iter().skip(from) {
        let mut before: Option<(Vec<u64>, f64)> = None;
        // Larger ones disturb so much that only the nearest are worth it.
        let windows = if log2 == FAR_LOG2[0] { bits } else { WINDOWS };
        for low in 0..windows.min(bits.saturating_sub(log2)) {
            let basis: Vec<u64> = (low..low + log2).map(|bit| 1 << bit).collect();
            if 1 << log2 > bench.max_pages() {
                return Ok(None);
            }
            let start = bench.page();
            let pages: Vec<u64> = gf2::span(&basis).into_iter().map(|v| v ^ start).collect();
            let ticks = level.misses_of_crowd(bench, &pages)? * level.miss_ticks / pages.len() as f64;
            let crowded = ticks > WALK * level.above_ticks;
            // Two windows running: one may be a disturbance.
            match before.take() {
                Some(found) if crowded => return Ok(Some((basis, ticks.min(found.1)))),
                _ if crowded => before = Some((basis, ticks)),
                _ => {}
            }
        }
    }
    Ok(None)
}

/// The same where a neighbour makes full sets miss: the nearest window that has nearly the misses of the next two, in
/// which up to four times the pages meet in a set.
fn full_crowd(bench: &mut ChainBench<'_>, level: &LevelMeter) -> Result<Option<(Vec<u64>, f64)>, Halt> {
    let log2 = FAR_LOG2[0];
    let mut seen: Vec<f64> = Vec::new();
    for low in 0..(bench.bits() as usize).saturating_sub(log2) {
        seen.push(least(bench, f64::NEG_INFINITY, |bench| {
            let start = bench.page();
            let pages: Vec<u64> = (0..1 << log2).map(|v| (v << low) ^ start).collect();
            Ok(level.misses_of_crowd(bench, &pages)? * level.miss_ticks / pages.len() as f64)
        })?);
        if let Some(&[ticks, next, last]) = seen.last_chunk() {
            if ticks > WALK * level.above_ticks && ticks >= FULL * next.max(last) {
                return Ok(Some(((low - 2..low - 2 + log2).map(|bit| 1 << bit).collect(), ticks)));
            }
        }
    }
    Ok(None)
}

/// Ticks a step through the pages of a space.
fn step(bench: &mut ChainBench<'_>, basis: &[u64]) -> Result<f64, Halt> {
    let start = bench.page();
    let pages: Vec<u64> = gf2::span(basis).into_iter().map(|v| v ^ start).collect();
    Ok(bench.pages(&pages)? / pages.len() as f64)
}

/// The first confirmed level of a few attempts: a neighbour may have disturbed one.
fn attempts(mut attempt: impl FnMut(usize) -> Result<FoundLevel, Halt>) -> Result<FoundLevel, Halt> {
    let mut failed = Vec::new();
    for number in 1..ATTEMPTS {
        let mut found = attempt(number - 1)?;
        match &mut found.geometry {
            Finding::Confirmed { evidence, .. } => {
                evidence.append(&mut failed);
                return Ok(found);
            }
            Finding::NotDetermined { reason, .. } => failed.push(std::mem::take(reason)),
        }
    }
    let mut last = attempt(ATTEMPTS - 1)?;
    let (Finding::Confirmed { evidence, .. } | Finding::NotDetermined { evidence, .. }) = &mut last.geometry;
    evidence.append(&mut failed);
    Ok(last)
}

/// What a crowd leads to.
fn found(bench: &mut ChainBench<'_>, level: LevelMeter, crowd: &[u64]) -> Result<FoundLevel, Halt> {
    let geometry = geometry(bench, &level, crowd)?;
    Ok(known(level, geometry))
}

pub(super) fn known(mut level: LevelMeter, geometry: Finding<Geometry>) -> FoundLevel {
    if let Some(geometry) = geometry.value() {
        level.know_masks(&geometry.masks);
    }
    FoundLevel { geometry, miss_ticks: level.miss_ticks, level: Some(level) }
}

/// From a crowd to a confirmed geometry.
fn geometry(bench: &mut ChainBench<'_>, level: &LevelMeter, crowd: &[u64]) -> Result<Finding<Geometry>, Halt> {
    let mut level = level.clone();
    let (kernel, window) = one_set(bench, &mut level, crowd)?;
    if kernel.len() > ONE_SET_LOG2 {
        return Ok(Finding::not_determined(format!(
            "no part of {} pages that crowd their sets crowds one",
            1u64 << crowd.len()
        )));
    }
    of_one_set(bench, level, kernel, window, &format!("{} crowded pages", 1u64 << crowd.len()))
}

/// From pages of one set, more than fit, to a confirmed geometry; `from`: where they come from.
fn of_one_set(
    bench: &mut ChainBench<'_>,
    mut level: LevelMeter,
    kernel: Vec<u64>,
    window: u64,
    from: &str,
) -> Result<Finding<Geometry>, Halt> {
    let Some(some) = ways(bench, &level, &kernel)? else {
        return Ok(Finding::not_determined(format!("{} pages that crowd their sets fit in one", 1u64 << kernel.len())));
    };
    let mut room = LevelHeadroom::Ample;
    // Where walks are counted nothing is known yet of how many sets there are.
    let by_walks = level.counts_walks(bench);
    if let Some(above) = level.above.as_mut().filter(|_| !by_walks) {
        if (some as usize) << level.lanes.len() < SMALL * above.entries() {
            above.sparing();
            room = LevelHeadroom::Scarce;
        }
    }
    let mut halves = Halves::new(bench, &level, kernel.clone(), some, room)?;
    let masks = match masks(bench, &mut level, &mut halves, window)? {
        Ok(masks) => masks,
        Err(reason) => return Ok(Finding::not_determined(reason)),
    };
    level.know_masks(&masks);
    let level = &level;
    // More pages of one set are known now.
    let more = 2 * u64::from(some) + 2;
    let Some(ways) = recount(bench, level, halves.kernel(), some, more)? else {
        return Ok(Finding::not_determined(format!("{more} pages of one set fit")));
    };
    if let Some(reason) = contradiction(bench, level, &masks, ways, room)? {
        return Ok(Finding::not_determined(format!("{ways} ways, masks {masks:x?}, but a second look says: {reason}")));
    }
    let sets = 1u32 << masks.len();
    let evidence = vec![format!(
        "from {from} to one set of {} pages; {} bits looked at; {} measurements",
        1u64 << kernel.len(),
        bench.bits(),
        bench.measurements()
    )];
    Ok(Finding::confirmed(Geometry { entries: sets * ways, ways, sets, masks }, evidence))
}

/// The number of ways again, from one that is nearly right.
fn recount(
    bench: &mut ChainBench<'_>,
    level: &LevelMeter,
    kernel: &[u64],
    near: u32,
    most: u64,
) -> Result<Option<u32>, Halt> {
    let mut ways = near;
    while ways > 1 && overloaded(bench, level, kernel, u64::from(ways))? {
        ways -= 1;
    }
    while u64::from(ways) < most {
        if overloaded(bench, level, kernel, u64::from(ways) + 1)? {
            return Ok(Some(ways));
        }
        ways += 1;
    }
    Ok(None)
}
