//! What all workloads have in common: how they are asked for, and how they run, natively and as a stream.

use std::sync::atomic::{AtomicBool, Ordering};

use lookaside_trace::{Block, Event, Granularity, MapSource, Source, TraceError, TraceInfo};
use thiserror::Error;

use crate::follow::Followed;
use crate::mapping::Pages;
use crate::memory::{ArrayMemory, WorkloadMemory};
use crate::observer::{AccessObserver, FlowBlock, Unseen};

/// Fewest bytes of a workload's arrays: 1 MiB; each has then at least a few hundred elements.
pub const LEAST_BYTES: u64 = 1 << 20;
/// Most bytes: 1 TiB, up to which 32-bit vertex and element numbers do.
pub const MOST_BYTES: u64 = 1 << 40;
/// Accesses after which a block ends.
const BLOCK_ACCESSES: usize = 16 * 1024;

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadSpec {
    /// Bytes that all arrays together take at most, [`LEAST_BYTES`] to [`MOST_BYTES`].
    pub bytes: u64,
    /// Seed of the input and of what the task draws.
    pub seed: u64,
    /// How often the main task is done; what a round is, each workload says.
    pub rounds: u64,
    /// Page sizes.
    pub pages: Pages,
}

impl WorkloadSpec {
    /// One round, on base pages, with seed 1.
    pub fn new(bytes: u64) -> Self {
        Self { bytes, seed: 1, rounds: 1, pages: Pages::Base }
    }
}

/// Why a workload can't be built.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// No workload has this name.
    #[error("{name:?}: no such workload; there are {}", known.join(", "))]
    Name {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<&'static str>,
    },
    /// Too small or too large.
    #[error("{bytes} bytes: this workload has {} to {}", in_units(*least), in_units(*most))]
    Size {
        /// What was asked for.
        bytes: u64,
        /// Fewest bytes.
        least: u64,
        /// Most bytes.
        most: u64,
    },
    /// No round, or more than can be counted.
    #[error("{rounds} rounds: 1 to {} are possible", u32::MAX)]
    Rounds {
        /// What was asked for.
        rounds: u64,
    },
    /// The system gave no memory, or none of the pages asked for.
    #[error("memory for {bytes} bytes: {source}")]
    Memory {
        /// What was asked for.
        bytes: u64,
        /// The system's word.
        source: std::io::Error,
    },
}

/// A size as it can be asked for: in the largest unit that it is a whole number of.
fn in_units(bytes: u64) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    let unit = units.iter().find(|(bits, _)| bytes > 0 && bytes.trailing_zeros() >= *bits);
    unit.map_or_else(|| bytes.to_string(), |(bits, unit)| format!("{}{unit}", bytes >> bits))
}

/// One of the workloads, its input built; main task not done yet, or done in part.
pub trait Workload: Send {
    /// Its name.
    fn name(&self) -> &'static str;

    /// What one operation is: the denominator of its times.
    fn operation(&self) -> &'static str;

    /// How large its parts are: names and counts.
    fn parameters(&self) -> Vec<(&'static str, u64)>;

    /// The memory of its arrays.
    fn regions(&self) -> &[ArrayMemory];

    /// The mappings of its stream, as `Map` events.
    fn mappings(&self) -> Vec<Event>;

    /// Its stream has instruction fetches, too.
    fn has_fetches(&self) -> bool;

    /// Operations done so far.
    fn operations(&self) -> u64;

    /// Of all results so far. Equal input, seed and rounds give an equal one.
    fn checksum(&self) -> u64;

    /// Does the main task, natively, until it is done or told to stop (looked at every few hundred accesses).
    /// `true` = it is done.
    fn run(&mut self, stop: &AtomicBool) -> bool;

    /// Does the next part of the main task and appends its accesses. `false` = there is nothing left.
    fn fill(&mut self, block: &mut Block) -> bool;

    /// As [`Self::fill`], with where each access's address comes from.
    fn fill_flows(&mut self, block: &mut FlowBlock) -> bool;

    /// Chunks that its arrays lie in: pages, or the chunks that its [`WorkloadMemory`] was given; none where it has no
    /// [`Chunked`](crate::kernel::Chunked) arrays.
    fn chunks(&self) -> usize;

    /// Does the next part of the main task, natively, and tells who follows it of its chunks. `false` = there is
    /// nothing left.
    fn follow(&mut self, run: &mut Followed<'_>) -> bool;
}

/// What a workload has to write: one algorithm, seen or not.
pub trait Kernel: Send {
    /// See [`Workload::name`].
    const NAME: &'static str;
    /// See [`Workload::operation`].
    const OPERATION: &'static str;
    /// See [`Workload::has_fetches`].
    const FETCHES: bool = false;

    /// See [`Workload::parameters`].
    fn parameters(&self) -> Vec<(&'static str, u64)>;
    /// Its arrays.
    fn room(&self) -> &WorkloadMemory;

    /// One for each array, by its name, where it has its own.
    fn mappings(&self) -> Vec<Event> {
        let map = |region: &ArrayMemory| {
            let (addr, len) = (region.stream_start, region.bytes);
            Event::Map { addr, len, prot: 3, source: MapSource::named(region.name), site: 0 }
        };
        self.room().regions().iter().map(map).collect()
    }

    /// See [`Workload::operations`].
    fn operations(&self) -> u64;
    /// See [`Workload::checksum`].
    fn checksum(&self) -> u64;

    /// The next few hundred accesses of the main task; `false` = it is done.
    fn step(&mut self, observer: &mut impl AccessObserver) -> bool;
}

impl<K: Kernel> Workload for K {
    fn name(&self) -> &'static str {
        K::NAME
    }

    fn operation(&self) -> &'static str {
        K::OPERATION
    }

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        Kernel::parameters(self)
    }

    fn regions(&self) -> &[ArrayMemory] {
        self.room().regions()
    }

    fn mappings(&self) -> Vec<Event> {
        Kernel::mappings(self)
    }

    fn has_fetches(&self) -> bool {
        K::FETCHES
    }

    fn operations(&self) -> u64 {
        Kernel::operations(self)
    }

    fn checksum(&self) -> u64 {
        Kernel::checksum(self)
    }

    fn run(&mut self, stop: &AtomicBool) -> bool {
        while !stop.load(Ordering::Relaxed) {
            if !self.step(&mut Unseen) {
                return true;
            }
        }
        false
    }

    fn fill(&mut self, block: &mut Block) -> bool {
        self.step(block)
    }

    fn fill_flows(&mut self, block: &mut FlowBlock) -> bool {
        self.step(block)
    }

    fn chunks(&self) -> usize {
        self.room().chunks()
    }

    fn follow(&mut self, run: &mut Followed<'_>) -> bool {
        self.step(run)
    }
}

/// The accesses of a workload's main task as a source of blocks of one thread (process 1, thread 1), after the `Map`
/// events of its memory. The task is really done: its arrays take their memory.
pub struct WorkloadStream {
    workload: Box<dyn Workload>,
    begun: bool,
    done: bool,
    info: TraceInfo,
}

impl WorkloadStream {
    /// Of a workload that has not run yet.
    pub fn new(workload: Box<dyn Workload>) -> Self {
        let info = TraceInfo {
            granularity: Granularity::Byte,
            recorder: "workloads".into(),
            command: vec![workload.name().into()],
            has_fetches: workload.has_fetches(),
            ..TraceInfo::default()
        };
        Self { workload, begun: false, done: false, info }
    }

    /// With the words that it was asked for by, in place of the workload's name.
    pub fn asked_by(mut self, command: Vec<String>) -> Self {
        self.info.command = command;
        self
    }

    /// The workload, with what it did so far.
    pub fn workload(&self) -> &dyn Workload {
        &*self.workload
    }

    /// As [`Source::next_block`], with where each access's address comes from.
    pub fn next_flow_block(&mut self, block: &mut FlowBlock) -> bool {
        block.flows.clear();
        self.begin(&mut block.block);
        while !self.done && block.block.len() < BLOCK_ACCESSES {
            self.done = !self.workload.fill_flows(block);
        }
        !block.block.is_empty()
    }

    /// Empties a block, and tells it the mappings if it is the first.
    fn begin(&mut self, block: &mut Block) {
        block.clear();
        if !self.begun {
            self.begun = true;
            for mapping in self.workload.mappings() {
                block.push_event(mapping);
            }
        }
        (block.process, block.thread) = (1, 1);
    }
}

impl Source for WorkloadStream {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn next_block(&mut self, block: &mut Block) -> Result<bool, TraceError> {
        self.begin(block);
        while !self.done && block.len() < BLOCK_ACCESSES {
            self.done = !self.workload.fill(block);
        }
        Ok(!block.is_empty())
    }
}
