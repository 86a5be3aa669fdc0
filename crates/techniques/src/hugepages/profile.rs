//! One pass over a source: what translation costs window by window, and accesses to try huge pages on.

use std::collections::BTreeMap;

use lookaside_engine::{Detail, Engine, Outcome, PagePolicy, Setup};
use lookaside_trace::{Block, Event, MapSource, Source};

use super::regions::{KnownRegions, Regions, WindowLocation};
use super::Window;
use crate::lock::maps::Maps;
use crate::plan::{Coverage, PlanError};
use crate::sampled_accesses::SampledAccesses;

/// What a trace does to one window that can be huge, with base pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowCounts {
    /// Which.
    pub window: Window,
    /// Accesses of all kinds, left-out repeats included.
    pub accesses: u64,
    /// Walks for them.
    pub walks: u64,
    /// Translation cycles of them.
    pub cycles: f64,
    /// Base pages that were touched at any time.
    pub touched_pages: u64,
}

/// Whose translation cycles huge pages can reach.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reach {
    /// Of windows that can be huge.
    pub window_cycles: f64,
    /// Of pages in windows with a file's mapping.
    pub file_cycles: f64,
    /// Of all other pages: ends of regions, small regions, the kernel's.
    pub other_cycles: f64,
}

/// What planning needs to know of a program.
#[derive(Debug)]
pub struct HugeProfile {
    /// Windows that can be huge and were touched, ascending.
    pub windows: Vec<WindowCounts>,
    /// What they are of all.
    pub reach: Reach,
    /// The model run that these counts are of: all of the trace, base pages; its rows name objects.
    pub outcome: Outcome,
    /// The memory maps: regions.
    pub regions: KnownRegions,
    /// The memory maps: call sites.
    pub maps: Maps,
    /// What huge pages are tried on: all accesses, or those in windows spread over the run.
    pub blocks: Vec<Block>,
    /// Of the recorded accesses, the share in `blocks`; 1 = all.
    pub tried_share: f64,
    /// How much of the source was read.
    pub coverage: Coverage,
}

impl HugeProfile {
    /// Pulls a source to its end; `watch` sees each block first.
    ///
    /// # Errors
    /// A setup that can't be run or has other than base pages; a machine without 2 MiB pages; samples in place of
    /// accesses; a temporary file that can't be made or read. An error of the source is kept: what was seen before it
    /// counts.
    pub fn record(source: &mut dyn Source, base: &Setup, watch: &mut dyn FnMut(&Block)) -> Result<Self, PlanError> {
        check_source(source, base)?;
        let mut engine = Engine::new(Setup { detail: Detail::Rows, ..base.clone() })?;
        let (mut regions, mut maps) = (Regions::default(), Maps::default());
        let mut tried = SampledAccesses::pull(source, &mut |block| {
            watch(block);
            regions.run(block);
            maps.run(block);
            engine.run(block);
        })?;
        let mut remarks = tried_remarks(&tried);
        tried.blocks.iter_mut().for_each(stacks_are_memory);
        let outcome = engine.outcome();
        let regions = regions.finish();
        let (windows, reach, unknown) = count(&outcome, &regions);
        if unknown {
            remarks.push(
                "the trace has no memory map for some processes: all of their memory is assumed eligible \
                for huge pages"
                    .into(),
            );
        }
        let tried_share = tried.share();
        let SampledAccesses { blocks, error, .. } = tried;
        let coverage = Coverage { remarks, damage: source.damage().to_vec(), error };
        Ok(Self { windows, reach, outcome, regions, maps, blocks, tried_share, coverage })
    }
}

/// Whether huge pages can be planned for a source on this machine.
pub(super) fn check_source(source: &dyn Source, base: &Setup) -> Result<(), PlanError> {
    super::check(&base.machine)?;
    if base.os.pages != PagePolicy::Base {
        return Err(PlanError::Impossible(
            "huge pages are planned for a run with base pages; set os.pages to base".into(),
        ));
    }
    if source.info().sample_period_ns > 0 {
        let why = "the trace holds samples, not every access; record it with valgrind or qemu";
        return Err(PlanError::Impossible(why.into()));
    }
    Ok(())
}

/// What part of a run huge pages were tried on, where that is not all of it.
pub(super) fn tried_remarks(tried: &SampledAccesses) -> Vec<String> {
    let full = tried.full.iter();
    let mut remarks: Vec<String> =
        full.map(|why| format!("huge pages were tried on the first part of the run only: {why}")).collect();
    if tried.tried < tried.recorded {
        remarks.push(format!(
            "savings were modelled on {} of {} recorded accesses, in windows spread over the run, and scaled to the \
             whole run; accesses, walks and touched pages are of the whole run",
            tried.tried, tried.recorded
        ));
    }
    remarks
}

/// The model's operating system makes no stack huge unasked, but the kernel collapses one like any memory.
fn stacks_are_memory(block: &mut Block) {
    for (_, event) in &mut block.events {
        if let Event::Map { source: source @ MapSource::Stack, .. } = event {
            *source = MapSource::Anonymous;
        }
    }
}

/// Windows that can be huge, what they are of all, and whether some lie in a process without a map.
pub(super) fn count(outcome: &Outcome, regions: &KnownRegions) -> (Vec<WindowCounts>, Reach, bool) {
    let mut windows: BTreeMap<Window, (WindowCounts, WindowLocation)> = BTreeMap::new();
    let mut pages: Vec<_> = outcome.pages.iter().collect();
    pages.sort_by_key(|page| (page.process, page.addr));
    let mut last = None;
    for page in pages {
        let window = Window::of(page.process, page.addr);
        let none = WindowCounts { window, accesses: 0, walks: 0, cycles: 0.0, touched_pages: 0 };
        let (counts, _) = windows.entry(window).or_insert_with(|| (none, regions.find(window)));
        counts.accesses += page.accesses;
        counts.walks += page.cost.walks;
        counts.cycles += page.cost.cycles();
        // A page that was unmapped and mapped again has several rows.
        let here = Some((page.process, page.addr));
        counts.touched_pages += u64::from(last != here);
        last = here;
    }
    let mut reach = Reach::default();
    let mut unknown = false;
    windows.retain(|_, (counts, lies)| {
        // The upper half of all addresses is the kernel's.
        let is_user = counts.window.addr >> 63 == 0;
        let sum = match lies {
            WindowLocation::In(_) | WindowLocation::Unknown if is_user => &mut reach.window_cycles,
            WindowLocation::File => &mut reach.file_cycles,
            WindowLocation::In(_) | WindowLocation::Unknown | WindowLocation::Outside => &mut reach.other_cycles,
        };
        *sum += counts.cycles;
        unknown |= is_user && *lies == WindowLocation::Unknown;
        is_user && matches!(lies, WindowLocation::In(_) | WindowLocation::Unknown)
    });
    (windows.into_values().map(|(counts, _)| counts).collect(), reach, unknown)
}

#[cfg(test)]
mod tests {
    use lookaside_engine::{Cost, PageRow};
    use lookaside_machine::PageSize;

    use super::super::regions::Regions;
    use super::*;

    const M: u64 = 1 << 20;
    const KERNEL: u64 = 1 << 63;

    /// A page with so many accesses, of which one is a walk, and so many cycles.
    fn page(process: u32, addr: u64, accesses: u64, walk_cycles: f64) -> PageRow {
        let cost = Cost { walks: 1, walk_cycles, tlb_hit_cycles: 1.0, ..Cost::default() };
        PageRow { process, addr, size: PageSize::K4, region: None, accesses, cost }
    }

    /// Process 1 has memory from 10 to 14 MiB, and a file behind it.
    fn regions() -> KnownRegions {
        let mut block = Block { process: 1, ..Block::default() };
        let file = MapSource::File { path: "/x".into(), offset: 0 };
        for (addr, source) in [(10 * M, MapSource::Anonymous), (14 * M, file)] {
            block.push_event(Event::Map { addr, len: 4 * M, prot: 3, source, site: 0 });
        }
        let mut regions = Regions::default();
        regions.run(&block);
        regions.finish()
    }

    #[test]
    fn cycles_are_those_of_windows_of_files_and_of_others() {
        let mapped = vec![
            page(1, 12 * M, 6, 50.0),
            page(1, 10 * M + 4096, 3, 20.0),
            // It was unmapped and mapped again.
            page(1, 10 * M, 1, 10.0),
            page(1, 10 * M, 2, 15.0),
            page(1, 14 * M, 4, 100.0),
            page(1, 30 * M, 5, 200.0),
            page(0, KERNEL, 7, 400.0),
            page(2, KERNEL + 2 * M, 8, 800.0),
        ];
        let counted = |process, mib: u64, accesses, walks, cycles, touched_pages| {
            let window = Window { process, addr: mib * M };
            WindowCounts { window, accesses, walks, cycles, touched_pages }
        };
        let mut expected = vec![counted(1, 10, 6, 3, 48.0, 2), counted(1, 12, 6, 1, 51.0, 1)];
        let mut reach = Reach { window_cycles: 99.0, file_cycles: 101.0, other_cycles: 201.0 + 401.0 + 801.0 };
        let mut outcome = Outcome { pages: mapped, ..Outcome::default() };
        assert_eq!(count(&outcome, &regions()), (expected.clone(), reach, false));
        // Memory of a process without a map may be huge, whatever its number.
        outcome.pages.extend([page(0, 10 * M, 1, 1600.0), page(2, 10 * M, 1, 3200.0)]);
        expected.insert(0, counted(0, 10, 1, 1, 1601.0, 1));
        expected.push(counted(2, 10, 1, 1, 3201.0, 1));
        reach.window_cycles += 1601.0 + 3201.0;
        assert_eq!(count(&outcome, &regions()), (expected, reach, true));
    }
}
