//! Which sets the system disturbs: entries that system calls, context switches and what comes by itself (interrupts,
//! the hypervisor) put out of each set. (Panchamukhi 2014, §6.0.6: "noisy sets".)
//!
//! All ways of some sets are filled, the act is done, and each set's pages are timed, last loaded first: in the order
//! in which they were loaded, one page too many would make an LRU set miss on all.

use std::collections::BTreeSet;

use crate::bench::Halt;
use crate::effects::eviction_bench::EvictionBench;
use crate::finding::Finding;
use crate::metal::single_shot::Act;
use crate::report::effects::LevelEvictions;
use crate::report::effects::SetEvictions;
use crate::tlb::geometry::Geometry;
use lookaside_stats::median;

/// Sets looked at together at most: few enough that the pages' table entries stay in the caches.
const SETS: usize = 32;
/// How often an act is done: with so many groups of fresh pages in each of the two looks, so many samples each. A set
/// that is just full misses now and then by itself, more with some pages than with others (Zen 4: one to two of
/// twelve).
struct ActEffort {
    groups: usize,
    samples: usize,
}
/// Where the act is short.
const SHORT: ActEffort = ActEffort { groups: 8, samples: 10 };
/// Where it is a wait.
const LONG: ActEffort = ActEffort { groups: 2, samples: 8 };
/// Ticks of what stands in for the act without it: like any act it lets the loads before it end first.
const SHORT_TICKS: u64 = 2000;
/// Seconds of a wait.
const WAIT_SECONDS: f64 = 0.002;
/// A set is disturbed where both looks see more evictions than in the median set by this many times their usual
/// deviation, and by at least this many an act: chance makes fewer than 1 of 10,000 sets seem so.
const CLEARLY: f64 = 2.5;
/// See [`CLEARLY`].
const LEAST: f64 = 0.3;
/// Where one look sees more than this many deviations, the other has to see at least one in this share of the sets.
const VERY: f64 = 4.0;
/// See [`VERY`].
const AGREE: f64 = 0.7;

/// Looks at each level that has sets.
pub(super) fn set_evictions(
    evictions: &mut EvictionBench<'_, '_, '_>,
    found: &mut Vec<LevelEvictions>,
) -> Result<(), Halt> {
    let levels = evictions.picker.levels;
    for (level, geometry) in [(1, Some(&levels.first)), (2, levels.second.as_ref())] {
        let Some(geometry) = geometry.filter(|geometry| geometry.sets > 1) else { continue };
        let unasked = Finding::not_asked;
        found.push(LevelEvictions {
            level,
            per_system_call: unasked(),
            per_context_switch: unasked(),
            per_second: unasked(),
        });
        let Some(here) = found.last_mut() else { continue };
        evictions.bench.note(&format!("sets of level {level} that the system disturbs"));
        here.per_system_call = two_passes(evictions, level, geometry, Act::SystemCall, &SHORT, 1.0)?;
        here.per_context_switch = two_passes(evictions, level, geometry, Act::SwitchProcess, &SHORT, 1.0)?;
        here.per_second = match evictions.bench.metal().ticks_per_second() {
            None => Finding::not_determined("how many ticks a second has is not known"),
            Some(rate) => {
                let wait = Act::Wait((rate * WAIT_SECONDS) as u64);
                two_passes(evictions, level, geometry, wait, &LONG, 1.0 / WAIT_SECONDS)?
            }
        };
    }
    Ok(())
}

/// Two looks with fresh pages; `scale` turns evictions an act into what is wanted.
fn two_passes(
    evictions: &mut EvictionBench<'_, '_, '_>,
    level: u32,
    geometry: &Geometry,
    act: Act<'_>,
    effort: &ActEffort,
    scale: f64,
) -> Result<Finding<SetEvictions>, Halt> {
    let looks = look(evictions, level, geometry, act, effort)
        .and_then(|a| Ok((a, look(evictions, level, geometry, act, effort)?)));
    match looks {
        Ok((a, b)) => Ok(agree(&a, &b, scale)),
        Err(Halt::Metal(error)) => Ok(Finding::not_determined(error.to_string())),
        Err(halt) => Err(halt),
    }
}

/// What two looks say together.
fn agree(a: &[f64], b: &[f64], scale: f64) -> Finding<SetEvictions> {
    let middles = [a, b].map(|look| median(look).unwrap_or_default());
    let pairs: Vec<(f64, f64)> = a.iter().zip(b).map(|(a, b)| (a - middles[0], b - middles[1])).collect();
    // A normal spread's median distance from 0 is 0.6745 of its deviation; a difference has that of two looks.
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| (a - b).abs()).collect();
    let deviation = median(&differences).unwrap_or_default() / 0.6745 / std::f64::consts::SQRT_2;
    let least = (CLEARLY * deviation).max(LEAST);
    let very = (VERY * deviation).max(2.0 * LEAST);
    let once = deviation.max(LEAST / 2.0);
    let either = pairs.iter().filter(|(a, b)| a.max(*b) > very).count();
    let both = pairs.iter().filter(|(a, b)| a.max(*b) > very && a.min(*b) > once).count();
    let disturbed = pairs.iter().filter(|(a, b)| a.min(*b) > least).count();
    let seen = vec![format!(
        "measurements deviate by {:.2}, their medians are {:.2} and {:.2}; {disturbed} of {} sets above that by {:.2} in \
         both; of {either} by {:.2} in either, {both} by {:.2} in both",
        deviation * scale,
        middles[0] * scale,
        middles[1] * scale,
        a.len(),
        least * scale,
        very * scale,
        once * scale
    )];
    if (both as f64) < AGREE * either as f64 {
        return Finding::not_determined("two measurements name different sets").with_evidence(seen);
    }
    let value = |(a, b): &(f64, f64)| if a.min(*b) > least { (a + b) / 2.0 * scale } else { 0.0 };
    let by_set = pairs.iter().map(value).collect();
    let median_set = (middles[0] + middles[1]) / 2.0 * scale;
    Finding::confirmed(SetEvictions { by_set, least: least * scale, median_set }, seen)
}

/// Evictions of each set by an act: the mean over some groups of pages.
fn look(
    evictions: &mut EvictionBench<'_, '_, '_>,
    level: u32,
    geometry: &Geometry,
    act: Act<'_>,
    effort: &ActEffort,
) -> Result<Vec<f64>, Halt> {
    let ways = geometry.ways as usize;
    let together = SETS.min(geometry.sets as usize / 2).max(1);
    let sets: Vec<u64> = (0..u64::from(geometry.sets)).collect();
    let mut mean_evictions = vec![0.0; sets.len()];
    for _ in 0..effort.groups {
        for group in sets.chunks(together) {
            evictions.picker.move_window();
            let by_set: Vec<Vec<u64>> =
                group.iter().map(|&set| evictions.picker.of_set(geometry, set, ways, &[])).collect();
            let pages = by_set.concat();
            let timed: Vec<u64> = by_set.iter().flat_map(|pages| pages.iter().rev().copied()).collect();
            let flood = match level {
                1 => Vec::new(),
                _ => evictions.picker.flooding_first_level(&group.iter().copied().collect::<BTreeSet<u64>>()),
            };
            // Loaded twice: what was in the sets before goes, whatever the policy.
            let load = [Act::Load(&pages), Act::Load(&pages)];
            let with = [&load[..], &[act, Act::Load(&flood)]].concat();
            let without = [&load[..], &[Act::Wait(SHORT_TICKS), Act::Load(&flood)]].concat();
            let acted = misses_by_set(evictions, level, &with, &timed, ways, effort.samples)?;
            let none = misses_by_set(evictions, level, &without, &timed, ways, effort.samples)?;
            for ((&set, acted), none) in group.iter().zip(acted).zip(none) {
                mean_evictions[set as usize] += (acted - none) / effort.groups as f64;
            }
        }
    }
    Ok(mean_evictions)
}

/// Misses of each set's pages.
fn misses_by_set(
    evictions: &mut EvictionBench<'_, '_, '_>,
    level: u32,
    before: &[Act<'_>],
    timed: &[u64],
    ways: usize,
    samples: usize,
) -> Result<Vec<f64>, Halt> {
    if level == 1 {
        let extra = evictions.extra_by(before, timed, ways, samples)?;
        return Ok(extra.into_iter().map(|ticks| ticks / evictions.l1_ticks).collect());
    }
    let walks = evictions.walks(before, timed, samples)?;
    Ok(walks.chunks(ways).map(|set| set.iter().sum()).collect())
}
