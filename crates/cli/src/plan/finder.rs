//! Windows of a recorded run, found in a run that `lookaside` started.

use std::ops::Range;

use lookaside_runtime::hugepages::{FoundWindow, PlanFinder, PlannedRegion};
use lookaside_techniques::hugepages::apply::{aligned_windows, find_region, range_in};
use lookaside_techniques::hugepages::plan::WindowRegion;
use lookaside_techniques::hugepages::WINDOW_BYTES;
use lookaside_trace::parse_maps;

/// A window of the recorded run.
#[derive(Clone, Copy, Debug)]
pub struct RecordedWindow {
    /// First byte there.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// What it costs, or saves, in the model.
    pub cycles: f64,
    /// It is to be huge.
    pub wanted: bool,
}

/// Finds the wanted windows of some regions.
#[derive(Default)]
pub struct WindowFinder {
    /// Each region once.
    regions: Vec<(WindowRegion, Vec<RecordedWindow>)>,
}

impl WindowFinder {
    /// Adds a window of a region.
    pub fn push(&mut self, region: &WindowRegion, window: RecordedWindow) {
        match self.regions.iter_mut().find(|(known, _)| known.mapping == region.mapping) {
            Some((_, windows)) => windows.push(window),
            None => self.regions.push((region.clone(), vec![window])),
        }
    }

    /// No window was added.
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }
}

impl PlanFinder for WindowFinder {
    fn find(&self, maps: &str) -> Vec<PlannedRegion> {
        let listed = parse_maps(maps);
        let wanted = self.regions.iter().filter(|(_, windows)| windows.iter().any(|window| window.wanted));
        let place = |(region, windows): &(WindowRegion, Vec<RecordedWindow>)| {
            let found = find_region(region, &listed).map(|actual| found(region, windows, actual.start..actual.end));
            PlannedRegion { region: format!("{} at {:#x}", region.name, region.mapping.start), windows: found }
        };
        wanted.map(place).collect()
    }
}

/// The windows of a region that mostly hold what is wanted, each with its part of the cycles of all that it holds.
fn found(region: &WindowRegion, windows: &[RecordedWindow], actual: Range<u64>) -> Vec<FoundWindow> {
    let place = |window: &RecordedWindow| {
        Some((range_in(&region.mapping, window.address, window.bytes, actual.clone())?, *window))
    };
    let mut placed: Vec<(Range<u64>, RecordedWindow)> = windows.iter().filter_map(place).collect();
    placed.sort_by_key(|(range, _)| range.start);
    let wanted: Vec<Range<u64>> =
        placed.iter().filter(|(_, window)| window.wanted).map(|(range, _)| range.clone()).collect();
    let longest = placed.iter().map(|(range, _)| range.end - range.start).max().unwrap_or(0);
    let aligned = aligned_windows(&wanted, actual).into_iter();
    aligned
        .map(|aligned| {
            let end = aligned.addr + WINDOW_BYTES;
            let first = placed.partition_point(|(range, _)| range.start.saturating_add(longest) <= aligned.addr);
            let near = placed[first..].iter().take_while(|(range, _)| range.start < end);
            let part = |(range, window): &(Range<u64>, RecordedWindow)| {
                let bytes = range.end.min(end).saturating_sub(range.start.max(aligned.addr));
                window.cycles * bytes as f64 / window.bytes as f64
            };
            FoundWindow { start: aligned.addr, cycles: near.map(part).sum() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use lookaside_techniques::lock::maps::ListedMapping;
    use lookaside_trace::MapSource;

    use super::*;

    fn region(windows: u64) -> WindowRegion {
        let start = 1 << 30;
        let end = start + windows * WINDOW_BYTES;
        let mapping = ListedMapping { start, end, prot: 3, source: MapSource::Anonymous, site: 0 };
        WindowRegion { name: "table".into(), offset_bytes: 0, nth: 0, equals: 1, mapping }
    }

    fn finder(wanted: &[usize]) -> WindowFinder {
        let (region, mut finder) = (region(4), WindowFinder::default());
        for n in 0..4 {
            let address = region.mapping.start + n as u64 * WINDOW_BYTES;
            let (cycles, wanted) = (10f64.powi(n), wanted.contains(&(n as usize)));
            finder.push(&region, RecordedWindow { address, bytes: WINDOW_BYTES, cycles, wanted });
        }
        finder
    }

    /// First bytes, in windows from an address, and cycles.
    fn windows(finder: &WindowFinder, start: u64) -> Vec<(f64, f64)> {
        let line = format!("{start:x}-{:x} rw-p 00000000 00:00 0 \n", start + 4 * WINDOW_BYTES);
        let [PlannedRegion { windows: Ok(windows), .. }] = &finder.find(&line)[..] else { panic!("{line}") };
        windows.iter().map(|w| ((w.start - start) as f64 / WINDOW_BYTES as f64, w.cycles)).collect()
    }

    #[test]
    fn each_window_has_its_own_cycles() {
        assert_eq!(windows(&finder(&[1, 3]), 1 << 32), [(1.0, 10.0), (3.0, 1000.0)]);
    }

    #[test]
    fn a_window_that_lies_across_two_has_a_part_of_both() {
        // The region begins in the middle of a window: its second and third share one.
        let start = (1 << 32) + WINDOW_BYTES / 2;
        assert_eq!(windows(&finder(&[1, 2]), start), [(0.5, 5.5), (1.5, 55.0), (2.5, 550.0)]);
        assert_eq!(windows(&finder(&[2]), start), [(1.5, 55.0), (2.5, 550.0)]);
    }

    #[test]
    fn a_region_of_which_nothing_is_wanted_is_not_looked_for() {
        assert_eq!(finder(&[]).find("").len(), 0);
        let missing = finder(&[0]).find("");
        assert!(missing.len() == 1 && missing[0].windows.is_err(), "{missing:?}");
    }
}
