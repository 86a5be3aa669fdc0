//! A plan of huge pages, found in the program that `lookaside run` started.

use std::collections::BTreeMap;
use std::path::Path;

use lookaside_runtime::hugepages::{PlanFinder, PlannedRegion};
use lookaside_techniques::hugepages::apply::{aligned_windows, find_region, planned_range};
use lookaside_techniques::hugepages::plan::{HugePlan, PlannedWindow, WindowRegion};
use lookaside_trace::parse_maps;

use lookaside_cli::exit::Failure;

/// The windows of a plan, by region.
pub struct PlanFile {
    regions: Vec<(WindowRegion, Vec<PlannedWindow>)>,
}

impl PlanFile {
    /// Reads a plan. Windows of processes that the program started, and those without a region, can't be found again.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let plan = HugePlan::load(path).map_err(Failure::bad)?;
        let windows = plan.windows.iter().chain(&plan.later);
        let mut by_process: BTreeMap<u32, usize> = BTreeMap::new();
        windows.clone().for_each(|window| *by_process.entry(window.process).or_default() += 1);
        let why = |text: &str| Failure::bad(format_args!("{}: {text}", path.display()));
        if by_process.len() > 1 {
            return Err(why("has windows of several processes, and only those of the program itself can be found; plan for that one alone"));
        }
        let mut regions: Vec<(WindowRegion, Vec<PlannedWindow>)> = Vec::new();
        for window in windows {
            let Some(region) = &window.region else {
                return Err(why(
                    "its windows have no regions (the trace has no memory map): they can't be found again",
                ));
            };
            match regions.iter_mut().find(|(known, _)| known.mapping == region.mapping) {
                Some((_, all)) => all.push(window.clone()),
                None => regions.push((region.clone(), vec![window.clone()])),
            }
        }
        if regions.is_empty() {
            return Err(why("names no window"));
        }
        Ok(Self { regions })
    }
}

impl PlanFinder for PlanFile {
    fn find(&self, maps: &str) -> Vec<PlannedRegion> {
        let listed = parse_maps(maps);
        let place = |(region, windows): &(WindowRegion, Vec<PlannedWindow>)| {
            let found = find_region(region, &listed).map(|actual| {
                let ranges = windows.iter().filter_map(|window| planned_range(window, actual.start..actual.end));
                let aligned = aligned_windows(&ranges.collect::<Vec<_>>(), actual.start..actual.end);
                aligned.into_iter().map(|window| window.addr).collect()
            });
            PlannedRegion { region: format!("{} at {:#x}", region.name, region.mapping.start), windows: found }
        };
        self.regions.iter().map(place).collect()
    }
}
