//! The row for few huge pages: the 2 MiB windows of memory whose walks cost most.

use std::collections::{BTreeMap, BTreeSet};

use lookaside_engine::{Outcome, PagePolicy, PageRow, ProcessRange, Setup};
use lookaside_machine::PageSize;

use super::huge::{page, NOT_COUNTED};
use super::variant::{RemedyContext, RemedyVariant};
use crate::names::region_name;
use crate::visits::HugeWindows;
use crate::{Namer, RemedyKind};

/// Of what the walks in all windows cost, the part that the chosen ones have at least.
const ENOUGH: f64 = 0.9;
/// Mappings that are named at the most.
const NAMED: usize = 3;

/// A window, and what is known of it.
#[derive(Clone, Copy, Debug, Default)]
struct WindowCost {
    walk_cycles: f64,
    /// Index of the mapping that its dearest page lies in.
    region: Option<u32>,
}

/// Huge pages in the fewest windows that have nine tenths of the walk cycles of all that could be huge; `None` where
/// these are all.
pub(super) fn best(base: &Setup, context: RemedyContext) -> Option<RemedyVariant> {
    if base.os.pages != PagePolicy::Base || page(base) != Some(PageSize::M2) {
        return None;
    }
    let RemedyContext { outcome, namer, .. } = context;
    let windows = by_cost(outcome);
    let chosen = fewest(&windows);
    if chosen.is_empty() || chosen.len() == windows.len() {
        return None;
    }
    let bytes = PageSize::M2.bytes();
    let range = |&((process, start), _): &_| ProcessRange { process: Some(process), start, end: start + bytes };
    let mut setup = base.clone();
    setup.os.pages = PagePolicy::Selective(chosen.iter().map(range).collect());
    let count = chosen.len();
    let names = match names(chosen, outcome, namer) {
        names if names.is_empty() => names,
        names => format!("; or madvise(MADV_HUGEPAGE) on {names}"),
    };
    Some(RemedyVariant {
        kind: RemedyKind::HugeWhereHot,
        what: format!("huge pages for the {count} best windows"),
        setup,
        how: format!("lookaside run --hugepages=auto:{count} -- CMD{names}"),
        caveat: format!(
            "of {}, by walk cycles of this very run, huge from their first touch on; {NOT_COUNTED}",
            windows.len()
        ),
        bloat_bytes: Some((count as u64 * bytes).saturating_sub(small_pages(chosen, outcome) * PageSize::K4.bytes())),
    })
}

/// Windows that can be huge and are touched, by process and first byte, dearest first.
fn by_cost(outcome: &Outcome) -> Vec<((u32, u64), WindowCost)> {
    let huge = HugeWindows::new(&outcome.regions, &|_| true);
    let mut windows: BTreeMap<(u32, u64), WindowCost> = BTreeMap::new();
    // The dearest pages come first.
    for row in outcome.pages.iter().filter(|row| huge.holds(row.process, row.addr)) {
        let cost = windows.entry(window_of(row)).or_default();
        cost.walk_cycles += row.cost.walk_cycles;
        cost.region = cost.region.or(row.region);
    }
    let mut windows: Vec<((u32, u64), WindowCost)> = windows.into_iter().collect();
    windows.sort_by(|a, b| b.1.walk_cycles.total_cmp(&a.1.walk_cycles).then(a.0.cmp(&b.0)));
    windows
}

/// Process and first byte of the window that a page lies in.
fn window_of(row: &PageRow) -> (u32, u64) {
    (row.process, row.addr & !(PageSize::M2.bytes() - 1))
}

/// Small pages that are touched in them.
fn small_pages(chosen: &[((u32, u64), WindowCost)], outcome: &Outcome) -> u64 {
    let windows: BTreeSet<(u32, u64)> = chosen.iter().map(|(window, _)| *window).collect();
    let touched = outcome.pages.iter().filter(|row| windows.contains(&window_of(row)));
    touched.map(|row| (row.process, row.addr)).collect::<BTreeSet<_>>().len() as u64
}

/// The fewest of them that have enough of the walk cycles.
fn fewest(windows: &[((u32, u64), WindowCost)]) -> &[((u32, u64), WindowCost)] {
    let all: f64 = windows.iter().map(|(_, cost)| cost.walk_cycles).sum();
    let mut reached = 0.0;
    let before = windows.iter().take_while(|(_, cost)| {
        let is_short = reached < ENOUGH * all;
        reached += cost.walk_cycles;
        is_short
    });
    &windows[..before.count()]
}

/// The mappings that most of the windows' cost lies in. Those that read the same are named once.
fn names(chosen: &[((u32, u64), WindowCost)], outcome: &Outcome, namer: &dyn Namer) -> String {
    let mut regions: BTreeMap<u32, f64> = BTreeMap::new();
    for (_, cost) in chosen {
        if let Some(region) = cost.region {
            *regions.entry(region).or_default() += cost.walk_cycles;
        }
    }
    let mut by_name: BTreeMap<String, f64> = BTreeMap::new();
    for (region, walk_cycles) in regions {
        if let Some(row) = outcome.regions.get(region as usize) {
            *by_name.entry(region_name(row, namer)).or_default() += walk_cycles;
        }
    }
    let mut names: Vec<(String, f64)> = by_name.into_iter().collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let more = names.len().saturating_sub(NAMED);
    let shown = names.into_iter().take(NAMED).map(|(name, _)| name);
    shown.chain((more > 0).then(|| format!("{more} more"))).collect::<Vec<_>>().join(", ")
}
