//! The windows of a recorded run that mosaics are made of.

use lookaside_engine::Outcome;
use lookaside_trace::Block;

use crate::hugepages::plan::WindowRegion;
use crate::hugepages::planner::window_region;
use crate::hugepages::profile::count;
use crate::hugepages::regions::Regions;
use crate::lock::maps::Maps;
use crate::names::Namer;

/// A window that costs something in the model, and where to find it in another run.
#[derive(Clone, Debug, PartialEq)]
pub struct MosaicWindow {
    /// First byte in the recorded run.
    pub address: u64,
    /// The region that holds it.
    pub region: WindowRegion,
    /// Translation cycles of its accesses with small pages, in the model.
    pub cycles: f64,
}

/// The memory maps of a run, while its blocks go by.
#[derive(Clone, Debug, Default)]
pub struct RecordedMemory {
    regions: Regions,
    maps: Maps,
    /// The program itself, not what it starts: the process of the first block.
    process: Option<u32>,
}

impl RecordedMemory {
    /// Learns a block's events.
    pub fn run(&mut self, block: &Block) {
        self.process.get_or_insert(block.process);
        self.regions.run(block);
        self.maps.run(block);
    }

    /// The program's own windows that cost something and can be huge, dearest first; the lower first of equal ones.
    /// `outcome` is of the model run over the same blocks, with small pages and a row for each page.
    pub fn windows(self, outcome: &Outcome, namer: &dyn Namer) -> Vec<MosaicWindow> {
        let Some(process) = self.process else { return Vec::new() };
        let known = self.regions.finish();
        let (counts, _, _) = count(outcome, &known);
        let own = counts.into_iter().filter(|counts| counts.window.process == process && counts.cycles > 0.0);
        let placed = own.filter_map(|counts| {
            let region = window_region(&known, &self.maps, namer, counts.window)?;
            Some(MosaicWindow { address: counts.window.addr, region, cycles: counts.cycles })
        });
        let mut windows: Vec<MosaicWindow> = placed.collect();
        windows.sort_by(|a, b| b.cycles.total_cmp(&a.cycles).then(a.address.cmp(&b.address)));
        windows
    }
}

#[cfg(test)]
mod tests {
    use lookaside_engine::{Cost, PageRow};
    use lookaside_machine::PageSize;
    use lookaside_trace::{Event, MapSource};

    use super::*;
    use crate::names::Unnamed;

    const M: u64 = 1 << 20;

    #[test]
    fn the_programs_own_windows_that_cost_something_are_taken_dearest_first() {
        let mut memory = RecordedMemory::default();
        for process in [7, 8] {
            let mut block = Block { process, ..Block::default() };
            let source = MapSource::Anonymous;
            block.push_event(Event::Map { addr: 10 * M, len: 11 * M, prot: 3, source, site: 0 });
            memory.run(&block);
        }
        let page = |(process, mib, walk_cycles): (u32, u64, f64)| {
            let cost = Cost { walk_cycles, ..Cost::default() };
            PageRow { process, addr: mib * M + 4096, size: PageSize::K4, region: None, accesses: 9, cost }
        };
        // The last two are windows that the memory ends in, and where there is none.
        let pages = [
            (7, 18, 5.0),
            (7, 10, 0.0),
            (7, 16, 3.0),
            (7, 12, 2.0),
            (7, 13, 1.0),
            (8, 14, 9.0),
            (7, 20, 9.0),
            (7, 40, 9.0),
        ];
        let outcome = Outcome { pages: pages.map(page).to_vec(), ..Outcome::default() };
        let windows = memory.windows(&outcome, &Unnamed);
        let found: Vec<_> = windows.iter().map(|of| (of.address / M, of.cycles, of.region.offset_bytes / M)).collect();
        assert_eq!(found, [(18, 5.0, 8), (12, 3.0, 2), (16, 3.0, 6)]);
        assert_eq!((&windows[0].region.name[..], windows[0].region.mapping.end), ("anonymous", 21 * M));
        assert!(RecordedMemory::default().windows(&outcome, &Unnamed).is_empty());
    }
}
