//! The helper, the program and the stressors that the model takes, and what it gives.

use std::ops::Range;

use lookaside_engine::{Outcome, SetupError};
use lookaside_timing::{AddressFlow, CoreParameters};
use lookaside_trace::TraceError;
use thiserror::Error;

/// A helper.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelledBaker {
    /// How it touches.
    pub way: TouchMethod,
    /// The process that it belongs to.
    pub process: u32,
    /// Memory whose entries it touches, one range after the other, round after round.
    pub regions: Vec<Range<u64>>,
    /// Base pages from one touch to the next; a line holds 8 entries of 8 bytes (section 4.4.1).
    pub stride_pages: u64,
    /// NOP instructions between two touches.
    pub nops: u64,
    /// Core cycles that it sleeps after each round.
    pub sleep_cycles: f64,
    /// Where it runs.
    pub placement: HelperPlacement,
    /// What its touches take.
    pub pace: TouchCost,
}

impl ModelledBaker {
    /// As in the paper: a touch for each 8 pages, without pause, on another core, at the pace of a Zen 3 core.
    pub fn new(way: TouchMethod, process: u32, regions: Vec<Range<u64>>) -> Self {
        Self {
            way,
            process,
            regions,
            stride_pages: 8,
            nops: 0,
            sleep_cycles: 0.0,
            placement: HelperPlacement::OtherCore,
            pace: TouchCost::zen3(way),
        }
    }
}

/// How entries are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchMethod {
    /// Algorithm 2 with loads: a walk, and the page's own line comes too.
    Load,
    /// Algorithm 2 with prefetches: the same, but nothing waits for the line.
    Prefetch,
    /// Algorithms 3 and 4: the kernel reads the entries, and no data.
    Entries,
}

/// Where the helper runs, the program being on the machine's first hardware thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelperPlacement {
    /// On the next core of the same socket: they share what the socket does, the last-level cache.
    OtherCore,
    /// On the other hardware thread of the program's core.
    SmtSibling,
}

/// What touching takes, beside what caches, TLBs and memory take in the engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TouchCost {
    /// Least cycles from one touch to the next: the loop itself. At least 1.
    pub touch_cycles: f64,
    /// Cycles of one NOP and its share of the loop around it.
    pub nop_cycles: f64,
    /// Touches under way at a time: the latency of each is divided by it. At least 1.
    pub in_flight: f64,
}

impl TouchCost {
    /// Of a Zen 3 core ([`CoreParameters::ZEN3`]): by walks, as many as it has walkers; by reads, as many as it has
    /// miss buffers. A loop of 5 cycles and 1 for a NOP are assumed.
    pub fn zen3(way: TouchMethod) -> Self {
        let CoreParameters { walkers, miss_buffers, .. } = CoreParameters::ZEN3;
        let in_flight = if way == TouchMethod::Entries { miss_buffers } else { walkers };
        Self { touch_cycles: 5.0, nop_cycles: 1.0, in_flight: in_flight.into() }
    }
}

/// What there is to know of the program beside its accesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BakedProgram<'a> {
    /// Accesses that fill caches and TLBs first and are not counted, to the next 16 (left-out repeats are none).
    pub warm_accesses: u64,
    /// What its accesses need of each other.
    pub flow: ProgramFlow<'a>,
}

/// What a program's accesses need of each other, by which its core does several at once
/// ([`lookaside_timing::TimedCore`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProgramFlow<'a> {
    /// Nothing is known of it: each access waits for the one before, and takes a cycle where it waits for nothing else.
    Chained,
    /// Where each address comes from is known.
    Known {
        /// What the core does at once.
        core: CoreParameters,
        /// Of each block, one for each access; or none where all its addresses are at hand.
        flows: &'a [Vec<AddressFlow>],
        /// Instructions that are executed for each access, itself included, on average: spread evenly. At least 1.
        instructions_per_access: f64,
    },
}

/// A neighbour that presses on the shared caches, as stress-ng's stressors do (section 5.1): single loads in a loop,
/// each on a core of its own of the program's socket, in a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stressor {
    /// Walks through so many bytes, line after line, again and again.
    Walk {
        /// How many.
        bytes: u64,
    },
    /// Reads lines of so many bytes at random.
    Random {
        /// How many.
        bytes: u64,
    },
}

impl Stressor {
    pub(super) fn bytes(self) -> u64 {
        match self {
            Self::Walk { bytes } | Self::Random { bytes } => bytes,
        }
    }
}

/// What came of it after the warm-up.
#[derive(Clone, Debug, PartialEq)]
pub struct BakeResult {
    /// The program's outcome, totals only.
    pub program: Outcome,
    /// Cycles that the program took, its waits overlapping as its [`ProgramFlow`] lets them.
    pub program_cycles: f64,
    /// The helper's, where there is one.
    pub helper: Option<HelperResult>,
}

/// What the helper did.
#[derive(Clone, Debug, PartialEq)]
pub struct HelperResult {
    /// Its outcome after the warm-up. Reads of entries are lookups of the data caches, and no accesses.
    pub outcome: Outcome,
    /// Touches after the warm-up.
    pub touches: u64,
    /// Rounds over all regions that it ended, the warm-up's included.
    pub rounds: u64,
}

/// Why there is no model.
#[derive(Debug, Error)]
pub enum BakeModelError {
    /// The setup is impossible.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The program's accesses can't be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// There is nowhere to put the helper.
    #[error("{machine} has one {what}: the helper can't be placed so; choose another placement or machine")]
    Placement {
        /// The machine.
        machine: String,
        /// What it has too few of.
        what: &'static str,
    },
    /// They share nothing that entries could be kept in.
    #[error("{machine}: walks read no cache that the helper's core shares with the program's: it could keep nothing warm there; choose another placement or machine")]
    NothingShared {
        /// The machine.
        machine: String,
    },
    /// There are not enough cores.
    #[error("{machine} has {cores} cores a socket: too few for the program, the helper and each stressor")]
    Stressors {
        /// The machine.
        machine: String,
        /// Its cores a socket.
        cores: u32,
    },
    /// The helper has nothing to do.
    #[error("the helper has no page to touch: give it ranges of at least a byte")]
    NoPages,
    /// No time can be told by this.
    #[error("{what} = {value}: must be a number from {least} on")]
    Number {
        /// Which.
        what: &'static str,
        /// As given.
        value: f64,
        /// The least that is possible.
        least: f64,
    },
}

pub(super) fn at_least(what: &'static str, value: f64, least: f64) -> Result<(), BakeModelError> {
    // Not a number is not at least anything.
    if value >= least && value.is_finite() {
        Ok(())
    } else {
        Err(BakeModelError::Number { what, value, least })
    }
}
