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
        how: format!("lookaside hugepages run --budget {count} CMD{names}"),
        caveat: format!(
            "of {}, by walk cycles of this very run, huge from their first touch on, where hugepages run first takes 2 s \
             to choose; {NOT_COUNTED}",
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

#[cfg(test)]
mod tests {
    use lookaside_engine::RegionRow;
    use lookaside_trace::MapSource;

    use super::super::tests::{cortex_a9, page as page_of, region, skylake};
    use super::*;
    use crate::names::Unnamed;

    const MIB: u64 = 1 << 20;
    const BASE: u64 = 1 << 30;

    /// Four windows of a process and one of another, with these walk cycles; the dearest has two pages.
    fn outcome(cycles: [f64; 5], number: Option<u32>) -> Outcome {
        let regions = vec![
            region(1, BASE, BASE + 8 * MIB, MapSource::Heap),
            region(2, BASE, BASE + 2 * MIB, MapSource::Anonymous),
            region(1, BASE + 8 * MIB, BASE + 9 * MIB, MapSource::Anonymous),
        ];
        let [first, second, third, fourth, other] = cycles;
        let pages = [
            (1, 4096, first - 20.0),
            (1, 2 * MIB, second),
            (1, 2 * MIB - 4096, 20.0),
            (2, MIB, other),
            (1, 4 * MIB, third),
            (1, 6 * MIB + 4096, fourth),
            // None of these could be huge.
            (1, 8 * MIB, 1000.0),
            (3, 0, 1000.0),
        ];
        let page = |(process, at, cycles)| PageRow { region: number, ..page_of(process, BASE + at, cycles) };
        Outcome { pages: pages.map(page).to_vec(), regions, ..Outcome::default() }
    }

    fn row(base: &Setup, outcome: &Outcome) -> Option<RemedyVariant> {
        best(base, RemedyContext { outcome, namer: &Unnamed, what_if: false })
    }

    #[test]
    fn the_fewest_windows_with_nine_tenths_of_the_walk_cycles_are_huge() {
        // 50 + 30 + 10 of 100.
        let found = row(&skylake(), &outcome([50.0, 30.0, 6.0, 4.0, 10.0], Some(0))).expect("a row");
        let range = |(process, at)| {
            let start = BASE + at;
            ProcessRange { process: Some(process), start, end: start + 2 * MIB }
        };
        let mut expected = skylake();
        expected.os.pages = PagePolicy::Selective([(1, 0), (1, 2 * MIB), (2, 0)].map(range).to_vec());
        assert_eq!(found.setup, expected);
        assert_eq!((found.kind, &*found.what), (RemedyKind::HugeWhereHot, "huge pages for the 3 best windows"));
        assert_eq!(found.how, "lookaside hugepages run --budget 3 CMD; or madvise(MADV_HUGEPAGE) on [heap]");
        assert!(found.caveat.starts_with("of 5, by walk cycles of this very run"), "{}", found.caveat);
        assert_eq!(found.bloat_bytes, Some(6 * MIB - 4 * 4096));
        // A little less than that is not enough; and no mapping is named where none is known.
        let found = row(&skylake(), &outcome([50.0, 30.0, 6.0, 4.5, 9.5], None)).expect("a row");
        assert_eq!(found.how, "lookaside hugepages run --budget 4 CMD");
        assert_eq!(found.bloat_bytes, Some(8 * MIB - 5 * 4096));
    }

    #[test]
    fn windows_have_no_row_where_all_or_none_of_them_are_worth_it() {
        let some = outcome([90.0, 6.0, 2.0, 1.0, 1.0], Some(0));
        assert!(row(&skylake(), &some).is_some());
        // All are needed.
        assert_eq!(row(&skylake(), &outcome([20.0; 5], Some(0))), None);
        let mut free = some.clone();
        free.pages.iter_mut().for_each(|page| page.cost.walk_cycles = 0.0);
        assert_eq!(row(&skylake(), &free), None);
        assert_eq!(row(&skylake(), &Outcome::default()), None);
        assert_eq!(row(&cortex_a9(), &some), None);
        let mut huge = skylake();
        huge.os.pages = PagePolicy::Thp;
        assert_eq!(row(&huge, &some), None);
    }

    #[test]
    fn the_mappings_with_most_of_the_cost_are_named() {
        let mapping = |frame: u64| RegionRow { site: vec![frame], ..region(1, 0, 4096, MapSource::Anonymous) };
        let regions = vec![
            mapping(0x1),
            mapping(0x2),
            mapping(0x1),
            region(1, 0, 4096, MapSource::Heap),
            region(1, 0, 4096, MapSource::Stack),
        ];
        let outcome = Outcome { regions, ..Outcome::default() };
        let named = |costs: &[(Option<u32>, f64)]| {
            let window = |&(region, walk_cycles): &_| ((1, 0), WindowCost { walk_cycles, region });
            names(&costs.iter().map(window).collect::<Vec<_>>(), &outcome, &Unnamed)
        };
        // Two windows of one mapping, and two mappings from one place; those with equal costs by name.
        let costs = [
            (Some(0), 5.0),
            (Some(1), 3.0),
            (None, 90.0),
            (Some(3), 7.0),
            (Some(1), 4.0),
            (Some(2), 4.0),
            (Some(9), 80.0),
            (Some(4), 1.0),
        ];
        let three = "anonymous, mmap in 0x1, [heap], anonymous, mmap in 0x2";
        assert_eq!(named(&costs[..7]), three);
        assert_eq!(named(&costs), format!("{three}, 1 more"));
        assert_eq!(named(&[(Some(4), 1.0)]), "[stack]");
        assert_eq!(named(&[(None, 1.0)]), "");
    }
}
