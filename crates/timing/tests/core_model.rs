//! The core against a twin that goes cycle by cycle (`RULES.md`, "A core"): every instruction by itself, every cycle of
//! every walker in a list.

use std::collections::HashMap;

use lookaside_timing::{AddressFlow, CoreParameters, FlowRegister, MemoryTimes, TimedAccess, TimedCore};
use proptest::prelude::*;

/// What goes into the core.
#[derive(Clone, Copy, Debug)]
enum Item {
    Access(TimedAccess),
    Stall(u32),
}

/// How many are taken in each cycle, of a thing of which there are `count`.
struct Pool {
    count: u32,
    taken: Vec<u32>,
}

impl Pool {
    /// The first cycle from `from` on at which one is free until it is given back, and when that is. `end`: when it is, if
    /// taken at a cycle.
    fn take(&mut self, from: usize, end: impl Fn(usize) -> usize) -> (usize, usize) {
        if end(from) == from {
            return (from, from);
        }
        let mut start = from;
        loop {
            let cycles = start..end(start);
            self.taken.resize(self.taken.len().max(cycles.end), 0);
            if self.taken[cycles.clone()].iter().all(|taken| *taken < self.count) {
                self.taken[cycles.clone()].iter_mut().for_each(|taken| *taken += 1);
                return (cycles.start, cycles.end);
            }
            start += 1;
        }
    }
}

/// Whether each cycle is one in which memory transfers a line, and the cycles of a line.
#[derive(Clone)]
struct Channel {
    line: usize,
    taken: Vec<bool>,
}

impl Channel {
    /// Takes the first cycles from `asked` on that nobody has: when the line is there.
    fn bring(&mut self, asked: usize, latency: usize) -> usize {
        let mut at = asked;
        for _ in 0..self.line {
            self.taken.resize(self.taken.len().max(at + 1), false);
            while self.taken.get(at) == Some(&true) {
                at += 1;
            }
            self.taken.resize(self.taken.len().max(at + 1), false);
            self.taken[at] = true;
            at += 1;
        }
        if latency > self.line {
            at - self.line + latency
        } else {
            at
        }
    }
}

/// When a walk ends, its references one after another.
fn walk_end(access: &TimedAccess, memory: MemoryTimes, channel: &mut Channel, start: usize) -> usize {
    let references = access.walk_memory_references as usize;
    let latency = memory.walk_reference_cycles as usize;
    let mut at = start + access.translation_cycles as usize - references * latency;
    for _ in 0..references {
        at = channel.bring(at, latency);
    }
    at
}

/// The cycles after each item.
fn twin(core: CoreParameters, memory: MemoryTimes, items: &[Item]) -> Vec<f64> {
    // Every instruction: which item it is, if it is one.
    let mut instructions: Vec<Option<usize>> = Vec::new();
    for (number, item) in items.iter().enumerate() {
        if let Item::Access(access) = item {
            instructions.extend((1..access.instructions.max(1)).map(|_| None));
        }
        instructions.push(Some(number));
    }
    let mut walkers = Pool { count: core.walkers, taken: Vec::new() };
    let mut buffers = Pool { count: core.miss_buffers, taken: Vec::new() };
    let mut channel = Channel { line: memory.line_cycles as usize, taken: Vec::new() };
    let (mut pages, mut lines) = (HashMap::<u64, usize>::new(), HashMap::<u64, usize>::new());
    let mut registers: Vec<(FlowRegister, usize)> = Vec::new();
    // The cycle in which each instruction retires, and each store leaves.
    let (mut retires, mut leaves): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut found = Vec::new();
    let (mut cycle, mut dispatched_in_it, mut places) = (0, 0, 0);
    let mut is_place: Vec<usize> = Vec::new(); // of each instruction that takes a place in the window
    let mut next = 0;
    while next < instructions.len() {
        let item = instructions[next].map(|number| items[number]);
        let last_retired = retires.last().copied().unwrap_or(0);
        let last_left = leaves.last().copied().unwrap_or(0);
        if let Some(Item::Stall(cycles)) = item {
            next += 1;
            let over = if cycles > 0 { last_retired.max(last_left) + cycles as usize } else { last_retired };
            retires.push(over);
            found.push(over.max(last_left) as f64);
            // Nothing is dispatched before.
            if cycles > 0 && over > cycle {
                (cycle, dispatched_in_it) = (over, 0);
            }
            continue;
        }
        let window = core.window as usize;
        let has_place = places < window || retires[is_place[places - window]] <= cycle;
        let mut has_room = true;
        if let Some(Item::Access(access)) = item {
            let queue = core.store_queue as usize;
            has_room = !access.is_store || leaves.len() < queue || leaves[leaves.len() - queue] <= cycle;
        }
        if !has_place || !has_room || dispatched_in_it == core.width {
            (cycle, dispatched_in_it) = (cycle + 1, 0);
            continue;
        }
        next += 1;
        dispatched_in_it += 1;
        places += 1;
        is_place.push(retires.len());
        let Some(Item::Access(access)) = item else {
            retires.push(last_retired.max(cycle));
            continue;
        };
        let came = |register| registers.iter().rev().find(|of| of.0 == register).map_or(0, |of| of.1);
        let begun = if access.flow.from == FlowRegister::NONE { cycle } else { cycle.max(came(access.flow.from)) };
        let (page, line) = (access.address / 4096, access.address / 64);
        let translation = access.translation_cycles as usize;
        let translated = if access.walks {
            let (start, translated) =
                walkers.take(begun, |start| walk_end(&access, memory, &mut channel.clone(), start));
            walk_end(&access, memory, &mut channel, start);
            let known = pages.entry(page).or_default();
            *known = translated.max(*known);
            translated
        } else {
            begun.max(pages.get(&page).copied().unwrap_or(0)) + translation
        };
        let data = access.data_cycles as usize;
        let there = if access.is_from_memory || data > 0 {
            let (start, there) = buffers.take(translated, |start| match access.is_from_memory {
                true => channel.clone().bring(start, data),
                false => start + data,
            });
            if access.is_from_memory {
                channel.bring(start, data);
            }
            let known = lines.entry(line).or_default();
            *known = there.max(*known);
            there
        } else {
            translated.max(lines.get(&line).copied().unwrap_or(0))
        };
        let hit = access.hit_cycles as usize;
        let done = there + hit;
        if access.is_store {
            retires.push(last_retired.max(translated + hit));
            leaves.push(last_left.max(done).max(retires[retires.len() - 1]));
        } else {
            retires.push(last_retired.max(done));
        }
        if access.flow.into != FlowRegister::NONE {
            registers.push((access.flow.into, done));
        }
        found.push(retires[retires.len() - 1].max(leaves.last().copied().unwrap_or(0)) as f64);
    }
    found
}

fn fast(core: CoreParameters, memory: MemoryTimes, items: &[Item]) -> Vec<f64> {
    let mut core = TimedCore::new(core, memory);
    let cycles = items.iter().map(|item| {
        match item {
            Item::Access(access) => core.access(access),
            Item::Stall(cycles) => core.stall(f64::from(*cycles)),
        }
        core.cycles()
    });
    cycles.collect()
}

fn cores() -> impl Strategy<Value = CoreParameters> {
    (1..7u32, 1..40u32, 1..5u32, 1..6u32, 1..6u32).prop_map(|(width, window, walkers, miss_buffers, store_queue)| {
        CoreParameters { width, window, walkers, miss_buffers, store_queue }
    })
}

/// Of a walk's reference that memory serves.
const REFERENCE_CYCLES: f64 = 20.0;

fn memories() -> impl Strategy<Value = MemoryTimes> {
    let line = prop_oneof![Just(0u32), 1..30u32];
    line.prop_map(|line| MemoryTimes { walk_reference_cycles: REFERENCE_CYCLES, line_cycles: line.into() })
}

fn register(number: u8) -> FlowRegister {
    if number == 0 {
        FlowRegister::NONE
    } else {
        FlowRegister::new(number)
    }
}

fn accesses() -> impl Strategy<Value = TimedAccess> {
    let flow = (0..4u8, 0..4u8).prop_map(|(from, into)| AddressFlow { from: register(from), into: register(into) });
    let waits = (0..3u8, 0..60u32, prop::option::of(1..90u32));
    let memory = (0..5u32, any::<bool>());
    (any::<bool>(), 0..12u64, 0..4u64, flow, 0..9u32, 1..5u32, waits, memory).prop_map(
        |(is_store, page, line, flow, instructions, hit, (translates, translation, data), memory)| TimedAccess {
            is_store,
            address: page * 4096 + line * 64 + 8,
            flow,
            instructions,
            hit_cycles: hit.into(),
            translation_cycles: match translates {
                0 => 0.0,
                1 => translation.into(),
                _ => f64::from(translation) + f64::from(memory.0) * REFERENCE_CYCLES,
            },
            walks: translates == 2,
            walk_memory_references: if translates == 2 { memory.0 } else { 0 },
            data_cycles: data.map_or(0.0, f64::from),
            is_from_memory: memory.1,
        },
    )
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    prop::collection::vec(
        prop_oneof![40 => accesses().prop_map(Item::Access), 1 => (0..50u32).prop_map(Item::Stall)],
        0..120,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_core_is_its_twin(core in cores(), memory in memories(), items in items()) {
        prop_assert_eq!(fast(core, memory, &items), twin(core, memory, &items));
    }

    /// Where each access waits for the one before, the core does not matter, nor does memory but where a line's transfer
    /// takes longer than the line.
    #[test]
    fn chained_cycles_are_the_sum_of_all_waits(
        core in cores(), memory in memories(), accesses in prop::collection::vec(accesses(), 0..200),
    ) {
        let chained = accesses.iter().map(|access| TimedAccess { flow: AddressFlow::CHAINED, instructions: 1, ..*access });
        let mut timed = TimedCore::new(core, memory);
        let mut sum = 0.0;
        for access in chained {
            timed.access(&access);
            sum += alone(&access, memory);
            prop_assert_eq!(timed.cycles(), sum);
        }
    }

    /// No access of a chain is later than the sum of all; none is sooner than its own waits, or than memory has transferred
    /// all lines.
    #[test]
    fn cycles_lie_between_the_longest_wait_and_the_sum(
        core in cores(), memory in memories(), accesses in prop::collection::vec(accesses(), 1..100),
    ) {
        let items: Vec<Item> = accesses.iter().copied().map(Item::Access).collect();
        let waits = accesses.iter().map(|access| alone(access, memory));
        let (most, sum) = waits.fold((0.0f64, 0.0), |(most, sum), wait| (most.max(wait), sum + wait));
        let instructions: u32 = accesses.iter().map(|access| access.instructions.max(1)).sum();
        let lines = accesses.iter().map(|access| access.walk_memory_references + u32::from(access.is_from_memory));
        let transfers = f64::from(lines.sum::<u32>()) * memory.line_cycles;
        let found = fast(core, memory, &items)[accesses.len() - 1];
        prop_assert!(most.max(transfers) <= found && found <= sum + f64::from(instructions), "{} {} {}", most, found, sum);
    }
}

/// What an access takes by itself.
fn alone(access: &TimedAccess, memory: MemoryTimes) -> f64 {
    let reference = memory.walk_reference_cycles.max(memory.line_cycles) - memory.walk_reference_cycles;
    let walk = access.translation_cycles + f64::from(access.walk_memory_references) * reference;
    let line = if access.is_from_memory { access.data_cycles.max(memory.line_cycles) } else { access.data_cycles };
    access.hit_cycles + walk + line
}

fn load(page: u64) -> TimedAccess {
    TimedAccess { address: page * 4096, instructions: 10, hit_cycles: 4.0, ..TimedAccess::default() }
}

fn cycles(core: CoreParameters, accesses: impl IntoIterator<Item = TimedAccess>) -> f64 {
    cycles_by(core, MemoryTimes::default(), accesses)
}

fn cycles_by(core: CoreParameters, memory: MemoryTimes, accesses: impl IntoIterator<Item = TimedAccess>) -> f64 {
    let mut timed = TimedCore::new(core, memory);
    accesses.into_iter().for_each(|access| timed.access(&access));
    timed.cycles()
}

#[test]
fn independent_misses_are_bounded_by_what_there_is_of_everything() {
    let zen3 = CoreParameters::ZEN3;
    let misses = |pages: std::ops::Range<u64>| pages.map(|page| TimedAccess { data_cycles: 300.0, ..load(page) });
    let each = |core| cycles(core, misses(0..10_000)) / 10_000.0;
    // 25 loads lie in a window of 256 instructions; 24 lines are on their way at a time.
    assert!((each(zen3) - 300.0 / 24.0).abs() < 0.2, "{}", each(zen3));
    let narrow = each(CoreParameters { window: 100, ..zen3 });
    assert!((narrow - 304.0 / 10.0).abs() < 0.5, "{narrow}");
    let wide = each(CoreParameters { window: 1000, miss_buffers: 1000, ..zen3 });
    assert!((wide - 304.0 / 100.0).abs() < 0.1, "{wide}");
    // Ten instructions an access, six a cycle.
    let hits = cycles(zen3, (0..10_000).map(load)) / 10_000.0;
    assert!((hits - 10.0 / 6.0).abs() < 0.01, "{hits}");
}

#[test]
fn stores_are_waited_for_when_the_queue_is_full() {
    let stores =
        |of: u64| (0..of).map(|page| TimedAccess { is_store: true, data_cycles: 300.0, instructions: 1, ..load(page) });
    let then_load = |of| cycles(CoreParameters::ZEN3, stores(of).chain([load(1 << 20)]));
    let core = CoreParameters { miss_buffers: 1, ..CoreParameters::ZEN3 };
    let mut timed = TimedCore::new(core, MemoryTimes::default());
    stores(64).for_each(|store| timed.access(&store));
    let all = timed.cycles();
    assert_eq!(all, 64.0 * 300.0 + 4.0);
    // A load after them is done long before, and the cycles are those of the stores.
    timed.access(&load(1 << 20));
    assert_eq!(timed.cycles(), all);
    assert_eq!(then_load(24), 300.0 + 4.0 + 3.0);
    // Two a line: the second of a line takes no buffer and waits for the first.
    let pairs = (0..100u64).flat_map(|page| [TimedAccess { data_cycles: 50.0, ..load(page) }, load(page)]);
    // The first is dispatched in cycle 1.
    assert_eq!(cycles(core, pairs), 1.0 + 100.0 * 50.0 + 4.0);
}

#[test]
fn memory_transfers_one_line_after_another() {
    let zen3 = CoreParameters::ZEN3;
    let memory = MemoryTimes { walk_reference_cycles: 300.0, line_cycles: 40.0 };
    let line = |page| TimedAccess { data_cycles: 300.0, is_from_memory: true, instructions: 1, ..load(page) };
    // Six are asked for in cycle 0: the last waits for five transfers.
    assert_eq!(cycles_by(zen3, memory, (0..6).map(line)), 5.0 * 40.0 + 300.0 + 4.0);
    // 24 may be on their way in 300 cycles, but memory transfers one each 40.
    let each = cycles_by(zen3, memory, (0..10_000).map(line)) / 10_000.0;
    assert!((each - 40.0).abs() < 0.1, "{each}");
    // Those of which each waits for the one before find memory idle.
    let chained = (0..100).map(|page| TimedAccess { flow: AddressFlow::CHAINED, ..line(page) });
    assert_eq!(cycles_by(zen3, memory, chained), 100.0 * 304.0);
    // Lines that caches serve ask for nothing of memory's.
    let cached = (0..6).map(|page| TimedAccess { is_from_memory: false, ..line(page) });
    assert_eq!(cycles_by(zen3, memory, cached), 304.0);
    // A line that was fetched ahead is there when it is transferred.
    let streamed = |page| TimedAccess { data_cycles: 4.0, ..line(page) };
    assert_eq!(cycles_by(zen3, memory, (0..6).map(streamed)), 6.0 * 40.0 + 4.0);
}

#[test]
fn walks_and_lines_share_memory() {
    let zen3 = CoreParameters::ZEN3;
    let memory = MemoryTimes { walk_reference_cycles: 300.0, line_cycles: 40.0 };
    let walk = |page| TimedAccess {
        translation_cycles: 20.0 + 2.0 * 300.0,
        walks: true,
        walk_memory_references: 2,
        instructions: 1,
        ..load(page)
    };
    // One reference after another, each of which finds memory idle.
    assert_eq!(cycles_by(zen3, memory, [walk(0)]), 620.0 + 4.0);
    // Two walks in step: the second waits for the first one's first transfer, and stays behind it.
    assert_eq!(cycles_by(zen3, memory, (0..2).map(walk)), 40.0 + 620.0 + 4.0);
    // A line asked for in cycle 0 is transferred from then to cycle 40; the walk's first reference comes in cycle 20, and
    // waits for 20.
    let line = TimedAccess { data_cycles: 300.0, is_from_memory: true, instructions: 1, ..load(9) };
    assert_eq!(cycles_by(zen3, memory, [line, walk(0)]), 20.0 + 620.0 + 4.0);
    // A walk that began before its access, of which 100 cycles are left, has as many transfers: in cycles 0 to 40 and 50 to
    // 90. The second walk's have what is free between: 40 to 50 and 90 to 120, then 130 to 170.
    let ahead = |page| TimedAccess { translation_cycles: 100.0, ..walk(page) };
    assert_eq!(cycles_by(zen3, memory, [ahead(0)]), 100.0 + 4.0);
    assert_eq!(cycles_by(zen3, memory, (0..2).map(ahead)), 170.0 + 10.0 + 4.0);
    // A walker that a reference keeps waiting is taken for as long: the second walk begins when the first is over.
    let one = CoreParameters { walkers: 1, ..zen3 };
    assert_eq!(cycles_by(one, memory, [line, walk(0), walk(1)]), 20.0 + 2.0 * 620.0 + 4.0);
}
