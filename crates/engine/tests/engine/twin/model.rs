//! The slow twin: what the engine does, written down from SEMANTICS.md with maps and lists. Every
//! access searches everything. Nothing here is clever, so that it can be checked by reading.

use std::collections::{BTreeMap, VecDeque};

use lookaside_engine::os::{self, to_cycles};
use lookaside_engine::{AccessResult, Detail, IntervalCounts, Outcome, Reference, Setup, Side};
use lookaside_machine::{Machine, PageSize, Serves, Stage, SwitchAction, TableFormat};
use lookaside_trace::{Block, Kind};

use super::background::TwinBackground;
use super::hardware::{total_threads, TranslationRequest, TwinHardware};
use super::rows::{CostCounts, TwinRows};
use super::space::{inside, page_range, PageMark, TwinSpace};

/// What one access did.
#[derive(Default)]
pub struct TwinStep {
    /// TLB array that hit, and whether by a lock.
    pub hit: Option<(usize, bool)>,
    /// The walk, reference by reference; a server one past the last cache = memory.
    pub references: Vec<(Stage, u32, u64, usize)>,
    /// Translation cycles in the engine's units.
    pub units: u64,
    /// What served the data access itself.
    pub data_server: Option<usize>,
    /// The access goes on with an ascending walk.
    pub streamed: bool,
    /// Of its line, beyond a hit in the first cache, in the engine's units.
    pub stall_units: u64,
}

impl TwinStep {
    /// In the engine's words.
    pub fn result(&self, machine: &Machine) -> AccessResult {
        let cache = |server: usize| Some(server).filter(|&i| i < machine.caches.len());
        let reference =
            |&(stage, level, address, server): &_| Reference { address, level, stage, server: cache(server) };
        AccessResult {
            hit: self.hit.map(|(tlb, _)| (machine.tlbs[tlb].level, tlb)),
            locked: self.hit.is_some_and(|hit| hit.1),
            references: self.references.iter().map(reference).collect(),
            memory_references: self.references.iter().filter(|of| cache(of.3).is_none()).count() as u64,
            cycles: to_cycles(self.units.into()),
            data_server: self.data_server.and_then(cache),
            is_from_memory: self.data_server.is_some_and(|server| cache(server).is_none()),
            streamed: self.streamed,
            stall_cycles: to_cycles(self.stall_units.into()),
        }
    }
}

#[derive(Default)]
pub struct SideCounts {
    pub accesses: u64,
    pub counts: CostCounts,
    walks_by_size: BTreeMap<PageSize, u64>,
    pub by_server: BTreeMap<usize, u64>,
    pub by_table: BTreeMap<(bool, u32), u64>,
    pub stall_units: u64,
}

/// The twin of `Engine`.
pub struct Twin {
    pub setup: Setup,
    pub format: TableFormat,
    pub base: PageSize,
    pub huge: PageSize,
    pub hardware: TwinHardware,
    pub kernel: TwinSpace,
    pub spaces: BTreeMap<u32, TwinSpace>,
    pub rows: TwinRows,
    pub sides: [SideCounts; 2],
    /// Hardware thread of each (process, thread).
    pub threads: BTreeMap<(u32, u32), usize>,
    /// Process that last ran on each hardware thread.
    pub running: BTreeMap<usize, u32>,
    /// Of each hardware thread, the processes that have places, in the order in which they got them.
    residents: BTreeMap<usize, VecDeque<u32>>,
    pub context_switches: u64,
    pub shootdowns: u64,
    /// Loads, stores, fetches by process.
    pub kinds: BTreeMap<u32, [u64; 3]>,
    /// Loads, stores, instructions by process.
    pub totals: BTreeMap<u32, [u64; 3]>,
    /// What counts is kept apart: an interval warms up.
    pub warms_up: bool,
    pub warm_up: Option<Box<TwinBackground>>,
    /// CPU time, and what was counted before.
    pub intervals: Vec<(u64, [u64; 5])>,
    /// Lines of the last cache when the interval began to count; what came to it in those before.
    pub lines: Option<u64>,
    pub filled: Vec<u64>,
    /// What each access did, in order.
    pub steps: Vec<TwinStep>,
}

impl Twin {
    pub fn new(setup: &Setup) -> Self {
        let format = setup.machine.page_table.format;
        let sizes = format.page_sizes();
        let first_huge = || *sizes.iter().find(|s| s.bytes() >= 1 << 20).expect("every format has one");
        Self {
            format,
            base: sizes[0],
            huge: setup.os.huge_page.unwrap_or_else(first_huge),
            hardware: TwinHardware::new(setup),
            kernel: TwinSpace::default(),
            spaces: BTreeMap::new(),
            rows: TwinRows::default(),
            sides: Default::default(),
            threads: BTreeMap::new(),
            running: BTreeMap::new(),
            residents: BTreeMap::new(),
            context_switches: 0,
            shootdowns: 0,
            kinds: BTreeMap::new(),
            totals: BTreeMap::new(),
            warms_up: false,
            warm_up: None,
            intervals: Vec::new(),
            lines: None,
            filled: Vec::new(),
            steps: Vec::new(),
            setup: setup.clone(),
        }
    }

    pub fn run(&mut self, block: &Block) {
        let seen = self.threads.len();
        let total = total_threads(&self.setup.machine);
        self.threads.entry((block.process, block.thread)).or_insert(seen % total);
        if self.warms_up {
            self.swap_warm_up();
        }
        let mut events = block.events.iter().peekable();
        for i in 0..block.addr.len() {
            while let Some((_, event)) = events.next_if(|(position, _)| *position as usize <= i) {
                self.event(block, event);
            }
            let ip = if block.kind[i] == Kind::Fetch { block.addr[i] } else { column(&block.ip, i) };
            self.access(block, block.kind[i], block.addr[i], ip, u64::from(column(&block.repeat, i)));
        }
        for (_, event) in events {
            self.event(block, event);
        }
        if self.warms_up {
            self.swap_warm_up();
        }
    }

    fn access(&mut self, block: &Block, kind: Kind, addr: u64, ip: u64, repeats: u64) {
        let thread = (block.process, block.thread);
        let hardware_thread = self.threads[&thread];
        self.switch_to(hardware_thread, block.process);

        let mut r = TranslationRequest {
            hardware_thread,
            process: block.process,
            global: os::is_global(self.format, addr),
            kind: serves(kind),
            va: os::translated(self.format, addr),
            leaf: self.base,
        };
        let owner = if r.global { &mut self.kernel } else { self.spaces.entry(r.process).or_default() };
        let process = (!r.global).then_some(r.process);
        r.leaf = owner.leaf(process, &self.setup.os.pages, r.va, self.base, self.huge);
        let page = page_range(r.va, r.leaf);
        let region = match owner.touched.get(&(page.start, r.leaf)) {
            Some(PageMark::Row(region)) => *region,
            _ => owner.mapping_at(r.va).map(|m| m.region),
        };
        owner.touched.insert((page.start, r.leaf), PageMark::Row(region));

        let mut step = TwinStep::default();
        let mut counts = CostCounts::default();
        let held = self.hardware.translate(&r, owner, &mut step, &mut counts);
        let mut repeat_units = 0;
        if let Some(held) = held {
            let size = self.hardware.levels(&r)[0].iter().find(|a| a.0 == held.tlb).expect("it takes part").1;
            repeat_units = self.hardware.count_repeats(held.tlb, size, held.locked, repeats);
        }
        let stall_units = self.hardware.data_access(&r, &mut step);
        step.units = counts.tlb_hit_units + counts.walk_units;
        step.stall_units = stall_units;

        self.kinds.entry(r.process).or_default()[kind as usize] += 1 + repeats;
        let side = &mut self.sides[usize::from(kind == Kind::Fetch)];
        side.accesses += 1 + repeats;
        side.counts.add(&counts);
        side.counts.tlb_hit_units += repeat_units;
        side.stall_units += stall_units;
        if counts.walks > 0 {
            *side.walks_by_size.entry(r.leaf).or_default() += 1;
        }
        for (stage, level, _, server) in &step.references {
            *side.by_server.entry(*server).or_default() += 1;
            *side.by_table.entry((*stage == Stage::Host, *level)).or_default() += 1;
        }

        let key = (r.space(), page.start, r.leaf, region);
        self.rows.count_accesses(key, thread, 1 + repeats);
        let live = if r.global { None } else { owner.live_at(r.va) };
        if let Some(live) = live.filter(|live| inside(&page, &live.range)) {
            self.rows.count_object_accesses(r.process, &live.site, 1 + repeats);
        }
        if counts.l1_misses > 0 {
            self.rows.charge(key, thread, ip, live.map(|live| &live.site), &counts);
        }
        self.steps.push(step);
    }

    /// The size that is decided for a page, the smallest if none is.
    pub fn decided_leaf(&self, global: bool, process: u32, va: u64) -> PageSize {
        let owner = if global { Some(&self.kernel) } else { self.spaces.get(&process) };
        owner.map_or(self.base, |owner| owner.decided_leaf(va, self.base, self.huge))
    }

    /// `Event::Repeats`.
    pub fn repeats(&mut self, block: &Block, addr: u64, kind: Kind, count: u64) {
        if count == 0 {
            return;
        }
        let global = os::is_global(self.format, addr);
        let va = os::translated(self.format, addr);
        let owner = if global { &mut self.kernel } else { self.spaces.entry(block.process).or_default() };
        let leaf = owner.decided_leaf(va, self.base, self.huge);
        let page = page_range(va, leaf);
        let region = match owner.touched.get(&(page.start, leaf)) {
            Some(PageMark::Row(region)) => *region,
            _ => owner.mapping_at(va).map(|m| m.region),
        };
        let r = TranslationRequest { hardware_thread: 0, process: block.process, global, kind: serves(kind), va, leaf };
        let side = &mut self.sides[usize::from(kind == Kind::Fetch)];
        if let Some(first) = self.hardware.levels(&r).first() {
            let (tlb, size) = first[0];
            side.counts.tlb_hit_units += self.hardware.count_repeats(tlb, size, false, count);
        }
        self.kinds.entry(block.process).or_default()[kind as usize] += count;
        side.accesses += count;
        self.rows.count_accesses((r.space(), page.start, leaf, region), (block.process, block.thread), count);
        let live = if global { None } else { owner.live_at(va) };
        if let Some(live) = live.filter(|live| inside(&page, &live.range)) {
            self.rows.count_object_accesses(block.process, &live.site, count);
        }
    }

    fn switch_to(&mut self, hardware_thread: usize, process: u32) {
        let before = self.running.insert(hardware_thread, process);
        if before.is_some_and(|before| before != process) {
            self.context_switches += 1;
            match self.setup.machine.context_switch.action {
                SwitchAction::Nothing => {}
                SwitchAction::FlushTlb => self.hardware.flush(hardware_thread, false),
                SwitchAction::FlushTlbAndCaches => self.hardware.flush(hardware_thread, true),
            }
        }
        if let Some(most) = self.setup.machine.context_switch.address_spaces {
            let residents = self.residents.entry(hardware_thread).or_default();
            if !residents.contains(&process) {
                residents.push_back(process);
                if residents.len() > most as usize {
                    let gone = residents.pop_front().expect("one too many");
                    self.hardware.forget_process(hardware_thread, gone);
                }
            }
        }
    }

    pub fn finish(self) -> Outcome {
        let end = self.interval_units();
        let filled: Vec<u64> = self.filled.iter().copied().chain([self.filled_lines()]).collect();
        let machine = &self.setup.machine;
        let mut outcome = Outcome { machine: machine.name.clone(), ..Outcome::default() };
        let ends = self.intervals.iter().skip(1).map(|(_, units)| *units).chain([end]);
        outcome.intervals = self
            .intervals
            .iter()
            .zip(ends)
            .zip(filled)
            .map(|(((cpu_ns, begin), end), filled_lines)| {
                let [accesses, walks, walk, translation, other] =
                    std::array::from_fn(|i| end[i].saturating_sub(begin[i]));
                let cycles = |units: u64| to_cycles(units.into());
                IntervalCounts {
                    cpu_ns: *cpu_ns,
                    accesses,
                    walks,
                    walk_cycles: cycles(walk),
                    translation_cycles: cycles(translation),
                    modelled_cycles: accesses as f64 + cycles(translation) + cycles(other),
                    filled_lines,
                }
            })
            .collect();
        let [data, fetch] = self.sides;
        outcome.data = data.finish(&self.setup);
        outcome.fetch = fetch.finish(&self.setup);
        outcome.tlbs = self.hardware.tlb_counts;
        for (counts, by_size) in outcome.tlbs.iter_mut().zip(self.hardware.hits_by_size) {
            counts.hits_by_page_size = by_size.into_iter().filter(|&(_, n)| n > 0).collect();
        }
        outcome.walk_caches = self.hardware.walk_cache_counts;
        outcome.caches = self.hardware.cache_counts;
        for (process, kinds) in &self.kinds {
            let [loads, stores, instructions] = self.totals.get(process).unwrap_or(kinds);
            outcome.loads += loads;
            outcome.stores += stores;
            outcome.instructions += instructions;
        }
        for (_, [loads, stores, instructions]) in self.totals.iter().filter(|(p, _)| !self.kinds.contains_key(p)) {
            outcome.loads += loads;
            outcome.stores += stores;
            outcome.instructions += instructions;
        }
        outcome.context_switches = self.context_switches;
        outcome.shootdowns = self.shootdowns;
        let switch_units = u128::from(os::to_units(machine.context_switch.cycles)) * u128::from(self.context_switches);
        outcome.switch_cycles = to_cycles(switch_units);
        outcome.pages_touched = self.rows.pages_touched();
        for (_, level, _) in self.hardware.tables_read {
            let table = self.format.levels().iter().find(|l| l.level == level).expect("a level of the format");
            outcome.table_bytes += u64::from(table.entry_bytes) << table.index_bits;
        }
        if self.setup.detail == Detail::Rows {
            self.rows.finish(self.format, &mut outcome);
        }
        outcome
    }
}

impl SideCounts {
    fn finish(self, setup: &Setup) -> Side {
        let machine = &setup.machine;
        let servers = machine.caches.iter().map(|c| c.name.clone()).chain(["memory".to_owned()]);
        let served = |(i, name)| (name, self.by_server.get(&i).copied().unwrap_or(0));
        let guest = Some(("guest", false, machine.page_table.format));
        let host = machine.page_table.host.as_ref().map(|host| ("host", true, host.format));
        let mut by_table = Vec::new();
        for (word, is_host, format) in guest.into_iter().chain(host) {
            for level in format.levels().iter().rev() {
                let count = self.by_table.get(&(is_host, level.level)).copied().unwrap_or(0);
                by_table.push((format!("{word} L{}", level.level), count));
            }
        }
        Side {
            accesses: self.accesses,
            cost: self.counts.cost(),
            walk_references_by_server: servers.enumerate().map(served).collect(),
            walk_references_by_table: by_table,
            walks_by_page_size: self.walks_by_size.into_iter().collect(),
            data_stall_cycles: to_cycles(self.stall_units.into()),
        }
    }
}

fn column<T: Copy + Default>(column: &[T], i: usize) -> T {
    column.get(i).copied().unwrap_or_default()
}

pub fn serves(kind: Kind) -> Serves {
    match kind {
        Kind::Load => Serves::Load,
        Kind::Store => Serves::Store,
        Kind::Fetch => Serves::Fetch,
    }
}
