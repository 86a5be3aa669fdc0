//! Beyond the paper: what a program accesses, step by step, as it was recorded or as a benchmark makes it.

use std::collections::{BTreeMap, BTreeSet};

use lookaside_trace::{Block, Event, Kind, Source};

use super::gem5_benchmark::FIRST_PAGE;
use super::paging::PAGE_SHIFT;
use super::MigrationModelError;

/// log2 of a line's bytes, and lines of a page.
const LINE_SHIFT: u32 = 6;
const LINES: u32 = 1 << (PAGE_SHIFT - LINE_SHIFT);
/// log2 of what a second-level table maps.
const TABLE_SHIFT: u32 = 20;

/// An access to data, and what goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataStep {
    /// Instructions before it.
    pub instructions: u32,
    /// Where.
    pub va: u32,
    /// Further accesses right after it to the same page, which the model takes for the same line.
    pub repeats: u32,
    /// It is a store.
    pub stores: bool,
}

/// A program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramSteps {
    steps: Vec<DataStep>,
}

impl ProgramSteps {
    /// A recorded program of one thread; so many steps at most. What it maps and unmaps is left out: all its pages are
    /// there from the beginning.
    ///
    /// # Errors
    /// The recording cannot be read, is not of one thread with instruction fetches and 32-bit addresses, or has no
    /// access to data.
    pub fn read(source: &mut dyn Source, most: usize) -> Result<Self, MigrationModelError> {
        let recording = source.info().command.join(" ");
        let bad = |reason: String| MigrationModelError::Recording { recording: recording.clone(), reason };
        if !source.info().has_fetches || source.info().window().is_some() || source.info().filter_log2_classes > 0 {
            return Err(bad("the model needs instruction fetches, and all accesses but direct repeats".into()));
        }
        let (mut steps, mut block, mut thread, mut fetches) = (Vec::<DataStep>::new(), Block::default(), None, 0u64);
        while steps.len() < most && source.next_block(&mut block).map_err(|error| bad(error.to_string()))? {
            if !block.is_empty()
                && *thread.get_or_insert((block.process, block.thread)) != (block.process, block.thread)
            {
                return Err(bad("has several threads: the model takes one".into()));
            }
            let mut events = block.events.iter().peekable();
            for i in 0..=block.len() {
                while let Some((_, event)) = events.next_if(|(at, _)| *at as usize <= i) {
                    match (event, steps.last_mut()) {
                        (Event::Repeats { kind: Kind::Fetch, count, .. }, _) => {
                            fetches = fetches.saturating_add(*count)
                        }
                        (Event::Repeats { count, .. }, Some(last)) => {
                            last.repeats = last.repeats.saturating_add(small(*count))
                        }
                        _ => {}
                    }
                }
                let (Some(&kind), Some(&addr)) = (block.kind.get(i), block.addr.get(i)) else { break };
                let repeats = block.repeat.get(i).copied().unwrap_or(0);
                if kind == Kind::Fetch {
                    fetches = fetches.saturating_add(1 + u64::from(repeats));
                    continue;
                }
                let va = u32::try_from(addr).map_err(|_| bad(format!("address {addr:#x} has more than 32 bits")))?;
                steps.push(DataStep { instructions: small(fetches), va, repeats, stores: kind == Kind::Store });
                fetches = 0;
            }
        }
        steps.truncate(most);
        if steps.is_empty() {
            return Err(bad("has no access to data".into()));
        }
        Ok(Self { steps })
    }

    /// One access to each of these pages of a benchmark, in this order, each after so many instructions: of page n to
    /// its line n, so that lines spread over the caches.
    pub fn over(pages: impl IntoIterator<Item = u32>, instructions: u32) -> Self {
        let step = |page: u32| DataStep {
            instructions,
            va: ((FIRST_PAGE + page) << PAGE_SHIFT) + ((page % LINES) << LINE_SHIFT),
            repeats: 0,
            stores: false,
        };
        Self { steps: pages.into_iter().map(step).collect() }
    }

    /// All of it.
    pub fn steps(&self) -> &[DataStep] {
        &self.steps
    }

    /// Accesses to data.
    pub fn accesses(&self) -> u64 {
        self.steps.iter().map(DataStep::accesses).sum()
    }

    /// Its pages, as they are first used.
    pub fn pages(&self) -> Vec<u32> {
        let mut seen = BTreeSet::new();
        self.steps.iter().map(|step| step.va >> PAGE_SHIFT).filter(|page| seen.insert(*page)).collect()
    }

    /// The same as a thread of a process with others: what a second-level table maps (1 MiB) keeps together, and goes
    /// where nothing is from this one on. Also where the next thread's may begin.
    pub fn moved_to(&self, first_table: u32) -> (Self, u32) {
        let tables: BTreeSet<u32> = self.steps.iter().map(|step| step.va >> TABLE_SHIFT).collect();
        let places: BTreeMap<u32, u32> = tables.into_iter().zip(first_table..).collect();
        let moved = |step: &DataStep| {
            let place = places.get(&(step.va >> TABLE_SHIFT)).copied().unwrap_or(first_table);
            DataStep { va: place << TABLE_SHIFT | step.va & ((1 << TABLE_SHIFT) - 1), ..*step }
        };
        (Self { steps: self.steps.iter().map(moved).collect() }, first_table + places.len() as u32)
    }
}

impl DataStep {
    /// Accesses to data.
    pub fn accesses(&self) -> u64 {
        1 + u64::from(self.repeats)
    }
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
