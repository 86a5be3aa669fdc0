//! Who is charged, and the outcome's rows (SEMANTICS.md §11).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use lookaside_engine::os::{to_cycles, KERNEL_SPACE};
use lookaside_engine::{Cost, IpRow, ObjectRow, Outcome, PageRow, RegionRow, ThreadRow};
use lookaside_machine::{PageSize, TableFormat};
use lookaside_trace::{FrameList, MapSource};

/// A `Cost` in whole units.
#[derive(Clone, Copy, Default)]
pub struct CostCounts {
    pub l1_misses: u64,
    pub walks: u64,
    pub walk_references: u64,
    pub walk_references_memory: u64,
    pub tlb_hit_units: u64,
    pub walk_units: u64,
}

impl CostCounts {
    pub fn add(&mut self, other: &Self) {
        self.l1_misses += other.l1_misses;
        self.walks += other.walks;
        self.walk_references += other.walk_references;
        self.walk_references_memory += other.walk_references_memory;
        self.tlb_hit_units += other.tlb_hit_units;
        self.walk_units += other.walk_units;
    }

    pub fn cost(&self) -> Cost {
        Cost {
            l1_misses: self.l1_misses,
            walks: self.walks,
            walk_references: self.walk_references,
            walk_references_memory: self.walk_references_memory,
            tlb_hit_cycles: to_cycles(self.tlb_hit_units.into()),
            walk_cycles: to_cycles(self.walk_units.into()),
        }
    }

    /// What rows are ordered by, dearest first.
    fn rank(&self) -> std::cmp::Reverse<u64> {
        std::cmp::Reverse(self.tlb_hit_units + self.walk_units)
    }
}

struct TwinRegion {
    process: u32,
    range: Range<u64>,
    source: MapSource,
    site: FrameList,
}

#[derive(Default)]
struct TwinObject {
    allocations: u64,
    live_bytes: u64,
    peak_bytes: u64,
    largest: (u64, u64),
    accesses: u64,
    counts: CostCounts,
}

/// A page row: space, first byte, size, region.
pub type PageKey = (u64, u64, PageSize, Option<usize>);

#[derive(Default)]
pub struct TwinRows {
    pages: BTreeMap<PageKey, (u64, CostCounts)>,
    regions: Vec<TwinRegion>,
    objects: BTreeMap<(u32, FrameList), TwinObject>,
    instructions: BTreeMap<(u32, u64), CostCounts>,
    threads: BTreeMap<(u32, u32), (u64, CostCounts)>,
}

impl TwinRows {
    /// The row of a mapping that now begins.
    pub fn map(&mut self, process: u32, range: &Range<u64>, source: &MapSource, site: FrameList) -> usize {
        let known = self.regions.iter().position(|r| {
            r.process == process
                && match (&r.source, source) {
                    (MapSource::File { path: a, .. }, MapSource::File { path: b, .. }) => a == b,
                    (a, b) => *a == MapSource::Heap && *b == MapSource::Heap,
                }
        });
        if let Some(known) = known {
            self.widen(known, range);
            return known;
        }
        let site = if *source == MapSource::Anonymous { site } else { FrameList::new() };
        self.regions.push(TwinRegion { process, range: range.clone(), source: source.clone(), site });
        self.regions.len() - 1
    }

    pub fn widen(&mut self, region: usize, range: &Range<u64>) {
        let row = &mut self.regions[region].range;
        *row = row.start.min(range.start)..row.end.max(range.end);
    }

    pub fn allocated(&mut self, process: u32, range: &Range<u64>, site: &FrameList) {
        let len = range.end - range.start;
        let row = self.objects.entry((process, site.clone())).or_default();
        row.allocations += 1;
        row.live_bytes += len;
        row.peak_bytes = row.peak_bytes.max(row.live_bytes);
        if len > row.largest.1 {
            row.largest = (range.start, len);
        }
    }

    pub fn freed(&mut self, process: u32, range: &Range<u64>, site: &FrameList) {
        self.objects.get_mut(&(process, site.clone())).expect("freed after it was allocated").live_bytes -=
            range.end - range.start;
    }

    pub fn count_accesses(&mut self, page: PageKey, thread: (u32, u32), count: u64) {
        self.pages.entry(page).or_default().0 += count;
        self.threads.entry(thread).or_default().0 += count;
    }

    pub fn count_object_accesses(&mut self, process: u32, site: &FrameList, count: u64) {
        self.objects.get_mut(&(process, site.clone())).expect("accessed while live").accesses += count;
    }

    pub fn charge(
        &mut self,
        page: PageKey,
        thread: (u32, u32),
        ip: u64,
        site: Option<&FrameList>,
        counts: &CostCounts,
    ) {
        self.pages.get_mut(&page).expect("counted before").1.add(counts);
        self.threads.get_mut(&thread).expect("counted before").1.add(counts);
        self.instructions.entry((thread.0, ip)).or_default().add(counts);
        if let Some(site) = site {
            self.objects.get_mut(&(thread.0, site.clone())).expect("missed while live").counts.add(counts);
        }
    }

    pub fn pages_touched(&self) -> Vec<(PageSize, u64)> {
        let distinct: BTreeSet<_> = self.pages.keys().map(|&(space, addr, size, _)| (size, space, addr)).collect();
        let mut by_size = BTreeMap::<PageSize, u64>::new();
        for (size, ..) in distinct {
            *by_size.entry(size).or_default() += 1;
        }
        by_size.into_iter().collect()
    }

    /// Puts the rows into the outcome, in their order.
    pub fn finish(self, format: TableFormat, outcome: &mut Outcome) {
        let used: BTreeSet<usize> = self.pages.keys().filter_map(|key| key.3).collect();
        let mut order: Vec<usize> = used.into_iter().collect();
        order.sort_by_key(|&i| {
            let r = &self.regions[i];
            (r.process, r.range.start, r.range.end, i)
        });
        for &i in &order {
            let of_region = || self.pages.iter().filter(|(key, _)| key.3 == Some(i));
            let mut counts = CostCounts::default();
            of_region().for_each(|(_, row)| counts.add(&row.1));
            let r = &self.regions[i];
            outcome.regions.push(RegionRow {
                process: r.process,
                start: r.range.start,
                end: r.range.end,
                source: r.source.clone(),
                site: r.site.clone(),
                pages: of_region().count() as u64,
                accesses: of_region().map(|(_, row)| row.0).sum(),
                cost: counts.cost(),
            });
        }

        let place = |region: Option<usize>| order.iter().position(|&i| Some(i) == region).map(|i| i as u32);
        let high = if format.address_bits() > 32 { !((1 << format.address_bits()) - 1) } else { 0 };
        let mut pages: Vec<_> = (self.pages.into_iter())
            .map(|((space, addr, size, region), (accesses, counts))| {
                let kernel = space == KERNEL_SPACE;
                let row = PageRow {
                    process: if kernel { 0 } else { space as u32 },
                    addr: if kernel { addr | high } else { addr },
                    size,
                    region: place(region),
                    accesses,
                    cost: counts.cost(),
                };
                (counts.rank(), row)
            })
            .collect();
        pages.sort_by_key(|(rank, row)| (*rank, row.addr, row.process, row.size, row.region));
        outcome.pages = pages.into_iter().map(|(_, row)| row).collect();

        let mut objects: Vec<_> =
            self.objects.into_iter().filter(|(_, o)| o.accesses + o.counts.l1_misses > 0).collect();
        objects.sort_by_key(|(_, o)| o.counts.rank());
        outcome.objects = (objects.into_iter())
            .map(|((process, site), o)| ObjectRow {
                process,
                site,
                allocations: o.allocations,
                peak_bytes: o.peak_bytes,
                largest: o.largest,
                accesses: o.accesses,
                cost: o.counts.cost(),
            })
            .collect();

        let mut instructions: Vec<_> = self.instructions.into_iter().collect();
        instructions.sort_by_key(|(_, counts)| counts.rank());
        outcome.instructions_rows =
            instructions.into_iter().map(|((process, ip), c)| IpRow { process, ip, cost: c.cost() }).collect();
        outcome.threads = (self.threads.into_iter())
            .map(|((process, thread), (accesses, c))| ThreadRow { process, thread, accesses, cost: c.cost() })
            .collect();
    }
}
