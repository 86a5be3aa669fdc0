//! TLBs, walk caches and data caches of all instances (SEMANTICS.md §5 to §9).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use lookaside_engine::os::{self, PhysicalMemory, Structure, HOST_SPACE, KERNEL_SPACE};
use lookaside_engine::{CacheCounts, LockedPage, Setup, TlbCounts, WalkModel};
use lookaside_machine::{Machine, PageSize, Serves, SharedBy, Stage, Tag};

use super::array::TwinArray;
use super::model::TwinStep;
use super::rows::CostCounts;
use super::space::{overlap, page_range, TwinSpace};

pub struct TlbEntry {
    space: u64,
    thread: Option<usize>,
    size: PageSize,
    /// An entry of a directory, not of pages: its number.
    directory: Option<u64>,
    /// Pages are coalesced within this block of page numbers.
    block: u64,
    pages: BTreeSet<u64>,
    /// Frame minus page number.
    distance: u64,
}

impl TlbEntry {
    /// A directory's goes with any range.
    fn overlaps(&self, range: &Range<u64>) -> bool {
        self.directory.is_some()
            || self.pages.iter().any(|page| overlap(&page_range(page << self.size.shift(), self.size), range))
    }
}

pub struct TwinTlb {
    array: TwinArray<TlbEntry>,
    /// Of fills at its level where it is the first of several.
    choices: u64,
}

pub struct TwinHardware {
    pub machine: Machine,
    pub walks: WalkModel,
    pub locks: Vec<LockedPage>,
    pub guest: PhysicalMemory,
    pub host: Option<PhysicalMemory>,
    pub tlbs: Vec<Vec<TwinTlb>>,
    /// Keyed by (space, prefix).
    pub walk_caches: Vec<Vec<TwinArray<(u64, u64)>>>,
    /// Line numbers.
    pub caches: Vec<Vec<TwinArray<u64>>>,
    /// Ascending walks by hardware thread: last line, lines so far; the least recently used first.
    pub streams: BTreeMap<usize, Vec<(u64, u64)>>,
    pub tlb_counts: Vec<TlbCounts>,
    pub hits_by_size: Vec<BTreeMap<PageSize, u64>>,
    pub walk_cache_counts: Vec<CacheCounts>,
    pub cache_counts: Vec<CacheCounts>,
    pub tables_read: BTreeSet<(u64, u32, u64)>,
}

/// One access as the hardware sees it.
#[derive(Clone, Copy)]
pub struct TranslationRequest {
    pub hardware_thread: usize,
    pub process: u32,
    pub global: bool,
    pub kind: Serves,
    pub va: u64,
    pub leaf: PageSize,
}

impl TranslationRequest {
    /// Whose tables and frames.
    pub fn space(&self) -> u64 {
        if self.global {
            KERNEL_SPACE
        } else {
            u64::from(self.process)
        }
    }
}

/// Where the page now lies at its first level.
pub struct TlbHit {
    pub tlb: usize,
    pub locked: bool,
}

impl TwinHardware {
    pub fn new(setup: &Setup) -> Self {
        let m = &setup.machine;
        let instances = |shared| (0..total_threads(m)).map(|h| instance(m, shared, h)).max().unwrap_or(0) + 1;
        let seeded = |kind, number, i| os::generator(setup.seed, kind, number, i);
        let tlbs = m.tlbs.iter().enumerate().map(|(n, t)| {
            let new = |i| TwinTlb {
                array: TwinArray::new(u64::from(t.entries), t.ways, t.replacement, seeded(Structure::Tlb, n, i)),
                choices: 0,
            };
            (0..instances(t.shared_by)).map(new).collect()
        });
        let walk_caches = m.walk_caches.iter().enumerate().map(|(n, w)| {
            let new =
                |i| TwinArray::new(u64::from(w.entries), w.ways, w.replacement, seeded(Structure::WalkCache, n, i));
            (0..instances(w.shared_by)).map(new).collect()
        });
        let caches = m.caches.iter().enumerate().map(|(n, c)| {
            let lines = c.size / u64::from(c.line_bytes);
            let new = |i| TwinArray::new(lines, c.ways, c.replacement, seeded(Structure::Cache, n, i));
            (0..instances(c.shared_by)).map(new).collect()
        });
        let counts = |name: &String| CacheCounts { name: name.clone(), ..CacheCounts::default() };
        Self {
            guest: PhysicalMemory::guest(&m.page_table, setup.os.frames, setup.seed),
            host: PhysicalMemory::host(&m.page_table, setup.os.frames, setup.seed),
            walks: setup.walks.clone(),
            locks: setup.locks.clone(),
            tlbs: tlbs.collect(),
            walk_caches: walk_caches.collect(),
            caches: caches.collect(),
            streams: BTreeMap::new(),
            tlb_counts: (m.tlbs.iter())
                .map(|t| TlbCounts { name: t.name.clone(), level: t.level, ..TlbCounts::default() })
                .collect(),
            hits_by_size: vec![BTreeMap::new(); m.tlbs.len()],
            walk_cache_counts: (m.walk_caches.iter().map(|w| w.name.clone()))
                .chain(m.tlbs.iter().filter(|t| t.directory_entries).map(|t| format!("{} (directory)", t.name)))
                .map(|name| counts(&name))
                .collect(),
            cache_counts: m.caches.iter().map(|c| counts(&c.name)).collect(),
            tables_read: BTreeSet::new(),
            machine: m.clone(),
        }
    }

    /// Translates, with all its effects; `owner` is the space of the access.
    pub fn translate(
        &mut self,
        r: &TranslationRequest,
        owner: &TwinSpace,
        step: &mut TwinStep,
        counts: &mut CostCounts,
    ) -> Option<TlbHit> {
        let levels = self.levels(r);
        let mut hit_level = None;
        for (i, arrays) in levels.iter().enumerate() {
            if self.look_up(r, arrays, step, counts) {
                hit_level = Some(i);
                break;
            }
        }
        counts.l1_misses = u64::from(hit_level != Some(0));
        if hit_level.is_none() {
            counts.walks = 1;
            if self.walks != WalkModel::CountOnly {
                self.walk(r, step, counts);
                self.walk_ahead(r, counts);
            }
        }
        let hit = step.hit.filter(|_| hit_level == Some(0));
        let mut held = hit.map(|(tlb, locked)| TlbHit { tlb, locked });
        for (i, arrays) in levels.iter().enumerate().take(hit_level.unwrap_or(levels.len())) {
            let mut choice = 0;
            if arrays.len() > 1 {
                let first = self.tlb_at(arrays[0].0, r.hardware_thread);
                choice = (first.choices % arrays.len() as u64) as usize;
                first.choices += 1;
            }
            let (tlb, size) = arrays[choice];
            self.fill(r, owner, tlb, size);
            if i == 0 {
                held = Some(TlbHit { tlb, locked: false });
            }
        }
        held
    }

    /// By level, ascending, the arrays that take part, in file order, with their size for this access.
    pub fn levels(&self, r: &TranslationRequest) -> Vec<Vec<(usize, PageSize)>> {
        let host_size = self.machine.page_table.host.as_ref().map_or(r.leaf, |host| host.page_size);
        let effective = r.leaf.min(host_size);
        let mut levels = BTreeMap::<u32, Vec<(usize, PageSize)>>::new();
        for (i, tlb) in self.machine.tlbs.iter().enumerate().filter(|(_, t)| t.serves.contains(&r.kind)) {
            if let Some(&size) = tlb.page_sizes.iter().filter(|&&size| size <= effective).max() {
                levels.entry(tlb.level).or_default().push((i, size));
            }
        }
        let largest = |arrays: Vec<(usize, PageSize)>| {
            let size = arrays.iter().map(|a| a.1).max();
            arrays.into_iter().filter(|a| Some(a.1) == size).collect()
        };
        levels.into_values().map(largest).collect()
    }

    /// Counts left-out repeats at the array that holds the page; the units that their hits cost.
    pub fn count_repeats(&mut self, tlb: usize, size: PageSize, locked: bool, repeats: u64) -> u64 {
        self.tlb_counts[tlb].lookups += repeats;
        self.tlb_counts[tlb].hits += repeats;
        *self.hits_by_size[tlb].entry(size).or_default() += repeats;
        if locked {
            self.tlb_counts[tlb].locked_hits += repeats;
        }
        os::to_units(self.machine.tlbs[tlb].hit_cycles) * repeats
    }

    fn look_up(
        &mut self,
        r: &TranslationRequest,
        arrays: &[(usize, PageSize)],
        step: &mut TwinStep,
        counts: &mut CostCounts,
    ) -> bool {
        for &(tlb, _) in arrays {
            self.tlb_counts[tlb].lookups += 1;
        }
        for &(tlb, size) in arrays {
            let locked = self.is_locked(r, tlb, size);
            if locked || self.hit_entry(r, tlb, size) {
                self.tlb_counts[tlb].hits += 1;
                self.tlb_counts[tlb].locked_hits += u64::from(locked);
                *self.hits_by_size[tlb].entry(size).or_default() += 1;
                counts.tlb_hit_units += os::to_units(self.machine.tlbs[tlb].hit_cycles);
                step.hit = Some((tlb, locked));
                return true;
            }
        }
        false
    }

    fn is_locked(&self, r: &TranslationRequest, tlb: usize, size: PageSize) -> bool {
        let format = self.machine.page_table.format;
        self.locks.iter().any(|lock| {
            lock.tlb == self.machine.tlbs[tlb].name
                && lock.process.is_none_or(|process| process == r.process)
                && os::translated(format, lock.addr) >> size.shift() == r.va >> size.shift()
                && os::is_global(format, lock.addr) == r.global
        })
    }

    fn hit_entry(&mut self, r: &TranslationRequest, tlb: usize, size: PageSize) -> bool {
        let (space, thread) = self.held_under(r, tlb);
        let page = r.va >> size.shift();
        let set = self.tlb_set(tlb, page);
        let array = &mut self.tlb_at(tlb, r.hardware_thread).array;
        let way = array.find(set, |e| {
            e.size == size && e.space == space && e.thread == thread && e.directory.is_none() && e.pages.contains(&page)
        });
        if let Some(way) = way {
            array.touch(set, way);
        }
        way.is_some()
    }

    fn fill(&mut self, r: &TranslationRequest, owner: &TwinSpace, tlb: usize, size: PageSize) {
        let (space, thread) = self.held_under(r, tlb);
        let page = r.va >> size.shift();
        let set = self.tlb_set(tlb, page);
        let coalesce = u64::from(self.machine.tlbs[tlb].coalesce_pages);
        let base = self.machine.page_table.format.page_sizes()[0];
        let mut entry = TlbEntry {
            space,
            thread,
            size,
            directory: None,
            block: page / coalesce,
            pages: [page].into(),
            distance: self.distance(r, size, page),
        };
        if coalesce > 1 && size == base {
            if r.leaf == base {
                let block = entry.block * coalesce..(entry.block + 1) * coalesce;
                let with = block.filter(|&other| {
                    owner.touched.contains_key(&(other << base.shift(), base))
                        && self.distance(r, size, other) == entry.distance
                });
                entry.pages = with.collect();
            }
            let array = &mut self.tlb_at(tlb, r.hardware_thread).array;
            let same = array.find(set, |e| {
                (e.space, e.thread, e.size, e.directory, e.block, e.distance)
                    == (entry.space, entry.thread, entry.size, None, entry.block, entry.distance)
            });
            if let Some(way) = same {
                array.entry(set, way).pages.extend(&entry.pages);
                array.touch(set, way);
                return;
            }
        }
        let evicted = self.tlb_at(tlb, r.hardware_thread).array.fill(set, entry);
        self.tlb_counts[tlb].fills += 1;
        self.tlb_counts[tlb].evictions += u64::from(evicted);
    }

    /// The TLB arrays that hold entries of directories.
    pub fn directories(&self) -> Vec<usize> {
        (0..self.machine.tlbs.len()).filter(|&tlb| self.machine.tlbs[tlb].directory_entries).collect()
    }

    /// Is a directory's entry, of this number, in the array?
    pub fn hit_directory(&mut self, r: &TranslationRequest, tlb: usize, number: u64) -> bool {
        let (space, thread) = self.held_under(r, tlb);
        let set = self.tlb_set(tlb, number);
        let array = &mut self.tlb_at(tlb, r.hardware_thread).array;
        let way = array.find(set, |e| (e.space, e.thread, e.directory) == (space, thread, Some(number)));
        if let Some(way) = way {
            array.touch(set, way);
        }
        way.is_some()
    }

    /// A directory's entry was read.
    pub fn fill_directory(&mut self, r: &TranslationRequest, tlb: usize, number: u64) {
        if self.hit_directory(r, tlb, number) {
            return;
        }
        let (space, thread) = self.held_under(r, tlb);
        let entry = TlbEntry {
            space,
            thread,
            size: PageSize::K4,
            directory: Some(number),
            block: 0,
            pages: BTreeSet::new(),
            distance: 0,
        };
        let set = self.tlb_set(tlb, number);
        let evicted = self.tlb_at(tlb, r.hardware_thread).array.fill(set, entry);
        self.tlb_counts[tlb].fills += 1;
        self.tlb_counts[tlb].evictions += u64::from(evicted);
    }

    /// Frame minus page number of a page in the leaf size of this access.
    fn distance(&self, r: &TranslationRequest, size: PageSize, page: u64) -> u64 {
        (self.physical(r.space(), page << size.shift(), r.leaf) >> size.shift()).wrapping_sub(page)
    }

    fn held_under(&self, r: &TranslationRequest, tlb: usize) -> (u64, Option<usize>) {
        let tags = &self.machine.tlbs[tlb].tags;
        let space = if r.global && tags.contains(&Tag::Global) { KERNEL_SPACE } else { u64::from(r.process) };
        (space, tags.contains(&Tag::HwThread).then_some(r.hardware_thread))
    }

    fn tlb_set(&self, tlb: usize, page: u64) -> u64 {
        let t = &self.machine.tlbs[tlb];
        u64::from(t.index.set_of(page / u64::from(t.coalesce_pages), t.sets()))
    }

    fn tlb_at(&mut self, tlb: usize, hardware_thread: usize) -> &mut TwinTlb {
        let i = instance(&self.machine, self.machine.tlbs[tlb].shared_by, hardware_thread);
        &mut self.tlbs[tlb][i]
    }

    /// Where a byte lies in the machine's memory.
    pub fn physical(&self, space: u64, va: u64, leaf: PageSize) -> u64 {
        let address = self.guest.data_address(space, va, leaf.shift());
        match (&self.host, &self.machine.page_table.host) {
            (Some(memory), Some(host)) => memory.data_address(HOST_SPACE, address, host.page_size.shift()),
            _ => address,
        }
    }

    /// A context switch on a hardware thread throws these away.
    /// Lines that all instances of the last data cache hold.
    pub fn last_cache_lines(&self) -> u64 {
        let level = self.machine.caches.iter().map(|cache| cache.level).max();
        let all = self.machine.caches.iter().zip(&self.caches);
        let last = all.filter(|(cache, _)| Some(cache.level) == level);
        last.flat_map(|(_, instances)| instances).map(TwinArray::held).sum()
    }

    pub fn flush(&mut self, thread: usize, data_caches: bool) {
        let m = &self.machine;
        for (i, t) in m.tlbs.iter().enumerate() {
            let array = &mut self.tlbs[i][instance(m, t.shared_by, thread)].array;
            self.tlb_counts[i].invalidated += array.invalidate(|e| e.space != KERNEL_SPACE);
        }
        for (i, w) in m.walk_caches.iter().enumerate().filter(|(_, w)| w.stage == Stage::Guest) {
            self.walk_caches[i][instance(m, w.shared_by, thread)].invalidate(|&(space, _)| space != KERNEL_SPACE);
        }
        for (i, c) in m.caches.iter().enumerate().filter(|(_, c)| data_caches && c.shared_by != SharedBy::Socket) {
            self.caches[i][instance(m, c.shared_by, thread)].invalidate(|_| true);
        }
    }

    /// All entries held under a process go that this hardware thread reaches.
    pub fn forget_process(&mut self, thread: usize, process: u32) {
        let (m, space) = (&self.machine, u64::from(process));
        for (i, t) in m.tlbs.iter().enumerate() {
            let array = &mut self.tlbs[i][instance(m, t.shared_by, thread)].array;
            self.tlb_counts[i].invalidated += array.invalidate(|e| e.space == space);
        }
        for (i, w) in m.walk_caches.iter().enumerate().filter(|(_, w)| w.stage == Stage::Guest) {
            self.walk_caches[i][instance(m, w.shared_by, thread)].invalidate(|key| key.0 == space);
        }
    }

    /// Entries held under a process that overlap one of the ranges go, and all its walk-cache entries.
    pub fn shoot_down(&mut self, process: u32, ranges: &[Range<u64>]) {
        let space = u64::from(process);
        for (i, instances) in self.tlbs.iter_mut().enumerate() {
            for tlb in instances {
                self.tlb_counts[i].invalidated +=
                    tlb.array.invalidate(|e| e.space == space && ranges.iter().any(|range| e.overlaps(range)));
            }
        }
        for (w, instances) in self.machine.walk_caches.iter().zip(&mut self.walk_caches) {
            for array in instances.iter_mut().filter(|_| w.stage == Stage::Guest) {
                array.invalidate(|key| key.0 == space);
            }
        }
    }
}

pub fn total_threads(m: &Machine) -> usize {
    (m.topology.sockets * m.topology.cores_per_socket * m.topology.threads_per_core) as usize
}

/// Which instance of a structure a hardware thread uses.
pub fn instance(m: &Machine, shared_by: SharedBy, hardware_thread: usize) -> usize {
    let threads = m.topology.threads_per_core as usize;
    let cores = m.topology.cores_per_socket as usize;
    match shared_by {
        SharedBy::Thread => hardware_thread,
        SharedBy::Core => hardware_thread / threads,
        SharedBy::Socket => hardware_thread / (threads * cores),
    }
}
