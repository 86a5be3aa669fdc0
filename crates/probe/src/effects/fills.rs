//! Do prefetch instructions fill the TLBs, and do stores use what loads filled? (PT-Baker, §4.4.3.1.)

use serde::Serialize;

use super::lab::Lab;
use super::{refused, twice};
use crate::bench::Halt;
use crate::finding::Finding;
use crate::metal::{Act, Hint};
use crate::passes;
use crate::tlb::{first_level_of_stores, Geometry};

/// Pages of one look, and samples of each.
const PAGES: usize = 8;
/// See [`PAGES`].
const SAMPLES: usize = 256;
/// Ticks until a prefetch is surely done: a few walks to memory.
const DONE_TICKS: u64 = 4000;
/// Shares of the pages from which on nearly all, and below which hardly any, did something.
const NEARLY_ALL: f64 = 0.8;
/// See [`NEARLY_ALL`].
const HARDLY_ANY: f64 = 0.2;
/// Pages without a frame that are prefetched, so many times.
const UNTOUCHED: usize = 64;
/// See [`UNTOUCHED`].
const TIMES: usize = 16;

/// Where an access leaves an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// In the first level, and in the second.
    L1,
    /// In the second level only: the first misses.
    Stlb,
    /// Nowhere.
    Nothing,
}

/// What a prefetch instruction does.
#[derive(Clone, Debug, Serialize)]
pub struct PrefetchFill {
    /// Which one.
    pub hint: Hint,
    /// What it leaves in the TLBs where the page was in none; anything means that it walks.
    pub fills: Finding<Fill>,
    /// Page faults of 2048 prefetches of pages without a frame.
    pub faults: Finding<u64>,
}

/// Stores and the entries of loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stores {
    /// A load hits where a store was before, and stores put entries of loads out: one array for both.
    Shared,
    /// Neither, in the first level: an array of their own, [`super::Effects::store_level`].
    Apart,
}

impl Hint {
    /// Its word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::T0 => "t0",
            Self::T1 => "t1",
            Self::T2 => "t2",
            Self::Nta => "nta",
            Self::W => "w",
        }
    }
}

/// What a prefetch leaves.
pub(super) fn prefetch(lab: &mut Lab<'_, '_, '_>, hint: Hint) -> Result<Finding<Fill>, Halt> {
    let mut seen = Vec::new();
    let found = twice(
        || fill(lab, |pages| vec![Act::Prefetch(hint, pages), Act::Wait(DONE_TICKS)], &mut seen),
        |a: &Fill, b| a == b,
    );
    refused(found.map(|found| finding(found.map(|pair| pair.0), seen)))
}

fn finding<T>(found: Result<T, Vec<T>>, seen: Vec<String>) -> Finding<T> {
    match found {
        Ok(value) => Finding::confirmed(value, seen),
        Err(_) => Finding::not_determined("no two looks see the same").with_evidence(seen),
    }
}

/// Where an act leaves the entries of pages that were in no TLB, if it does so with nearly all of them.
fn fill(
    lab: &mut Lab<'_, '_, '_>,
    act: impl Fn(&[u64]) -> Vec<Act<'_>>,
    seen: &mut Vec<String>,
) -> Result<Option<Fill>, Halt> {
    let pages = lab.pages(PAGES);
    let (out, flood) = lab.evictors(&pages);
    let each = pages.len() as f64;
    let gone = [Act::Load(&pages), Act::Load(&out), Act::Load(&flood)];
    let acted = [&gone[..], &act(&pages)].concat();
    let behind = [&acted[..], &[Act::Load(&flood)]].concat();
    let (l1, walk) = (lab.l1_ticks, lab.walk_ticks);
    let without = lab.extra(&gone, &pages, SAMPLES)? / each;
    let with = lab.extra(&acted, &pages, SAMPLES)? / each;
    let behind = lab.extra(&behind, &pages, SAMPLES)? / each;
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
        () if in_second > NEARLY_ALL && missed < HARDLY_ANY + 0.2 => Some(Fill::L1),
        () if in_second > NEARLY_ALL && missed > NEARLY_ALL - 0.2 => Some(Fill::Stlb),
        () if in_second < HARDLY_ANY && with > l1 + NEARLY_ALL * walk => Some(Fill::Nothing),
        () => None,
    })
}

/// Faults of prefetches of pages that have no frame.
pub(super) fn faults(lab: &mut Lab<'_, '_, '_>, hint: Hint) -> Result<Finding<u64>, Halt> {
    let look = |lab: &mut Lab<'_, '_, '_>| -> Result<Option<u64>, Halt> {
        let timed = lab.pages(1);
        let untouched = lab.untouched(UNTOUCHED);
        let warm = [Act::Wait(1)];
        let act = [Act::Prefetch(hint, &untouched), Act::Wait(DONE_TICKS)];
        // What a shot itself touches for the first time is touched now.
        lab.shots(&warm, &timed, TIMES)?;
        let Some(before) = lab.bench.metal().page_faults() else { return Ok(None) };
        lab.shots(&warm, &timed, TIMES)?;
        let own = lab.bench.metal().page_faults();
        lab.shots(&act, &timed, TIMES)?;
        let after = lab.bench.metal().page_faults();
        let (Some(own), Some(after)) = (own, after) else { return Ok(None) };
        Ok(Some((after - own).saturating_sub(own - before)))
    };
    // A fault or two is the program's own; one a page would be 64.
    let few = UNTOUCHED as u64 / 4;
    let found = twice(|| look(lab), |&a, &b| (a < few) == (b < few));
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

/// Whether stores use the entries of loads.
pub(super) fn stores(lab: &mut Lab<'_, '_, '_>) -> Result<Finding<Stores>, Halt> {
    lab.bench.note("stores");
    let mut seen = Vec::new();
    let look = || -> Result<Option<Stores>, Halt> {
        let filled = fill(lab, |pages| vec![Act::Store(pages)], &mut seen)?;
        let pages = lab.pages(PAGES);
        let (_, flood) = lab.evictors(&pages);
        let each = pages.len() as f64;
        let kept = lab.extra(&[Act::Load(&pages)], &pages, SAMPLES)? / each;
        let put_out = lab.extra(&[Act::Load(&pages), Act::Store(&flood)], &pages, SAMPLES)? / each;
        let share = (put_out - kept) / lab.l1_ticks;
        seen.push(format!("{share:.2} first-level misses a load after stores to {} other pages", flood.len()));
        Ok(match filled {
            Some(Fill::L1) if share > NEARLY_ALL - 0.2 => Some(Stores::Shared),
            Some(Fill::Stlb | Fill::Nothing) if share < HARDLY_ANY + 0.1 => Some(Stores::Apart),
            _ => None,
        })
    };
    let found = twice(look, |a: &Stores, b| a == b);
    refused(found.map(|found| finding(found.map(|pair| pair.0), seen)))
}

/// The first level that stores use, by chains of updates; `apart`: it is not that of loads, which is `loads`.
pub(super) fn store_level(lab: &mut Lab<'_, '_, '_>, loads: &Geometry, apart: bool) -> Result<Finding<Geometry>, Halt> {
    lab.bench.note("entries of stores");
    let found = refused(passes::twice(lab.bench, first_level_of_stores).map(|(found, _)| found.geometry))?;
    Ok(match found {
        // An update is a load and a store: of two arrays it is the smaller that is seen.
        Finding::Confirmed { value, evidence } if apart && value == *loads => {
            Finding::not_determined("updates miss where loads do: stores have as many entries, or more")
                .with_evidence(evidence)
        }
        found if apart => found,
        found => found.unasked(),
    })
}
