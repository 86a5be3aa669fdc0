//! PT-Baker (Chatzopoulos 2024) in the model: a helper beside the program touches page-table entries at its own pace, so
//! that walks find them in a cache.
//!
//! Program and helper go through one engine, in the order of their modelled times. The helper's touches are made there:
//! by its own hardware thread's TLBs, walks and caches, or as the kernel's reads of the entries. What it costs the program
//! is room in what they share. Bandwidth, and an SMT core's shared pipeline, are not modelled.
//!
//! ```
//! use lookaside_engine::{FrameLayout, Setup};
//! use lookaside_techniques::bake::{model, Baker, Pace, Program, Way};
//! use lookaside_workloads::{Stream, UniformPages, BASE};
//!
//! let machine = lookaside_machine::preset("ryzen-5900x")?.with_overrides(&["cache.l3.size=256K".into()])?;
//! let setup = Setup::new(machine);
//! let pages = 32 << 10; // whose tables take as much as the last-level cache
//! let program = || Stream::new(UniformPages::new(pages, 1), 100_000);
//! let how = Program { warm_accesses: 50_000, in_flight: 1.0 };
//! let baker = Baker::new(Way::Entries, 1, vec![BASE..BASE + pages * 4096]);
//! let base = model(setup.clone(), &mut program(), &how, None, &[])?;
//! let baked = model(setup, &mut program(), &how, Some(&baker), &[])?;
//! assert!(baked.program.data.cost.walk_references_memory < base.program.data.cost.walk_references_memory);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod beside;
mod found;
mod helper;
mod slice;
mod stressor;

use std::collections::HashSet;
use std::ops::Range;

use lookaside_engine::{Detail, Engine, ModelClock, Outcome, Setup, SetupError};
use lookaside_trace::{Block, Event, Source, TraceError};
use thiserror::Error;

pub use beside::{beside, Beside, Pair};
pub use found::{find, Found, FoundRegion};
use helper::Running;
use stressor::Pressing;

/// Accesses that the program goes on by before the helper catches up: some hundred to some thousand cycles.
const STEP: usize = 16;

/// A helper.
#[derive(Clone, Debug, PartialEq)]
pub struct Baker {
    /// How it touches.
    pub way: Way,
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
    pub placement: Placement,
    /// What its touches take.
    pub pace: Pace,
}

impl Baker {
    /// As in the paper: a touch for each 8 pages, without pause, on another core, at the pace of a Zen 3 core.
    pub fn new(way: Way, process: u32, regions: Vec<Range<u64>>) -> Self {
        Self {
            way,
            process,
            regions,
            stride_pages: 8,
            nops: 0,
            sleep_cycles: 0.0,
            placement: Placement::OtherCore,
            pace: Pace::zen3(way),
        }
    }
}

/// How entries are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Algorithm 2 with loads: a walk, and the page's own line comes too.
    Load,
    /// Algorithm 2 with prefetches: the same, but nothing waits for the line.
    Prefetch,
    /// Algorithms 3 and 4: the kernel reads the entries, and no data.
    Entries,
}

/// Where the helper runs, the program being on the machine's first hardware thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On the next core of the same socket: they share what the socket does, the last-level cache.
    OtherCore,
    /// On the other hardware thread of the program's core.
    SmtSibling,
}

/// What touching takes, beside what caches, TLBs and memory take in the engine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Least cycles from one touch to the next: the loop itself. At least 1.
    pub touch_cycles: f64,
    /// Cycles of one NOP and its share of the loop around it.
    pub nop_cycles: f64,
    /// Touches under way at a time: the latency of each is divided by it. At least 1.
    pub in_flight: f64,
}

impl Pace {
    /// Of a Zen 3 core: by walks, six walkers; by reads, 24 misses under way in its L1 data cache (both recalled from AMD's
    /// optimisation guide for family 19h, section 2). A loop of 5 cycles and 1 for a NOP are assumed.
    pub fn zen3(way: Way) -> Self {
        let in_flight = if way == Way::Entries { 24.0 } else { 6.0 };
        Self { touch_cycles: 5.0, nop_cycles: 1.0, in_flight }
    }
}

/// What there is to know of the program beside its accesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Program {
    /// Accesses that fill caches and TLBs first and are not counted, to the next 16 (left-out repeats are none).
    pub warm_accesses: u64,
    /// How far its waits overlap: their sum is divided by it. 1 = each waits for the one before it. At least 1.
    pub in_flight: f64,
}

/// A neighbour that presses on the shared caches, as stress-ng's stressors do (section 5.1): single loads in a loop, each on a
/// core of its own of the program's socket, in a process of its own.
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
    fn bytes(self) -> u64 {
        match self {
            Self::Walk { bytes } | Self::Random { bytes } => bytes,
        }
    }
}

/// What came of it after the warm-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Baked {
    /// The program's outcome, totals only.
    pub program: Outcome,
    /// Cycles that the program took: one an access, and its waits over [`Program::in_flight`].
    pub program_cycles: f64,
    /// The helper's, where there is one.
    pub helper: Option<Helped>,
}

/// What the helper did.
#[derive(Clone, Debug, PartialEq)]
pub struct Helped {
    /// Its outcome after the warm-up. Reads of entries are lookups of the data caches, and no accesses.
    pub outcome: Outcome,
    /// Touches after the warm-up.
    pub touches: u64,
    /// Rounds over all regions that it ended, the warm-up's included.
    pub rounds: u64,
}

/// Why there is no model.
#[derive(Debug, Error)]
pub enum BakeError {
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

/// Runs a program's accesses through a machine, with a helper beside it or without, and with stressors beside both. Same
/// arguments, same result to the bit.
///
/// # Errors
/// The setup is impossible, the source can't be read, or the helper can't be placed or has nothing to do.
pub fn model(
    setup: Setup,
    source: &mut dyn Source,
    program: &Program,
    baker: Option<&Baker>,
    stressors: &[Stressor],
) -> Result<Baked, BakeError> {
    at_least("program.in_flight", program.in_flight, 1.0)?;
    let machine = setup.machine.clone();
    let mut engine = Engine::new(Setup { detail: Detail::Totals, ..setup })?;
    let (mut warm, mut counted) = (engine.background_counts(), engine.background_counts());
    let (mut block, mut step) = (Block::default(), Block::default());
    let mut helper: Option<Running<'_>> = None;
    let mut pressing: Vec<Pressing> = Vec::new();
    let mut threads = HashSet::new();
    let (mut begun, mut seen, mut warm_cycles) = (false, 0, 0.0);
    while source.next_block(&mut block)? {
        if threads.insert((block.process, block.thread)) {
            // Each new thread gets the next hardware thread, whoever else there is: the first gets the first.
            let place = Event::Migrate { cpu: (threads.len() - 1) as u32 };
            let (process, thread) = (block.process, block.thread);
            engine.run_background(&Block { process, thread, events: vec![(0, place)], ..Block::default() }, &mut warm);
        }
        if !begun {
            begun = true;
            helper = baker.map(|baker| Running::new(baker, &machine, &mut engine)).transpose()?;
            // The helper's core stays free where there is none: what stressors do is then the same.
            let stressors = stressors.iter().zip(0..);
            let stressors = stressors.map(|(of, number)| Pressing::new(*of, number, 2, &machine, &mut engine));
            pressing = stressors.collect::<Result<_, _>>()?;
        }
        let len = block.len();
        for from in (0..len.max(1)).step_by(STEP) {
            let to = len.min(from + STEP);
            slice::cut(&block, from..to, &mut step);
            let is_warm = seen < program.warm_accesses;
            let counts = if is_warm { &mut warm } else { &mut counted };
            engine.run_background(&step, counts);
            seen += (to - from) as u64;
            let cycles = cycles(engine.background_clock(counts), program.in_flight);
            if is_warm {
                warm_cycles = cycles;
            }
            let now = if is_warm { cycles } else { warm_cycles + cycles };
            catch_up(&mut engine, now, is_warm, helper.as_mut(), &mut pressing);
        }
    }
    Ok(Baked {
        program_cycles: cycles(engine.background_clock(&mut counted), program.in_flight),
        program: engine.background_outcome(&mut counted),
        helper: helper.map(|helper| helper.end(&mut engine)),
    })
}

/// Lets helper and stressors do what they do up to a time, one after the other as their times tell; at one time the helper first.
fn catch_up(
    engine: &mut Engine,
    time: f64,
    is_warm: bool,
    mut helper: Option<&mut Running<'_>>,
    pressing: &mut [Pressing],
) {
    loop {
        let at = helper.as_ref().map_or(f64::INFINITY, |helper| helper.now());
        let first = pressing.iter_mut().min_by(|a, b| a.now().total_cmp(&b.now()));
        match (&mut helper, first) {
            (_, Some(stressor)) if stressor.now() <= time && stressor.now() < at => stressor.step(engine),
            (Some(helper), _) if at <= time => helper.step(engine, is_warm),
            _ => break,
        }
    }
}

fn cycles(clock: ModelClock, in_flight: f64) -> f64 {
    clock.accesses as f64 + clock.waiting_cycles() / in_flight
}

fn at_least(what: &'static str, value: f64, least: f64) -> Result<(), BakeError> {
    // Not a number is not at least anything.
    if value >= least && value.is_finite() {
        Ok(())
    } else {
        Err(BakeError::Number { what, value, least })
    }
}
