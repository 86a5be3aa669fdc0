//! Do stores use the entries that loads filled, and how many do they have otherwise? (PT-Baker, §4.4.3.1.)

use crate::bench::Halt;
use crate::effects::eviction_bench::EvictionBench;
use crate::effects::fills::{fill_level, finding, HARDLY_ANY, NEARLY_ALL, PAGES, SAMPLES};
use crate::effects::repeat::{refused, until_answers_agree};
use crate::finding::Finding;
use crate::metal::single_shot::Act;
use crate::report::effects::{FillLevel, StoreEntries};
use crate::tlb::geometry::Geometry;
use crate::tlb::search::first_level_of_stores;
use crate::until_two_agree;

/// Whether stores use the entries of loads.
pub(super) fn stores(evictions: &mut EvictionBench<'_, '_, '_>) -> Result<Finding<StoreEntries>, Halt> {
    evictions.bench.note("stores");
    let mut seen = Vec::new();
    let look = || -> Result<Option<StoreEntries>, Halt> {
        let filled = fill_level(evictions, |pages| vec![Act::Store(pages)], &mut seen)?;
        let pages = evictions.pages(PAGES);
        let (_, flood) = evictions.evictors(&pages);
        let each = pages.len() as f64;
        let kept = evictions.extra(&[Act::Load(&pages)], &pages, SAMPLES)? / each;
        let put_out = evictions.extra(&[Act::Load(&pages), Act::Store(&flood)], &pages, SAMPLES)? / each;
        let share = (put_out - kept) / evictions.l1_ticks;
        seen.push(format!("{share:.2} first-level misses a load after stores to {} other pages", flood.len()));
        Ok(match filled {
            Some(FillLevel::L1) if share > NEARLY_ALL - 0.2 => Some(StoreEntries::Shared),
            Some(FillLevel::Stlb | FillLevel::Nothing) if share < HARDLY_ANY + 0.1 => Some(StoreEntries::Apart),
            _ => None,
        })
    };
    let found = until_answers_agree(look, |a: &StoreEntries, b| a == b);
    refused(found.map(|found| finding(found.map(|pair| pair.0), seen)))
}

/// The first level that stores use, by chains of updates; `apart`: it is not that of loads, which is `loads`.
pub(super) fn store_level(
    evictions: &mut EvictionBench<'_, '_, '_>,
    loads: &Geometry,
    apart: bool,
) -> Result<Finding<Geometry>, Halt> {
    evictions.bench.note("entries of stores");
    let found = refused(
        until_two_agree::until_two_agree(evictions.bench, first_level_of_stores).map(|(found, _)| found.geometry),
    )?;
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
