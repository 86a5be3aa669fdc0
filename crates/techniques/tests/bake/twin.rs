//! The model once more, as plainly as it can be said: lists in the order of use, and time by time. Only where frames
//! and tables lie is the engine's, and only the core, which has a twin of its own
//! (`crates/timing/tests/core_model.rs`), is not done anew.

use lookaside_engine::os::{entry_prefix, PhysicalMemory, HOST_SPACE};
use lookaside_engine::FrameLayout;
use lookaside_machine::{Machine, TableFormat, TableLevel};
use lookaside_stats::SplitMix64;
use lookaside_techniques::bake::{
    BakeResult, BakedProgram, HelperPlacement, ModelledBaker, ProgramFlow, Stressor, TouchMethod,
};
use lookaside_timing::{AddressFlow, CoreParameters, MemoryTimes, TimedAccess, TimedCore};
use lookaside_trace::{Block, Kind};

/// Where all memory begins.
pub const BASE: u64 = 1 << 36;
/// Of program and helper.
const SPACE: u64 = 1;
/// Of the first stressor; that of the next is one less.
const STRESSOR: u64 = u32::MAX as u64;

/// Sets of keys, each the most recent first.
struct Lists {
    sets: Vec<Vec<u128>>,
    ways: usize,
}

impl Lists {
    fn new(entries: u64, ways: u64) -> Self {
        Self { sets: vec![Vec::new(); (entries / ways) as usize], ways: ways as usize }
    }

    fn has(&mut self, number: u64, key: u128) -> bool {
        let set = self.set(number);
        let at = set.iter().position(|of| *of == key);
        if let Some(at) = at {
            set.remove(at);
            set.insert(0, key);
        }
        at.is_some()
    }

    /// The key that goes out, if one does.
    fn put(&mut self, number: u64, key: u128) -> Option<u128> {
        if self.has(number, key) {
            return None;
        }
        let ways = self.ways;
        let set = self.set(number);
        set.insert(0, key);
        if set.len() > ways {
            set.pop()
        } else {
            None
        }
    }

    /// Takes a key out: was it there?
    fn take(&mut self, number: u64, key: u128) -> bool {
        let set = self.set(number);
        let before = set.len();
        set.retain(|of| *of != key);
        set.len() < before
    }

    fn set(&mut self, number: u64) -> &mut Vec<u128> {
        let n = self.sets.len() as u64;
        &mut self.sets[(number % n) as usize]
    }
}

/// A core's own.
struct Core {
    first_tlb: Lists,
    second_tlb: Lists,
    /// Of levels 2, 3, 4.
    walk_caches: [Lists; 3],
    l1: Lists,
    l2: Lists,
}

/// Of one of the two.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    accesses: u64,
    walks: u64,
    references: u64,
    /// Walk references, and data lines, served by L1, L2, L3, memory.
    walks_by: [u64; 4],
    data_by: [u64; 4],
    translation_cycles: f64,
    stall_cycles: f64,
}

/// What is compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    program: Tally,
    program_cycles: f64,
    /// Touches after the warm-up, rounds.
    helper: Option<(Tally, u64, u64)>,
}

impl Summary {
    pub fn of(baked: &BakeResult) -> Self {
        let tally = |outcome: &lookaside_engine::Outcome| {
            let by = |name: &str| {
                let found = outcome.data.walk_references_by_server.iter().find(|of| of.0 == name);
                found.expect("a server").1
            };
            let cache = |name: &str| outcome.caches.iter().find(|of| of.name == name).expect("a cache");
            let last = cache("l3");
            Tally {
                accesses: outcome.data.accesses,
                walks: outcome.data.cost.walks,
                references: outcome.data.cost.walk_references,
                walks_by: ["l1d-cache", "l2", "l3", "memory"].map(by),
                data_by: [
                    cache("l1d-cache").data_hits,
                    cache("l2").data_hits,
                    last.data_hits,
                    last.data_lookups - last.data_hits,
                ],
                translation_cycles: outcome.translation_cycles(),
                stall_cycles: outcome.data.data_stall_cycles,
            }
        };
        Self {
            program: tally(&baked.program),
            program_cycles: baked.program_cycles,
            helper: baked.helper.as_ref().map(|helper| (tally(&helper.outcome), helper.touches, helper.rounds)),
        }
    }
}

struct World<'a> {
    machine: &'a Machine,
    guest: PhysicalMemory,
    host: Option<PhysicalMemory>,
    cores: [Core; 4],
    l3: Lists,
}

impl<'a> World<'a> {
    fn new(machine: &'a Machine) -> Self {
        let tlb = |name: &str| {
            let tlb = machine.tlbs.iter().find(|of| of.name == name).expect("a TLB");
            Lists::new(tlb.entries.into(), tlb.ways.count(tlb.entries).into())
        };
        let cache = |name: &str| {
            let cache = machine.caches.iter().find(|of| of.name == name).expect("a cache");
            let lines = cache.size / 64;
            Lists::new(lines, u64::from(cache.ways.count(lines as u32)))
        };
        let walk_cache = |level: u32| {
            let cache = machine.walk_caches.iter().find(|of| of.table_level == level).expect("a walk cache");
            Lists::new(cache.entries.into(), cache.entries.into())
        };
        let core = || Core {
            first_tlb: tlb("l1d"),
            second_tlb: tlb("l2d"),
            walk_caches: [walk_cache(2), walk_cache(3), walk_cache(4)],
            l1: cache("l1d-cache"),
            l2: cache("l2"),
        };
        Self {
            guest: PhysicalMemory::guest(&machine.page_table, FrameLayout::Random, 1),
            host: PhysicalMemory::host(&machine.page_table, FrameLayout::Random, 1),
            cores: [core(), core(), core(), core()],
            l3: cache("l3"),
            machine,
        }
    }

    /// The level of caches that serves a line, from `first` on (4 = memory); it is there afterwards.
    fn line(&mut self, core: usize, first: usize, physical: u64) -> usize {
        let line = physical / 64;
        let key = u128::from(line);
        let own = &mut self.cores[core];
        if first == 1 && own.l1.has(line, key) {
            return 1;
        }
        if first == 1 {
            own.l1.put(line, key);
        }
        if own.l2.has(line, key) {
            return 2;
        }
        // The last one holds what the second ones throw out, and finds what another core's holds.
        let thrown_out = own.l2.put(line, key);
        let was_there = self.l3.take(line, key);
        if let Some(old) = thrown_out {
            self.l3.put(old as u64, old);
        }
        let mut others = self.cores.iter_mut().enumerate().filter(|(number, _)| *number != core);
        let is_elsewhere = others.any(|(_, other)| other.l2.set(line).contains(&key));
        if was_there || is_elsewhere {
            3
        } else {
            4
        }
    }

    fn reference(&mut self, core: usize, physical: u64, tally: &mut Tally) {
        let server = self.line(core, 2, physical);
        tally.references += 1;
        tally.walks_by[server - 1] += 1;
        tally.translation_cycles += [4.0, 12.0, 46.0, 300.0][server - 1];
    }

    /// Host-physical address of a guest-physical one: a walk through four levels, which nothing caches.
    fn host(&mut self, core: usize, address: u64, tally: &mut Tally) -> u64 {
        let Some(memory) = self.host else { return address };
        for level in levels() {
            self.reference(core, memory.entry_address(HOST_SPACE, level, address), tally);
        }
        memory.data_address(HOST_SPACE, address, 12)
    }

    fn walk(&mut self, core: usize, space: u64, va: u64, tally: &mut Tally) {
        tally.walks += 1;
        tally.translation_cycles += self.machine.walker.base_cycles;
        // Spaces differ in their upper half of a key.
        let prefix = |level: &TableLevel| u128::from(space) << 64 | u128::from(entry_prefix(level, va));
        let mut from = 4;
        for level in levels().iter().rev().filter(|level| level.level > 1) {
            let key = prefix(level);
            if self.cores[core].walk_caches[level.level as usize - 2].has(0, key) {
                from = level.level - 1;
                break;
            }
        }
        for level in levels().iter().filter(|level| level.level <= from) {
            let entry = self.host(core, self.guest.entry_address(space, level, va), tally);
            self.reference(core, entry, tally);
            if level.level > 1 {
                let key = prefix(level);
                self.cores[core].walk_caches[level.level as usize - 2].put(0, key);
            }
        }
        self.host(core, self.guest.data_address(space, va, 12), tally);
    }

    /// A load or store by a hardware thread: cycles of translation, of the line.
    fn access(&mut self, thread: u64, space: u64, va: u64, tally: &mut Tally) -> (f64, f64) {
        let core = (thread / 2) as usize;
        let (page, before) = (va >> 12, tally.translation_cycles);
        let key = u128::from(space << 3 | thread) << 64 | u128::from(page);
        tally.accesses += 1;
        if !self.cores[core].first_tlb.has(page, key) {
            if self.cores[core].second_tlb.has(page, key) {
                tally.translation_cycles += 7.0;
            } else {
                self.walk(core, space, va, tally);
                self.cores[core].second_tlb.put(page, key);
            }
            self.cores[core].first_tlb.put(page, key);
        }
        let mut physical = self.guest.data_address(space, va, 12);
        if let Some(host) = self.host {
            physical = host.data_address(HOST_SPACE, physical, 12);
        }
        let stall = self.load(core, physical, tally);
        (tally.translation_cycles - before, stall)
    }

    /// The line of an access or of an entry: its cycles beyond the first cache.
    fn load(&mut self, core: usize, physical: u64, tally: &mut Tally) -> f64 {
        let server = self.line(core, 1, physical);
        tally.data_by[server - 1] += 1;
        let stall = [0.0, 8.0, 42.0, 296.0][server - 1];
        tally.stall_cycles += stall;
        stall
    }

    /// The kernel's read of an entry: all its cycles.
    fn read(&mut self, core: usize, level: &TableLevel, va: u64, tally: &mut Tally) -> f64 {
        let before = tally.translation_cycles;
        let entry = self.host(core, self.guest.entry_address(SPACE, level, va), tally);
        let host = tally.translation_cycles - before;
        host + 4.0 + self.load(core, entry, tally)
    }
}

fn levels() -> &'static [TableLevel] {
    TableFormat::X86_64L4.levels()
}

/// Every touch of a round: its address, and whether the entry above is read, too.
fn round(baker: &ModelledBaker) -> Vec<u64> {
    let mut touches = Vec::new();
    for region in &baker.regions {
        let mut at = region.start / 4096 * 4096;
        while at < region.end {
            touches.push(at);
            at += baker.stride_pages * 4096;
        }
    }
    touches
}

/// A stressor under way.
struct Press {
    loads: u64,
    random: SplitMix64,
    now: f64,
}

impl Press {
    fn new(number: u64) -> Self {
        Self { loads: 0, random: SplitMix64::new(number), now: 0.0 }
    }

    /// Sixteen loads, of 24 that may be under way.
    fn step(&mut self, world: &mut World<'_>, stressor: Stressor, number: u64) {
        let mut latency = 0.0;
        for _ in 0..16 {
            let line = match stressor {
                Stressor::Walk { bytes } => self.loads % (bytes / 64).max(1),
                Stressor::Random { bytes } => self.random.next_u64() % (bytes / 64).max(1),
            };
            self.loads += 1;
            let all = world.access(4 + 2 * number, STRESSOR - number, BASE + line * 64, &mut Tally::default());
            latency += all.0 + all.1;
        }
        self.now += f64::max(16.0, latency / 24.0);
    }
}

/// The model of a program on the machine's first hardware thread.
pub fn twin<'a>(
    machine: &Machine,
    blocks: impl IntoIterator<Item = &'a Block>,
    program: &BakedProgram<'_>,
    baker: Option<&ModelledBaker>,
    stressors: &[Stressor],
) -> Summary {
    let mut world = World::new(machine);
    // Warming up, and after.
    let mut tallies = [Tally::default(), Tally::default()];
    let mut helper_tallies = tallies.clone();
    let (mut seen, mut touches, mut all_touches, mut next_touch) = (0, [0u64; 2], 0usize, 0.0);
    let mut table = None;
    let mut presses: Vec<Press> = (0..stressors.len()).map(|number| Press::new(number as u64)).collect();
    let parameters = match program.flow {
        ProgramFlow::Chained => CoreParameters::ZEN3,
        ProgramFlow::Known { core, .. } => core,
    };
    // Lines of 64 bytes at 3700 MHz.
    let line_cycles = machine.memory.bytes_per_second.map_or(0.0, |rate| 64.0 * 3700e6 / rate);
    let mut core = TimedCore::new(parameters, MemoryTimes { walk_reference_cycles: 300.0, line_cycles });
    let mut warm_cycles = 0.0;
    let all: Vec<u64> = baker.map(round).unwrap_or_default();
    for (number, block) in blocks.into_iter().enumerate() {
        for (at, step) in block.addr.chunks(16).enumerate() {
            let phase = usize::from(seen >= program.warm_accesses);
            for (&va, at) in step.iter().zip(16 * at..) {
                let before = tallies[phase].clone();
                let (translation_cycles, data_cycles) = world.access(0, SPACE, va, &mut tallies[phase]);
                let after = &tallies[phase];
                let mut access = TimedAccess {
                    is_store: block.kind[at] == Kind::Store,
                    address: va,
                    flow: AddressFlow::CHAINED,
                    instructions: 1,
                    hit_cycles: 1.0,
                    translation_cycles,
                    walks: after.walks > before.walks,
                    walk_memory_references: (after.walks_by[3] - before.walks_by[3]) as u32,
                    data_cycles,
                    is_from_memory: after.data_by[3] > before.data_by[3],
                };
                if let ProgramFlow::Known { flows, instructions_per_access, .. } = program.flow {
                    access.flow = flows[number].get(at).copied().unwrap_or(AddressFlow::FREE);
                    // What has come together so far, less what was there before.
                    let [before, after] = [seen, seen + 1].map(|of| (of as f64 * instructions_per_access).floor());
                    access.instructions = (after - before) as u32;
                    access.hit_cycles = 4.0;
                }
                core.access(&access);
                seen += 1;
            }
            let now = core.cycles();
            if phase == 0 {
                warm_cycles = now;
            }
            loop {
                let mut first = None;
                let mut first_at = now;
                for (number, pressing) in presses.iter().enumerate().rev() {
                    if pressing.now <= first_at {
                        (first, first_at) = (Some(number), pressing.now);
                    }
                }
                if let Some(number) = first.filter(|_| baker.is_none() || first_at < next_touch) {
                    presses[number].step(&mut world, stressors[number], number as u64);
                    continue;
                }
                let Some(baker) = baker.filter(|_| next_touch <= now) else { break };
                let thread = if baker.placement == HelperPlacement::SmtSibling { 1 } else { 2 };
                let (va, tally) = (all[all_touches % all.len()], &mut helper_tallies[phase]);
                let latency = match baker.way {
                    TouchMethod::Load | TouchMethod::Prefetch => {
                        let (translation, line) = world.access(thread, SPACE, va, tally);
                        if baker.way == TouchMethod::Load {
                            translation + line
                        } else {
                            translation
                        }
                    }
                    TouchMethod::Entries => {
                        let core = (thread / 2) as usize;
                        let mut cycles = 0.0;
                        if table != Some(va >> 21) {
                            table = Some(va >> 21);
                            cycles = world.read(core, &levels()[2], va, tally);
                        }
                        cycles + world.read(core, &levels()[3], va, tally)
                    }
                };
                touches[phase] += 1;
                all_touches += 1;
                let pace = baker.pace;
                let loop_cycles = pace.touch_cycles + baker.nops as f64 * pace.nop_cycles;
                next_touch += loop_cycles.max(latency / pace.in_flight);
                if all_touches % all.len() == 0 {
                    next_touch += baker.sleep_cycles;
                }
            }
        }
    }
    let [_, counted] = tallies;
    let [_, helped] = helper_tallies;
    let rounds = all_touches.checked_div(all.len()).unwrap_or(0) as u64;
    Summary {
        program_cycles: core.cycles() - warm_cycles,
        program: counted,
        helper: baker.map(|_| (helped, touches[1], rounds)),
    }
}
