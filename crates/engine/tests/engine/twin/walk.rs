//! Walks, and the data caches that serve them and the data accesses (SEMANTICS.md §6 and §7).

use lookaside_engine::os::{self, HOST_SPACE};
use lookaside_engine::WalkModel;
use lookaside_machine::{FilledBy, PageSize, Serves, Stage, TableFormat, TableLevel};

use super::hardware::{instance, total_threads, TranslationRequest, TwinHardware};
use super::model::TwinStep;
use super::rows::CostCounts;

impl TwinHardware {
    pub fn walk(&mut self, r: &TranslationRequest, step: &mut TwinStep, counts: &mut CostCounts) {
        counts.walk_units += os::to_units(self.machine.walker.base_cycles);
        let levels = self.machine.page_table.format.levels();
        let leaf_level = leaf_level(self.machine.page_table.format, r.leaf);
        let space = r.space();
        let known = self.ask_directories(r, leaf_level).or_else(|| {
            self.ask_walk_caches(r.hardware_thread, Stage::Guest, leaf_level, counts, |level| {
                (space, os::entry_prefix(level, r.va))
            })
        });
        for level in levels.iter().filter(|l| l.level >= leaf_level && known.is_none_or(|k| l.level < k)) {
            let entry = self.guest.entry_address(space, level, r.va);
            let entry = self.host_translate(r.hardware_thread, entry, step, counts);
            self.refer(r.hardware_thread, Stage::Guest, level.level, entry, step, counts);
            self.tables_read.insert((space, level.level, os::table_prefix(level, r.va)));
            if level.level == 2 && self.leads_through_directory(r, leaf_level) {
                for tlb in self.directories() {
                    self.fill_directory(r, tlb, os::entry_prefix(level, r.va));
                }
            }
            if level.level > leaf_level {
                let key = (space, os::entry_prefix(level, r.va));
                self.fill_walk_caches(r.hardware_thread, Stage::Guest, level.level, key);
            }
        }
        let byte = self.guest.data_address(space, r.va, r.leaf.shift());
        self.host_translate(r.hardware_thread, byte, step, counts);
    }

    /// The leaf is below level 2, or there and held by the host in smaller pages.
    fn leads_through_directory(&self, r: &TranslationRequest, leaf_level: u32) -> bool {
        let host = &self.machine.page_table.host;
        leaf_level < 2 || leaf_level == 2 && host.as_ref().is_some_and(|host| host.page_size < r.leaf)
    }

    /// Asks the TLB arrays that hold entries of directories.
    fn ask_directories(&mut self, r: &TranslationRequest, leaf_level: u32) -> Option<u32> {
        let level = *self.machine.page_table.format.levels().iter().find(|l| l.level == 2)?;
        if !self.leads_through_directory(r, leaf_level) {
            return None;
        }
        for (i, tlb) in self.directories().into_iter().enumerate() {
            let counts = self.machine.walk_caches.len() + i;
            self.walk_cache_counts[counts].walk_lookups += 1;
            if self.hit_directory(r, tlb, os::entry_prefix(&level, r.va)) {
                self.walk_cache_counts[counts].walk_hits += 1;
                return Some(2);
            }
        }
        None
    }

    /// The kernel reads an entry (SEMANTICS.md §12); the units that it takes.
    pub fn read_entry(
        &mut self,
        thread: usize,
        space: u64,
        va: u64,
        level: u32,
        step: &mut TwinStep,
        counts: &mut CostCounts,
    ) -> u64 {
        let Some(level) = self.machine.page_table.format.levels().iter().find(|l| l.level == level) else { return 0 };
        let mut address = self.guest.entry_address(space, level, va);
        match (self.host, &self.machine.page_table.host) {
            (Some(memory), Some(host)) if self.walks == WalkModel::CountOnly => {
                address = memory.data_address(HOST_SPACE, address, host.page_size.shift());
            }
            _ => address = self.host_translate(thread, address, step, counts),
        }
        if self.asked(Serves::Load, 1).is_empty() {
            return counts.walk_units;
        }
        let server = self.ask_caches(thread, Serves::Load, address, 1, false);
        step.data_server = Some(server);
        counts.walk_units + self.load_units(server)
    }

    /// The host stage: guest-physical to host-physical. Does nothing when not nested.
    fn host_translate(&mut self, thread: usize, address: u64, step: &mut TwinStep, counts: &mut CostCounts) -> u64 {
        let (Some(memory), Some(host)) = (self.host, self.machine.page_table.host.clone()) else { return address };
        let leaf_level = leaf_level(host.format, host.page_size);
        let page = address >> host.page_size.shift();
        let translated = memory.data_address(HOST_SPACE, address, host.page_size.shift());
        if self.ask_walk_cache_level(thread, Stage::Host, 1, (HOST_SPACE, page), counts) {
            return translated;
        }
        let known = self.ask_walk_caches(thread, Stage::Host, leaf_level, counts, |level| {
            (HOST_SPACE, os::entry_prefix(level, address))
        });
        let levels = host.format.levels().iter();
        for level in levels.filter(|l| l.level >= leaf_level && known.is_none_or(|k| l.level < k)) {
            let entry = memory.entry_address(HOST_SPACE, level, address);
            self.refer(thread, Stage::Host, level.level, entry, step, counts);
            if level.level > leaf_level {
                self.fill_walk_caches(thread, Stage::Host, level.level, (HOST_SPACE, os::entry_prefix(level, address)));
            }
        }
        self.fill_walk_caches(thread, Stage::Host, 1, (HOST_SPACE, page));
        translated
    }

    /// Asks the caches of levels above the leaf's, ascending; the level of the first hit.
    fn ask_walk_caches(
        &mut self,
        thread: usize,
        stage: Stage,
        leaf_level: u32,
        counts: &mut CostCounts,
        key: impl Fn(&TableLevel) -> (u64, u64),
    ) -> Option<u32> {
        let format = match (stage, &self.machine.page_table.host) {
            (Stage::Host, Some(host)) => host.format,
            _ => self.machine.page_table.format,
        };
        let above = format.levels().iter().rev().filter(|l| l.level > leaf_level);
        for level in above {
            if self.ask_walk_cache_level(thread, stage, level.level, key(level), counts) {
                return Some(level.level);
            }
        }
        None
    }

    fn ask_walk_cache_level(
        &mut self,
        thread: usize,
        stage: Stage,
        level: u32,
        key: (u64, u64),
        counts: &mut CostCounts,
    ) -> bool {
        for (i, w) in self.machine.walk_caches.iter().enumerate() {
            if w.stage != stage || w.table_level != level {
                continue;
            }
            let array = &mut self.walk_caches[i][instance(&self.machine, w.shared_by, thread)];
            let set = key.1 % array.sets();
            self.walk_cache_counts[i].walk_lookups += 1;
            if let Some(way) = array.find(set, |e| *e == key) {
                array.touch(set, way);
                self.walk_cache_counts[i].walk_hits += 1;
                counts.walk_units += os::to_units(w.hit_cycles);
                return true;
            }
        }
        false
    }

    fn fill_walk_caches(&mut self, thread: usize, stage: Stage, level: u32, key: (u64, u64)) {
        for (i, w) in self.machine.walk_caches.iter().enumerate() {
            if w.stage == stage && w.table_level == level {
                let array = &mut self.walk_caches[i][instance(&self.machine, w.shared_by, thread)];
                let set = key.1 % array.sets();
                array.fill(set, key);
            }
        }
    }

    /// One reference of a walk, at its address in the machine's memory.
    fn refer(
        &mut self,
        thread: usize,
        stage: Stage,
        level: u32,
        address: u64,
        step: &mut TwinStep,
        counts: &mut CostCounts,
    ) {
        let server = match &self.walks {
            WalkModel::AlwaysAt(name) => {
                self.machine.caches.iter().position(|c| c.name == *name).expect("a cache of the machine")
            }
            _ => self.ask_caches(thread, Serves::Load, address, self.machine.walker.first_cache_level, true),
        };
        counts.walk_references += 1;
        counts.walk_references_memory += u64::from(server == self.machine.caches.len());
        counts.walk_units += self.server_units(server, self.machine.walk_memory_cycles());
        step.references.push((stage, level, address, server));
    }

    fn server_units(&self, server: usize, memory_cycles: f64) -> u64 {
        let cycles = self.machine.caches.get(server).map_or(memory_cycles, |c| c.hit_cycles);
        os::to_units(cycles)
    }

    /// The data access after translation; stall units.
    pub fn data_access(&mut self, r: &TranslationRequest, step: &mut TwinStep) -> u64 {
        let address = self.physical(r.space(), r.va, r.leaf);
        let Some(&first) = self.asked(r.kind, 1).first() else { return 0 };
        let server = self.ask_caches(r.hardware_thread, r.kind, address, 1, false);
        step.data_server = Some(server);
        let memory = self.machine.memory.cycles;
        let units = self.server_units(server, memory);
        let stream = self.machine.stream;
        let units = match stream {
            Some(stream) if r.kind != Serves::Fetch && self.goes_on(r) => {
                step.streamed = true;
                let from_memory = server == self.machine.caches.len();
                let most = if from_memory { stream.memory_cycles } else { stream.cache_cycles };
                units.min(os::to_units(most))
            }
            _ => units,
        };
        units.saturating_sub(self.server_units(first, memory))
    }

    /// A line is touched (SEMANTICS.md §12); stall units.
    pub fn touch_line(&mut self, r: &TranslationRequest) -> u64 {
        let address = self.physical(r.space(), r.va, r.leaf);
        let Some(&first) = self.asked(r.kind, 1).first() else { return 0 };
        let server = self.ask_caches(r.hardware_thread, r.kind, address, 1, false);
        self.load_units(server).saturating_sub(self.load_units(first))
    }

    /// A walk for an access that goes on with an ascending walk costs no more than the machine says.
    pub fn walk_ahead(&mut self, r: &TranslationRequest, counts: &mut CostCounts) {
        let most = self.machine.stream.and_then(|stream| stream.walk_cycles);
        let (Some(most), false, false) = (most, r.kind == Serves::Fetch, self.asked(r.kind, 1).is_empty()) else {
            return;
        };
        let before = self.streams.clone();
        if self.goes_on(r) {
            counts.walk_units = counts.walk_units.min(os::to_units(most));
        }
        self.streams = before;
    }

    /// What a load costs that is served by its first cache, or by this server.
    pub fn first_load_units(&self) -> u64 {
        self.asked(Serves::Load, 1).first().map_or(0, |&first| self.load_units(first))
    }

    pub fn load_units(&self, server: usize) -> u64 {
        self.server_units(server, self.machine.memory.cycles)
    }

    /// Whether the access goes on with an ascending walk of its hardware thread over the machine's smallest lines.
    fn goes_on(&mut self, r: &TranslationRequest) -> bool {
        let bytes = self.machine.caches.iter().map(|c| c.line_bytes).min().expect("a cache").min(4096);
        let line = r.va / u64::from(bytes);
        let walks = self.streams.entry(r.hardware_thread).or_default();
        let mut lines = 1;
        let mut streamed = false;
        if let Some(same) = walks.iter().position(|walk| walk.0 == line) {
            lines = walks.remove(same).1;
        } else if let Some(before) = walks.iter().position(|walk| walk.0 + 1 == line) {
            lines = walks.remove(before).1 + 1;
            streamed = lines >= 3;
        } else if walks.len() == 16 {
            walks.remove(0);
        }
        walks.push((line, lines));
        streamed
    }

    /// The caches that are asked, in order.
    fn asked(&self, kind: Serves, first_level: u32) -> Vec<usize> {
        let caches = &self.machine.caches;
        let serve = |&i: &usize| caches[i].serves.contains(&kind) && caches[i].level >= first_level;
        let mut asked: Vec<_> = (0..caches.len()).filter(serve).collect();
        asked.sort_by_key(|&i| caches[i].level);
        asked
    }

    /// Looks an address up and fills what was asked in vain, but for caches that stores don't fill; the number of the
    /// server, memory being one past the last.
    fn ask_caches(&mut self, thread: usize, kind: Serves, address: u64, first_level: u32, walk: bool) -> usize {
        let mut server = self.machine.caches.len();
        // What the cache asked before threw out.
        let (mut victim, mut before): (Option<u64>, Option<usize>) = (None, None);
        for i in self.asked(kind, first_level) {
            let cache = &self.machine.caches[i];
            let line = address / u64::from(cache.line_bytes);
            let array = &mut self.caches[i][instance(&self.machine, cache.shared_by, thread)];
            let set = u64::from(cache.index.set_of(line, array.sets() as u32));
            let counts = &mut self.cache_counts[i];
            let (lookups, hits) = if walk {
                (&mut counts.walk_lookups, &mut counts.walk_hits)
            } else {
                (&mut counts.data_lookups, &mut counts.data_hits)
            };
            *lookups += 1;
            if let Some(way) = array.find(set, |l| *l == line) {
                if cache.filled_by == FilledBy::Victims {
                    array.remove(set, way);
                } else {
                    array.touch(set, way);
                }
                *hits += 1;
                server = i;
            } else if cache.filled_by == FilledBy::Misses && (kind != Serves::Store || cache.write_allocate) {
                victim = array.replace(set, line);
                before = Some(i);
                continue;
            }
            if let (FilledBy::Victims, Some(line)) = (cache.filled_by, victim.take()) {
                let set = u64::from(cache.index.set_of(line, array.sets() as u32));
                match array.find(set, |l| *l == line) {
                    Some(way) => array.touch(set, way),
                    None => drop(array.replace(set, line)),
                }
            }
            if server == i || (cache.filled_by == FilledBy::Victims && self.is_in_a_peer(thread, i, before, line)) {
                if server != i {
                    let counts = &mut self.cache_counts[i];
                    *(if walk { &mut counts.walk_hits } else { &mut counts.data_hits }) += 1;
                }
                server = i;
                break;
            }
        }
        server
    }

    /// Does another instance of the cache asked before hold the line, out of those of the hardware threads that share this
    /// cache's?
    fn is_in_a_peer(&self, thread: usize, cache: usize, before: Option<usize>, line: u64) -> bool {
        let m = &self.machine;
        let Some(before) = before else { return false };
        let of = |cache: usize, thread: usize| instance(m, m.caches[cache].shared_by, thread);
        (0..total_threads(m))
            .filter(|&other| of(cache, other) == of(cache, thread) && of(before, other) != of(before, thread))
            .any(|other| {
                let array = &self.caches[before][of(before, other)];
                let set = u64::from(m.caches[before].index.set_of(line, array.sets() as u32));
                array.find(set, |l| *l == line).is_some()
            })
    }
}

fn leaf_level(format: TableFormat, leaf: PageSize) -> u32 {
    format.levels().iter().find(|l| l.leaf_sizes.contains(&leaf)).expect("a page of the format").level
}
