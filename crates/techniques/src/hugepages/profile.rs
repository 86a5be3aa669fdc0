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
    /// What huge pages are tried on: all accesses, or evenly spaced windows of them.
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
    /// A setup that can't be run or has other than base pages; a machine without 2 MiB pages; samples in place of accesses; a
    /// temporary file that can't be made or read. An error of the source is kept: what was seen before it counts.
    pub fn record(source: &mut dyn Source, base: &Setup, watch: &mut dyn FnMut(&Block)) -> Result<Self, PlanError> {
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
        let mut engine = Engine::new(Setup { detail: Detail::Rows, ..base.clone() })?;
        let (mut regions, mut maps) = (Regions::default(), Maps::default());
        let mut tried = SampledAccesses::pull(source, &mut |block| {
            watch(block);
            regions.run(block);
            maps.run(block);
            engine.run(block);
        })?;
        let full = tried.full.iter();
        let mut remarks: Vec<String> =
            full.map(|why| format!("huge pages were tried on the first part of the run only: {why}")).collect();
        tried.blocks.iter_mut().for_each(stacks_are_memory);
        if tried.tried < tried.recorded {
            remarks.push(format!(
                "huge pages were tried on {} of {} recorded accesses, in evenly spaced windows; the cycles stated \
                 are scaled to the whole run by what its base pages cost there and in all; accesses, walks and touched pages are of all",
                tried.tried, tried.recorded
            ));
        }
        let outcome = engine.outcome();
        let regions = regions.finish();
        let (windows, reach, unknown) = count(&outcome, &regions);
        if unknown {
            remarks.push("the trace has no memory map for some processes: any window of theirs is taken for memory that can be huge".into());
        }
        let tried_share = tried.share();
        let SampledAccesses { blocks, error, .. } = tried;
        let coverage = Coverage { remarks, damage: source.damage().to_vec(), error };
        Ok(Self { windows, reach, outcome, regions, maps, blocks, tried_share, coverage })
    }
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
        let sum = match lies {
            // Kernel addresses are those of process 0.
            WindowLocation::Unknown if counts.window.process == 0 && counts.window.addr >> 63 != 0 => {
                &mut reach.other_cycles
            }
            WindowLocation::In(_) | WindowLocation::Unknown => &mut reach.window_cycles,
            WindowLocation::File => &mut reach.file_cycles,
            WindowLocation::Outside => &mut reach.other_cycles,
        };
        *sum += counts.cycles;
        let is_user = counts.window.addr >> 63 == 0;
        unknown |= *lies == WindowLocation::Unknown && is_user;
        is_user && matches!(lies, WindowLocation::In(_) | WindowLocation::Unknown)
    });
    (windows.into_values().map(|(counts, _)| counts).collect(), reach, unknown)
}
