//! Do prefetch instructions fill the TLBs? (PT-Baker, §4.4.3.1.)

use crate::bench::Halt;
use crate::effects::eviction_bench::EvictionBench;
use crate::effects::repeat::{refused, until_answers_agree};
use crate::finding::Finding;
use crate::metal::single_shot::{Act, PrefetchHint};
use crate::report::effects::FillLevel;

/// Pages of one look, and samples of each.
pub(super) const PAGES: usize = 8;
/// See [`PAGES`].
pub(super) const SAMPLES: usize = 256;
/// Ticks until a prefetch is surely done: a few walks to memory.
const DONE_TICKS: u64 = 4000;
/// Shares of the pages from which on nearly all, and below which hardly any, did something.
pub(super) const NEARLY_ALL: f64 = 0.8;
/// See [`NEARLY_ALL`].
pub(super) const HARDLY_ANY: f64 = 0.2;
/// Pages without a frame that are prefetched, so many times.
const UNTOUCHED: usize = 64;
/// See [`UNTOUCHED`].
const TIMES: usize = 16;

/// What a prefetch leaves.
pub(super) fn prefetch_fill(
    evictions: &mut EvictionBench<'_, '_, '_>,
    hint: PrefetchHint,
) -> Result<Finding<FillLevel>, Halt> {
    let mut seen = Vec::new();
    let found = until_answers_agree(
        || fill_level(evictions, |pages| vec![Act::Prefetch(hint, pages), Act::Wait(DONE_TICKS)], &mut seen),
        |a: &FillLevel, b| a == b,
    );
    refused(found.map(|found| finding(found.map(|pair| pair.0), seen)))
}

pub(super) fn finding<T>(found: Result<T, Vec<T>>, seen: Vec<String>) -> Finding<T> {
    match found {
        Ok(value) => Finding::confirmed(value, seen),
        Err(_) => Finding::not_determined("no two measurements agree").with_evidence(seen),
    }
}

/// Where an act leaves the entries of pages that were in no TLB, if it does so with nearly all of them.
pub(super) fn fill_level(
    evictions: &mut EvictionBench<'_, '_, '_>,
    act: impl Fn(&[u64]) -> Vec<Act<'_>>,
    seen: &mut Vec<String>,
) -> Result<Option<FillLevel>, Halt> {
    let pages = evictions.pages(PAGES);
    let (out, flood) = evictions.evictors(&pages);
    let each = pages.len() as f64;
    let gone = [Act::Load(&pages), Act::Load(&out), Act::Load(&flood)];
    let acted = [&gone[..], &act(&pages)].concat();
    let behind = [&acted[..], &[Act::Load(&flood)]].concat();
    let (l1, walk) = (evictions.l1_ticks, evictions.walk_ticks);
    let without = evictions.extra(&gone, &pages, SAMPLES)? / each;
    let with = evictions.extra(&acted, &pages, SAMPLES)? / each;
    let behind = evictions.extra(&behind, &pages, SAMPLES)? / each;
    seen.push(format!(
        "ticks a load beyond a hit: {without:.1} evicted, {with:.1} with it, {behind:.1} with it and the first level \
         evicted again; a first-level miss takes {l1:.1}, a walk {walk:.1} more"
    ));
    // Of the pages, those that the second level has, and of these those that the first level has not.
    let evicted = (without - l1) / walk;
    let in_second = 1.0 - (behind - l1) / walk;
    let missed = (with - (1.0 - in_second) * walk) / l1;
    Ok(match () {
        () if evicted < NEARLY_ALL => None,
        () if in_second > NEARLY_ALL && missed < HARDLY_ANY + 0.2 => Some(FillLevel::L1),
        () if in_second > NEARLY_ALL && missed > NEARLY_ALL - 0.2 => Some(FillLevel::Stlb),
        () if in_second < HARDLY_ANY && with > l1 + NEARLY_ALL * walk => Some(FillLevel::Nothing),
        () => None,
    })
}

/// Faults of prefetches of pages that have no frame.
pub(super) fn prefetch_faults(
    evictions: &mut EvictionBench<'_, '_, '_>,
    hint: PrefetchHint,
) -> Result<Finding<u64>, Halt> {
    let look = |evictions: &mut EvictionBench<'_, '_, '_>| -> Result<Option<u64>, Halt> {
        let timed = evictions.pages(1);
        let untouched = evictions.untouched(UNTOUCHED);
        let warm = [Act::Wait(1)];
        let act = [Act::Prefetch(hint, &untouched), Act::Wait(DONE_TICKS)];
        // What a shot itself touches for the first time is touched now.
        evictions.shots(&warm, &timed, TIMES)?;
        let Some(before) = evictions.bench.metal().page_faults() else { return Ok(None) };
        evictions.shots(&warm, &timed, TIMES)?;
        let own = evictions.bench.metal().page_faults();
        evictions.shots(&act, &timed, TIMES)?;
        let after = evictions.bench.metal().page_faults();
        let (Some(own), Some(after)) = (own, after) else { return Ok(None) };
        Ok(Some((after - own).saturating_sub(own - before)))
    };
    // A fault or two is the program's own; one a page would be 64.
    let few = UNTOUCHED as u64 / 4;
    let found = until_answers_agree(|| look(evictions), |&a, &b| (a < few) == (b < few));
    refused(found.map(|found| match found {
        Ok((a, b)) => {
            let faults = if a < few && b < few { 0 } else { a.max(b) };
            let all = 2 * UNTOUCHED * TIMES; // a shot has its control
            Finding::confirmed(
                faults,
                vec![format!("{a} and {b} page faults in {all} prefetches of pages without a frame")],
            )
        }
        Err(_) => Finding::not_determined("page faults cannot be counted here"),
    }))
}
