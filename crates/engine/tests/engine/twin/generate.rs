//! Random valid machines, OS models and traces.
//!
//! Everything is decoded from plain numbers, 0 being the simplest choice, so that proptest can shrink
//! a failing case by shortening lists and lowering numbers.

use lookaside_engine::{Detail, FrameLayout, LockedPage, OsModel, PagePolicy, ProcessRange, Setup, WalkModel};
use lookaside_machine::{
    Cache, ContextSwitch, FilledBy, Full, HostTable, IndexFn, Machine, Memory, PageSize, PageTable, Replacement,
    Serves, SharedBy, Stage, Stream, SwitchAction, TableFormat, Tag, Tlb, Topology, WalkCache, Walker, Ways,
};
use lookaside_trace::{Block, Event, Kind, MapSource};
use proptest::prelude::*;

/// A stream of choices; 0 for ever when it has run out.
struct Choices<'a>(std::slice::Iter<'a, u32>);

impl Choices<'_> {
    fn below(&mut self, n: usize) -> usize {
        self.0.next().map_or(0, |&word| word as usize % n)
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    fn yes(&mut self) -> bool {
        self.below(2) == 1
    }

    /// One in four, and no choice taken: by bits of the next one that it hardly depends on.
    fn seldom(&self) -> bool {
        self.0.as_slice().first().is_some_and(|word| word >> 30 == 3)
    }

    /// A subset, in order; never empty.
    fn some<T: Copy>(&mut self, items: &[T]) -> Vec<T> {
        let mask = (1 << items.len()) - 1 - self.below((1 << items.len()) - 1);
        items.iter().enumerate().filter(|(i, _)| mask >> i & 1 == 1).map(|(_, &item)| item).collect()
    }

    fn cycles(&mut self) -> f64 {
        self.below(60) as f64 / 4.0
    }
}

pub fn setups() -> impl Strategy<Value = Setup> {
    (prop::collection::vec(any::<u32>(), 0..280), any::<u64>()).prop_map(|(words, seed)| {
        let mut c = Choices(words.iter());
        let mut machine = machine(&mut c);
        let os = os_model(&mut c, machine.page_table.format);
        let walks = match c.below(4) {
            1 => WalkModel::CountOnly,
            2 if !machine.caches.is_empty() => {
                WalkModel::AlwaysAt(machine.caches[c.below(machine.caches.len())].name.clone())
            }
            _ => WalkModel::Full,
        };
        let mut locks = Vec::new();
        for tlb in &machine.tlbs {
            for _ in 0..tlb.lockable_entries {
                if c.yes() {
                    let process = c.yes().then(|| c.below(3) as u32);
                    let addr = address(c.below(1 << 16) as u16);
                    locks.push(LockedPage { tlb: tlb.name.clone(), process, addr });
                }
            }
        }
        let detail = if c.below(4) == 1 { Detail::Totals } else { Detail::Rows };
        // One machine in three, since none of them is on the short path.
        if c.below(3) == 1 {
            machine.tlbs.iter_mut().filter(|tlb| tlb.level > 1).for_each(|tlb| tlb.directory_entries = c.yes());
        }
        if c.yes() {
            machine = with_victims(machine);
        }
        Setup { machine, os, walks, locks, detail, seed }
    })
}

const FORMATS: [TableFormat; 7] = [
    TableFormat::X86_64L4,
    TableFormat::X86_64L5,
    TableFormat::Armv7Short,
    TableFormat::Armv7Lpae,
    TableFormat::Aarch64K4,
    TableFormat::Sv39,
    TableFormat::Sv48,
];
const POLICIES: [Replacement; 4] = [Replacement::Lru, Replacement::Fifo, Replacement::TreePlru, Replacement::Random];
const KINDS: [Serves; 3] = [Serves::Load, Serves::Store, Serves::Fetch];
const TAGS: [Tag; 5] = [Tag::Asid, Tag::Global, Tag::HwThread, Tag::Vmid, Tag::Domain];
const SHARED: [SharedBy; 3] = [SharedBy::Core, SharedBy::Thread, SharedBy::Socket];

fn machine(c: &mut Choices) -> Machine {
    let topology = Topology {
        sockets: 1 + c.below(2) as u32,
        cores_per_socket: 1 + c.below(2) as u32,
        threads_per_core: 1 + c.below(2) as u32,
    };
    let format = c.of(&FORMATS);
    let host = (c.below(3) == 1).then(|| {
        let format = c.of(&FORMATS);
        let page_size = c.of(&format.page_sizes());
        HostTable { format, page_size, memory_bits: c.yes().then(|| 30 + c.below(8) as u32) }
    });
    let action = c.of(&[SwitchAction::FlushTlb, SwitchAction::Nothing, SwitchAction::FlushTlbAndCaches]);
    let caches = caches(c);
    let cache_levels = caches.iter().map(|cache| cache.level).max().unwrap_or(0);
    let walker = Walker {
        base_cycles: c.cycles(),
        first_cache_level: 1 + c.below(cache_levels as usize + 1) as u32,
        memory_cycles: c.yes().then(|| 150.0 + c.cycles()),
    };
    let walk_caches = walk_caches(c, format, host.as_ref().map(|h| h.format));
    let mut tlbs = Vec::new();
    let tlb_levels = 1 + c.below(3) as u32;
    for level in 1..=tlb_levels {
        for _ in 0..1 + c.below(3) {
            tlbs.push(tlb(c, level, format, host.as_ref(), action));
        }
    }
    for (i, tlb) in tlbs.iter_mut().enumerate() {
        tlb.name = format!("t{i}");
    }
    // Loads and stores must be served somewhere.
    tlbs[0].serves = [Serves::Load, Serves::Store]
        .into_iter()
        .chain(tlbs[0].serves.iter().copied().filter(|k| *k == Serves::Fetch))
        .collect();
    let cycles = c.cycles();
    let address_spaces = c.yes().then(|| 1 + c.below(3) as u32);
    Machine {
        name: "random".into(),
        description: String::new(),
        sources: Vec::new(),
        clock_mhz: 1000.0,
        topology,
        page_table: PageTable { format, host },
        walker,
        tlbs,
        walk_caches,
        memory: Memory { cycles: 200.0 + c.cycles(), bytes_per_second: None },
        stream: c.yes().then(|| Stream {
            cache_cycles: 4.0 * c.cycles(),
            memory_cycles: 20.0 * c.cycles(),
            walk_cycles: c.yes().then(|| 4.0 * c.cycles()),
        }),
        caches,
        context_switch: ContextSwitch { action, cycles, address_spaces },
        disturbances: Vec::new(),
        timing: None,
        origins: Default::default(),
        not_determined: Vec::new(),
    }
}

/// Entries, ways, policy: few, so that there are many evictions.
fn geometry(c: &mut Choices) -> (u32, Ways, Replacement) {
    let replacement = c.of(&POLICIES);
    let ways =
        if replacement == Replacement::TreePlru { c.of(&[2, 1, 4, 8, 3, 5, 6, 12]) } else { c.of(&[2, 1, 3, 4, 6]) };
    match c.below(3) {
        1 => (ways, Ways::Full(Full::Full), replacement),
        _ => (ways * c.of(&[1, 2, 4]), Ways::Count(ways), replacement),
    }
}

fn tlb(c: &mut Choices, level: u32, format: TableFormat, host: Option<&HostTable>, action: SwitchAction) -> Tlb {
    let mut sizes = format.page_sizes();
    sizes.extend(host.map(|h| h.page_size));
    sizes.sort();
    sizes.dedup();
    let page_sizes = c.some(&sizes);
    let (entries, ways, replacement) = geometry(c);
    let sets = ways.sets(entries);
    let coalesce_pages: u32 = if page_sizes.contains(&sizes[0]) { c.of(&[1, 1, 4, 2, 8]) } else { 1 };
    let number_bits = format.address_bits().saturating_sub(page_sizes[0].shift()) - coalesce_pages.trailing_zeros();
    let index = if c.yes() { IndexFn::Masks(masks(c, sets, number_bits)) } else { IndexFn::Linear };
    let mut tags = c.some(&TAGS);
    if action == SwitchAction::Nothing && !tags.contains(&Tag::Asid) {
        tags.push(Tag::Asid);
    }
    Tlb {
        name: String::new(),
        level,
        serves: c.some(&KINDS),
        page_sizes,
        entries,
        ways,
        index,
        replacement,
        tags,
        lockable_entries: c.below(3) as u32,
        coalesce_pages,
        directory_entries: false,
        hit_cycles: c.cycles(),
        shared_by: c.of(&SHARED),
    }
}

/// Independent masks: each has a bit of its own among the lowest, beside some of a page number's others.
fn masks(c: &mut Choices, sets: u32, number_bits: u32) -> Vec<u64> {
    let bits = sets.trailing_zeros();
    let all = (1u64 << number_bits) - 1;
    (0..bits).map(|bit| (1 << bit | (c.below(8) as u64) << (bits + bit)) & all).collect()
}

fn walk_caches(c: &mut Choices, guest: TableFormat, host: Option<TableFormat>) -> Vec<WalkCache> {
    (0..c.below(6))
        .map(|i| {
            let (stage, format, lowest) = match host {
                Some(host) if c.yes() => (Stage::Host, host, 1),
                _ => (Stage::Guest, guest, 2),
            };
            let (entries, ways, replacement) = geometry(c);
            let root = format.levels()[0].level;
            WalkCache {
                name: format!("w{i}"),
                table_level: lowest + c.below((root - lowest + 1) as usize) as u32,
                entries,
                ways,
                replacement,
                hit_cycles: c.cycles(),
                stage,
                shared_by: c.of(&SHARED),
            }
        })
        .collect()
}

fn caches(c: &mut Choices) -> Vec<Cache> {
    let mut caches = Vec::new();
    for level in 1..=c.below(4) as u32 {
        for _ in 0..1 + c.below(2) {
            let (lines, ways, replacement) = geometry(c);
            let line_bytes = c.of(&[64, 32, 128]);
            let sets = ways.sets(lines);
            // One in three: sets of lines by the number's low bits go a way of their own.
            let is_hashed = c.below(3) == 1;
            let index = if is_hashed { IndexFn::Masks(masks(c, sets, 40)) } else { IndexFn::Linear };
            caches.push(Cache {
                name: format!("c{}", caches.len()),
                level,
                serves: c.some(&KINDS),
                size: u64::from(lines * line_bytes),
                ways,
                line_bytes,
                index,
                replacement,
                write_allocate: !c.seldom(),
                filled_by: FilledBy::Misses,
                hit_cycles: f64::from(level) * 20.0 + c.cycles(),
                shared_by: c.of(&SHARED),
            });
        }
    }
    for i in 1..caches.len() {
        let (before, cache) = (caches[i - 1].clone(), &mut caches[i]);
        let fills = before.write_allocate || !cache.serves.contains(&Serves::Store);
        if c.yes() && fills && cache.serves.iter().all(|kind| before.serves.contains(kind)) {
            cache.replacement = Replacement::Srrip;
        }
    }
    caches
}

/// The machine with its last cache filled by what the one before it throws out, where that can be.
fn with_victims(machine: Machine) -> Machine {
    let mut with = machine.clone();
    let [.., before, last] = &mut with.caches[..] else { return machine };
    before.write_allocate = true;
    let lines = last.lines();
    (last.filled_by, last.write_allocate, last.serves) = (FilledBy::Victims, true, before.serves.clone());
    last.line_bytes = before.line_bytes;
    last.size = u64::from(lines) * u64::from(before.line_bytes);
    with.walker.first_cache_level = with.walker.first_cache_level.min(before.level);
    if with.check().is_ok() {
        with
    } else {
        machine
    }
}

fn os_model(c: &mut Choices, format: TableFormat) -> OsModel {
    let frames = match c.below(3) {
        1 => FrameLayout::Fragmented { run_pages: c.of(&[2, 4, 16, 1]) },
        2 => FrameLayout::Random,
        _ => FrameLayout::Contiguous,
    };
    let pages = match c.below(3) {
        1 => PagePolicy::Thp,
        2 => {
            let ranges = ranges(c);
            let of_files = ranges[0].end & 1 == 1;
            if of_files {
                PagePolicy::SelectiveFiles(ranges)
            } else {
                PagePolicy::Selective(ranges)
            }
        }
        _ => PagePolicy::Base,
    };
    let sizes: Vec<PageSize> = format.page_sizes();
    let huge_page = c.yes().then(|| c.of(&sizes[1..]));
    OsModel { frames, pages, huge_page }
}

fn ranges(c: &mut Choices) -> Vec<ProcessRange> {
    let count = 1 + c.below(3);
    let range = |_| {
        let start = address(c.below(1 << 16) as u16);
        let process = c.yes().then(|| c.below(3) as u32);
        ProcessRange { process, start, end: start + c.below(1 << 23) as u64 }
    };
    (0..count).map(range).collect()
}

/// One of the addresses that everything happens at: a few bases (one in the kernel's half), a few
/// neighbouring pages, and steps that end in other tables of each level.
fn address(word: u16) -> u64 {
    let word = u64::from(word);
    let base = match word & 3 {
        0 | 1 => 0x4000_0000,
        2 => 0x12_3fff_8000,
        _ => 0xffff_ffc0_c000_0000,
    };
    let page = (word >> 2) & 15;
    let two_megabytes = (word >> 6) & 3;
    let giga = match (word >> 8) & 15 {
        14 => 1,
        15 => 1 << 9,
        _ => 0,
    };
    // Half of them on lines that follow each other.
    let offset = (word >> 12) * if word >> 15 == 0 { 0x40 } else { 0xf8 };
    (base + (page << 12) + (two_megabytes << 21) + offset).wrapping_add(giga << 30)
}

/// What a trace has beside addresses and kinds.
#[derive(Clone, Copy, Debug)]
pub struct BlockColumns {
    pub ip: bool,
    pub repeat: bool,
}

/// One access or event of one thread.
#[derive(Clone, Debug)]
pub struct ThreadItem {
    pub process: u32,
    pub thread: u32,
    pub what: TraceItem,
}

/// An access or an event.
#[derive(Clone, Debug)]
pub enum TraceItem {
    Access { kind: Kind, addr: u64, ip: u64, repeat: u32 },
    Event(Event),
}

pub fn ops(most: usize) -> impl Strategy<Value = Vec<ThreadItem>> {
    let words = prop::collection::vec(any::<(u8, u16, u16, u16)>(), 0..most);
    // One event in 370, 6 or 23 accesses; one thread, now and then another, always another; all addresses or few, so
    // that pages are accessed again at once.
    (0..3usize, 0..3usize, 0..6usize, words).prop_map(|(events, threads, addresses, words)| {
        let among = [8192, 128, 512][events];
        let who_mask = [0xff, 0x60, 0][threads];
        let address_mask = [0xffff, 0xf0cf, 0xf00e, 0xf004, 0x0004, 0x0004][addresses];
        // The last but one: line by line through a page, again and again.
        let line = |i: usize| if addresses == 4 { (i as u16 & 7) << 12 } else { 0 };
        // The last: over each page's end, by half of the usual line.
        let over_ends = |i: usize| 0x4000_0000 + ((i as u64 / 20) << 12) + 0xe00 + i as u64 % 20 * 0x20;
        let one = |(i, (who, what, a, b))| {
            let mut op = op(if who & who_mask == 0 { who } else { 0 }, what, a & address_mask | line(i), b, among);
            if let (TraceItem::Access { addr, .. }, 5) = (&mut op.what, addresses) {
                *addr = over_ends(i);
            }
            op
        };
        words.into_iter().enumerate().map(one).collect()
    })
}

/// One event in 370 or more accesses, one thread.
pub fn calm_ops(most: usize) -> impl Strategy<Value = Vec<ThreadItem>> {
    let words = prop::collection::vec(any::<(u16, u16, u16)>(), 0..most);
    (0..4usize, words).prop_map(|(addresses, words)| {
        let address_mask = [0xffff, 0xf0cf, 0xf00e, 0xffc4][addresses];
        words.into_iter().map(|(what, a, b)| op(0, what, a & address_mask, b, 8192)).collect()
    })
}

pub fn columns() -> impl Strategy<Value = BlockColumns> {
    any::<(bool, bool)>().prop_map(|(ip, repeat)| BlockColumns { ip, repeat })
}

fn op(who: u8, what: u16, a: u16, b: u16, among: u16) -> ThreadItem {
    let process = [0, 0, 0, 0, 0, 1, 1, 2][who as usize & 7];
    let thread = [0, 0, 0, 1][(who as usize >> 3) & 3];
    let addr = address(a);
    let small = u64::from(b & 0xff);
    // From a part of a page to several huge pages.
    let len = [small << 12, small << 6, (small & 7) << 20, (small & 7) << 21, (small & 15) << 14, 0x1_0000]
        [(b as usize >> 8) % 6];
    let other = address(b);
    let kind = match what & 7 {
        0..=3 => Kind::Load,
        4 | 5 => Kind::Store,
        _ => Kind::Fetch,
    };
    let source = match b >> 13 {
        0..=2 => MapSource::Anonymous,
        3 | 4 => MapSource::Heap,
        5 => MapSource::Stack,
        6 => MapSource::named(["a", "b"][(b >> 11) as usize & 1]),
        _ => MapSource::File { path: format!("f{}", (b >> 11) & 3), offset: small << 12 },
    };
    let event = match (what >> 3) % among {
        0..=3 => Event::Map {
            addr: if b & 1 == 0 { addr } else { addr & !0x1f_ffff },
            len: if b & 2 == 0 { len } else { 0x60_0000 },
            prot: 3,
            source,
            site: u32::from(b & 3),
        },
        4 => Event::Unmap { addr, len },
        5 => Event::Remap { old_addr: addr, old_len: len, new_addr: other, new_len: (small ^ 0x55) << 12 },
        6 => Event::Protect { addr, len, prot: 1 },
        7 => Event::Advise { addr, len, advice: [4, 8, 14, 15][b as usize & 3] },
        8 | 9 => Event::Brk { start: 0x4000_0000 + u64::from(a & 1) * 0x1000, end: 0x4000_0000 + (u64::from(b) << 8) },
        10 => Event::Fork { parent: u32::from(a % 3), child: u32::from(b % 4) },
        11 if b & 1 == 0 => Event::Exec { path: "p".into() },
        11 => Event::ProcessExit { code: 0 },
        12 | 13 => Event::ContextSwitch { cpu: u32::from(b % 10) },
        14 => Event::Migrate { cpu: u32::from(b % 10) },
        15 => Event::Site { id: u32::from(b & 3), frames: vec![u64::from(a & 3), u64::from((a >> 2) & 1)] },
        16..=18 => {
            Event::Alloc { addr, len: if b & 1 == 0 { len } else { 0x1_0000 + small * 0x400 }, site: u32::from(b & 3) }
        }
        19 => Event::Free { addr },
        20 => Event::Repeats { addr, kind, count: small & 7 },
        21 if b & 7 == 0 => Event::Totals { loads: small, stores: small + 1, fetches: 0, instructions: 7 },
        21 if b & 7 == 1 => Event::Marker { text: "m".into() },
        21 if b & 7 == 3 => Event::Interval { cpu_ns: small },
        21 if b & 7 == 4 => Event::Counts,
        21 if b & 7 == 2 => Event::ThreadStart { thread: 1 },
        21 => Event::ThreadExit { thread: 1 },
        _ => {
            // Sparse instruction addresses, so that rows gather.
            let (ip, repeat) = (u64::from(b & 7) << 2, u32::from((b >> 3) & 3) * u32::from((b >> 5) & 1));
            return ThreadItem { process, thread, what: TraceItem::Access { kind, addr, ip, repeat } };
        }
    };
    ThreadItem { process, thread, what: TraceItem::Event(event) }
}

/// Blocks of the operations; a new one where the thread changes, and before each operation that `cut` names.
pub fn blocks(ops: &[ThreadItem], columns: BlockColumns, cut: impl Fn(usize) -> bool) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (i, op) in ops.iter().enumerate() {
        if cut(i) || blocks.last().is_none_or(|b| (b.process, b.thread) != (op.process, op.thread)) {
            blocks.push(Block { process: op.process, thread: op.thread, ..Block::default() });
        }
        let Some(block) = blocks.last_mut() else { continue };
        match &op.what {
            TraceItem::Access { kind, addr, ip, repeat } => {
                block.push(*kind, *addr);
                if columns.ip {
                    block.ip.push(*ip);
                }
                if columns.repeat {
                    block.repeat.push(*repeat);
                }
            }
            TraceItem::Event(event) => block.push_event(event.clone()),
        }
    }
    blocks
}
