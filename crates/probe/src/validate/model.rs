//! Runs a pattern through the engine: cycles an access by the cost model.

use lookaside_engine::{Detail, Engine, FrameLayout, OsModel, PagePolicy, ProcessRange, Setup, SetupError};
use lookaside_machine::{Machine, PageSize, Serves, Stream};
use lookaside_trace::{Block, Event, Kind, MapSource};
use serde::Serialize;

/// Bytes of a word, the unit of a pattern's lists.
pub const WORD: u64 = 8;
/// Where the pattern's memory begins; aligned to all that a list of words reaches, as on the metal.
const BASE: u64 = 1 << 40;
/// Where the list begins that the metal reads the order from.
const LIST: u64 = 1 << 45;
/// Bytes of an entry in it.
const LIST_ENTRY: u64 = 4;
/// Accesses a block.
const BLOCK: usize = 1 << 14;
/// Cycles in which what was read is added to the next address: an addition takes one on every core here, and a load
/// with two registers in its address as much more.
const ADDITION: f64 = 1.0;
/// Accesses made before the counted round, at least one round. Fewer than on the metal, where the clock has to settle
/// too.
const WARM: usize = 1 << 14;
/// Accesses counted at least, in whole rounds, so that a policy that is no LRU evens out.
const COUNTED: usize = 1 << 14;

/// What the model says of a pattern; all figures are cycles an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct ModelledCycles {
    /// In all: latencies add up, since each access waits for the one before it.
    pub cycles: f64,
    /// Of those, TLB hits beyond the first level, and walks.
    pub translation_cycles: f64,
    /// Of those, the data itself: load-to-use of the cache or memory that serves it. One cycle more is the addition
    /// that makes an access depend on the one before.
    pub data_cycles: f64,
    /// Walks an access.
    pub walks_per_access: f64,
}

/// Runs a list of words through the engine; frames are contiguous in aligned runs of so many pages. `None` for a
/// machine whose tables have no pages of this size.
///
/// # Errors
/// The machine is impossible.
pub fn model(
    machine: &Machine,
    page_size: PageSize,
    words: &[u32],
    update: bool,
    frame_run_pages: u64,
    seed: u64,
) -> Result<Option<ModelledCycles>, SetupError> {
    let base_page = machine.page_table.format.page_sizes().first().copied().unwrap_or(PageSize::K4);
    if !machine.page_table.format.page_sizes().contains(&page_size) {
        return Ok(None);
    }
    let reach = words.iter().max().map_or(0, |&last| (u64::from(last) + 1) * WORD).next_multiple_of(page_size.bytes());
    let mut setup = Setup::new(machine.clone());
    setup.detail = Detail::Totals;
    setup.seed = seed;
    let all = ProcessRange { process: None, start: BASE, end: BASE + reach };
    let pages = if page_size == base_page { PagePolicy::Base } else { PagePolicy::Selective(vec![all]) };
    let frames = match frame_run_pages {
        0 | 1 => FrameLayout::Random,
        run_pages => FrameLayout::Fragmented { run_pages },
    };
    setup.os = OsModel { frames, pages, huge_page: (page_size != base_page).then_some(page_size) };
    let cost = DataLatency::of(machine);
    let mut engine = Engine::new(setup)?;

    let mut block = Block { process: 1, thread: 1, ..Block::default() };
    for (addr, len) in [(BASE, reach), (LIST, (words.len() as u64 * LIST_ENTRY).next_multiple_of(base_page.bytes()))] {
        block.push_event(Event::Map { addr, len, prot: 3, source: MapSource::Anonymous, site: 0 });
    }
    engine.run(&block);
    for _ in 0..WARM.div_ceil(words.len()).max(1) {
        round(words, update, |block| engine.run(block));
    }
    let rounds = COUNTED.div_ceil(words.len()).max(1);
    let mut sum = ModelledCycles::default();
    for _ in 0..rounds {
        round(words, update, |block| {
            let mut place = 0;
            engine.run_traced(block, &mut |access| {
                // Only the pattern's reads are waited for: the list is read ahead, a store waits in its buffer.
                if block.kind[place] == Kind::Load && block.addr[place] < LIST {
                    sum.translation_cycles += access.cycles;
                    sum.data_cycles += cost.served(access.data_server, access.streamed);
                    sum.walks_per_access += f64::from(u8::from(access.hit.is_none()));
                }
                place += 1;
            });
        });
    }
    let accesses = (rounds * words.len()) as f64;
    for figure in [&mut sum.translation_cycles, &mut sum.data_cycles, &mut sum.walks_per_access] {
        *figure /= accesses;
    }
    sum.cycles = sum.translation_cycles + sum.data_cycles + ADDITION;
    Ok(Some(sum))
}

/// Gives the accesses of one round, block by block: each entry of the list, the word, and its writing back.
fn round(words: &[u32], update: bool, mut run: impl FnMut(&Block)) {
    let mut block = Block { process: 1, thread: 1, ..Block::default() };
    for (part, chunk) in words.chunks(BLOCK).enumerate() {
        block.clear();
        for (i, &word) in chunk.iter().enumerate() {
            block.push(Kind::Load, LIST + (part * BLOCK + i) as u64 * LIST_ENTRY);
            block.push(Kind::Load, BASE + u64::from(word) * WORD);
            if update {
                block.push(Kind::Store, BASE + u64::from(word) * WORD);
            }
        }
        run(&block);
    }
}

/// Load-to-use cycles by what serves.
struct DataLatency {
    caches: Vec<f64>,
    memory: f64,
    stream: Option<Stream>,
    /// Number of the first cache of loads.
    first: Option<usize>,
}

impl DataLatency {
    fn of(machine: &Machine) -> Self {
        let loads = machine.caches.iter().enumerate().filter(|(_, cache)| cache.serves.contains(&Serves::Load));
        let first = loads.min_by_key(|(_, cache)| cache.level).map(|(number, _)| number);
        // Without data caches the model leaves the data's own latency out (rule 7).
        let memory = first.map_or(0.0, |_| machine.memory.cycles);
        let caches = machine.caches.iter().map(|cache| cache.hit_cycles).collect();
        Self { caches, memory, stream: machine.stream, first }
    }

    fn served(&self, server: Option<usize>, streamed: bool) -> f64 {
        let cycles = server.map_or(self.memory, |number| self.caches[number]);
        match (self.stream.filter(|_| streamed), server) {
            (Some(stream), None) => cycles.min(stream.memory_cycles),
            (Some(stream), Some(_)) if server != self.first => cycles.min(stream.cache_cycles),
            _ => cycles,
        }
    }
}
