//! Accesses and misses by page number (Song et al. 2022, Section IV, where page numbers are bits 12–31 of data addresses).

use std::collections::BTreeMap;

use lookaside_engine::os::{is_global, translated};
use lookaside_engine::{Engine, LockedPage, Outcome, Setup};
use lookaside_machine::{Machine, Serves, TableFormat};
use lookaside_trace::{Block, Event, Kind};
use serde::{Deserialize, Serialize};

use super::LockError;

/// A base page, as a lock names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Page {
    /// Whose; `None` = a page of the kernel's half, which is every process's.
    pub process: Option<u32>,
    /// Page number: all bits of the address above the base page's. In the kernel's half those that are not translated are ones.
    pub vpn: u64,
}

/// Kinds of access by their numbers, and what a machine calls them.
const KINDS: [(Kind, Serves); 3] =
    [(Kind::Load, Serves::Load), (Kind::Store, Serves::Store), (Kind::Fetch, Serves::Fetch)];

/// What a trace does to one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCounts {
    /// Which.
    pub page: Page,
    /// Loads and stores, left-out repeats included.
    pub data_accesses: u64,
    /// Instruction fetches, left-out repeats included.
    pub fetch_accesses: u64,
    /// Of the data accesses, those that asked the TLB array and hit nothing at its level.
    pub data_misses: u64,
    /// Of the fetches, the same.
    pub fetch_misses: u64,
}

impl PageCounts {
    /// Both sides'.
    pub fn misses(&self) -> u64 {
        self.data_misses + self.fetch_misses
    }
}

/// How addresses of a machine fall into base pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    format: TableFormat,
    shift: u32,
}

impl Pages {
    /// Of a machine's table format.
    pub fn of(machine: &Machine) -> Self {
        let format = machine.page_table.format;
        // Every format has a smallest size.
        Self { format, shift: format.page_sizes()[0].shift() }
    }

    /// Bytes of one.
    pub fn bytes(&self) -> u64 {
        1 << self.shift
    }

    /// The page of an address.
    pub fn page(&self, process: u32, addr: u64) -> Page {
        let low = translated(self.format, addr);
        if !is_global(self.format, addr) {
            return Page { process: Some(process), vpn: low >> self.shift };
        }
        let bits = self.format.address_bits();
        let above = if bits > 32 { !0 << bits } else { 0 };
        Page { process: None, vpn: (low | above) >> self.shift }
    }

    /// First byte of a page.
    pub fn addr(&self, page: Page) -> u64 {
        page.vpn << self.shift
    }

    /// The page held in a lockable entry of an array.
    pub fn lock(&self, page: Page, tlb: &str) -> LockedPage {
        LockedPage { tlb: tlb.into(), process: page.process, addr: self.addr(page) }
    }
}

/// A histogram under way: blocks in, counts out. Misses are those of one TLB array's level in one model run.
#[derive(Debug)]
pub struct Histogram {
    pages: Pages,
    counts: BTreeMap<Page, PageCounts>,
    engine: Engine,
    level: u32,
    /// Which of [`KINDS`] the array serves.
    serves: [bool; 3],
    accesses: u64,
}

impl Histogram {
    /// Of the misses of a TLB array, by its name. The setup's own seed, locks and rows are used.
    ///
    /// # Errors
    /// No such array; a setup that can't be run.
    pub fn new(setup: Setup, tlb: &str) -> Result<Self, LockError> {
        let array = super::place::array(&setup.machine, tlb)?;
        let (level, serves) = (array.level, KINDS.map(|(_, kind)| array.serves.contains(&kind)));
        let (pages, engine) = (Pages::of(&setup.machine), Engine::new(setup)?);
        Ok(Self { pages, counts: BTreeMap::new(), engine, level, serves, accesses: 0 })
    }

    /// Counts a block.
    pub fn run(&mut self, block: &Block) {
        let Self { pages, counts, engine, level, serves, accesses } = self;
        let mut i = 0;
        // The engine shows recorded accesses one by one, in their order.
        engine.run_traced(block, &mut |result| {
            let times = 1 + u64::from(block.repeat.get(i).copied().unwrap_or(0));
            let missed = serves[block.kind[i] as usize] && result.hit.is_none_or(|(hit_level, _)| hit_level > *level);
            let page = pages.page(block.process, block.addr[i]);
            count(counts, page, block.kind[i], times, u64::from(missed));
            *accesses += times;
            i += 1;
        });
        for (_, event) in &block.events {
            if let Event::Repeats { addr, kind, count: times, .. } = event {
                count(counts, pages.page(block.process, *addr), *kind, *times, 0);
                *accesses += times;
            }
        }
    }

    /// Accesses so far, left-out repeats included.
    pub fn accesses(&self) -> u64 {
        self.accesses
    }

    /// The counts by page, ascending, and the run's outcome (rows name the pages).
    pub fn finish(self) -> (Vec<PageCounts>, Outcome) {
        (self.counts.into_values().collect(), self.engine.outcome())
    }
}

fn count(counts: &mut BTreeMap<Page, PageCounts>, page: Page, kind: Kind, times: u64, misses: u64) {
    let none = PageCounts { page, data_accesses: 0, fetch_accesses: 0, data_misses: 0, fetch_misses: 0 };
    let of = counts.entry(page).or_insert(none);
    let (accesses, missed) = match kind {
        Kind::Fetch => (&mut of.fetch_accesses, &mut of.fetch_misses),
        Kind::Load | Kind::Store => (&mut of.data_accesses, &mut of.data_misses),
    };
    *accesses = accesses.saturating_add(times);
    *missed += misses;
}
