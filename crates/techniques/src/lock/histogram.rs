//! Accesses and misses by page number (Song et al. 2022, Section IV, where page numbers are bits 12–31 of data
//! addresses).

use std::collections::BTreeMap;

use lookaside_engine::{Engine, LockedPage, Outcome, Setup};
use lookaside_machine::{Machine, Serves};
use lookaside_trace::{Block, Event, Kind};
use serde::{Deserialize, Serialize};

use crate::plan::PlanError;

/// A base page, as a lock names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LockPage {
    /// Whose.
    pub process: u32,
    /// Page number: all bits of the address above the base page's, also those that the machine does not translate.
    pub vpn: u64,
}

/// Kinds of access by their numbers, and what a machine calls them.
const KINDS: [(Kind, Serves); 3] =
    [(Kind::Load, Serves::Load), (Kind::Store, Serves::Store), (Kind::Fetch, Serves::Fetch)];

/// What a trace does to one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCounts {
    /// Which.
    pub page: LockPage,
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

impl LockPage {
    /// Of an address, for base pages of 2^`shift` bytes.
    pub fn of(process: u32, addr: u64, shift: u32) -> Self {
        Self { process, vpn: addr >> shift }
    }

    /// First byte.
    pub fn addr(self, shift: u32) -> u64 {
        self.vpn << shift
    }

    /// Held in a lockable entry of an array.
    pub fn lock(self, tlb: &str, shift: u32) -> LockedPage {
        LockedPage { tlb: tlb.into(), process: Some(self.process), addr: self.addr(shift) }
    }
}

/// log2 of the bytes of a machine's base page.
pub fn page_shift(machine: &Machine) -> u32 {
    // Every format has a smallest size.
    machine.page_table.format.page_sizes()[0].shift()
}

/// A histogram under way: blocks in, counts out. Misses are those of one TLB array's level in one model run.
#[derive(Debug)]
pub struct Histogram {
    shift: u32,
    counts: BTreeMap<LockPage, PageCounts>,
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
    pub fn new(setup: Setup, tlb: &str) -> Result<Self, PlanError> {
        let array = super::target::array(&setup.machine, tlb)?;
        let (level, serves) = (array.level, KINDS.map(|(_, kind)| array.serves.contains(&kind)));
        let (shift, engine) = (page_shift(&setup.machine), Engine::new(setup)?);
        Ok(Self { shift, counts: BTreeMap::new(), engine, level, serves, accesses: 0 })
    }

    /// Counts a block.
    pub fn run(&mut self, block: &Block) {
        let Self { shift, counts, engine, level, serves, accesses } = self;
        let mut i = 0;
        // The engine shows recorded accesses one by one, in their order.
        engine.run_traced(block, &mut |result| {
            let times = 1 + u64::from(block.repeat.get(i).copied().unwrap_or(0));
            let missed = serves[block.kind[i] as usize] && result.hit.is_none_or(|(hit_level, _)| hit_level > *level);
            let page = LockPage::of(block.process, block.addr[i], *shift);
            count(counts, page, block.kind[i], times, u64::from(missed));
            *accesses += times;
            i += 1;
        });
        for (_, event) in &block.events {
            if let Event::Repeats { addr, kind, count: times, .. } = event {
                count(counts, LockPage::of(block.process, *addr, *shift), *kind, *times, 0);
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

fn count(counts: &mut BTreeMap<LockPage, PageCounts>, page: LockPage, kind: Kind, times: u64, misses: u64) {
    let none = PageCounts { page, data_accesses: 0, fetch_accesses: 0, data_misses: 0, fetch_misses: 0 };
    let of = counts.entry(page).or_insert(none);
    let (accesses, missed) = match kind {
        Kind::Fetch => (&mut of.fetch_accesses, &mut of.fetch_misses),
        Kind::Load | Kind::Store => (&mut of.data_accesses, &mut of.data_misses),
    };
    *accesses = accesses.saturating_add(times);
    *missed += misses;
}
