//! What a switch costs on this machine (Wiggins et al. 2003, section 4): lmbench's `lat_ctx` and the paper's *extreme*,
//! with processes, with threads of one process, and where there are protection keys with compartments of one process as
//! participants, all on one CPU.
//!
//! Participants stand in a ring of pipes that a token goes round. Who has it does its work and passes it on: *lat_ctx*
//! reads k KiB of its own, *extreme* a word of each of p pages, in random order, each read waiting for the one before.
//! A *step* is one participant's turn; the same step of a participant that passes the token to itself is what it takes
//! *alone*; a *switch* is the difference. Processes and threads read the same memory at the same addresses: what
//! differs between them is the address space. Compartments are entered and left by one thread: no token, and a switch
//! is a leave and an enter.

mod compartments;
mod error;
mod judge;
mod limits;
mod machine_facts;
mod memory;
mod options;
mod participants;
mod plan;
mod ring;
mod round_setup;
mod samples;

use std::time::Instant;

use lookaside_host::stolen_ms;
use lookaside_runtime::compare::in_turns;
use schemars::JsonSchema;
use serde::Serialize;

pub use error::{Early, SwitchError};
pub use judge::{Contrast, RingPoint, Round};
use limits::Limits;
pub use machine_facts::{KeySupport, MachineFacts};
pub use options::SwitchOptions;
use plan::RingCase;
pub use plan::{Benchmark, Frames, PageKind, Ring, Who};
use round_setup::RoundSetup;
pub use samples::KeyUse;
use samples::RingSample;

/// What was seen.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct SwitchReport {
    /// Lookaside's version.
    pub version: String,
    /// The machine, as far as it matters to switches.
    pub facts: MachineFacts,
    /// The CPU of the participants.
    pub cpu: usize,
    /// Rounds that were asked for.
    pub rounds_wanted: u32,
    /// Complete rounds; all figures are of these.
    pub rounds: u32,
    /// What a measurement took, after what did not count.
    pub window_ms: f64,
    /// Seed of orders and resamples.
    pub seed: u64,
    /// Least share of the memory meant for huge pages that lay in them, of all rounds; `None` where there are none to
    /// be had.
    pub huge_share: Option<f64>,
    /// Time of the whole.
    pub wall_ms: f64,
    /// Time of that CPU which the host gave to others meanwhile, by the kernel's account, which counts in 10 ms; `None`
    /// where it does not say.
    pub stolen_ms: Option<f64>,
    /// Every ring.
    pub points: Vec<RingPoint>,
    /// Processes against threads, in rings in which both tell what a switch takes; none where it was disturbed.
    pub contrasts: Vec<Contrast>,
    /// Why nothing can be told, as too much else ran; `None`: it can.
    pub disturbed: Option<String>,
    /// Why no compartments by protection keys took part; `None`: they did.
    pub no_compartments: Option<String>,
    /// Why it ended early.
    pub early: Option<Early>,
}

/// Measures on this machine, of which so many bytes of memory are free. `stop` is asked before each measurement, and
/// during it.
///
/// # Errors
/// What cannot be done is found before anything is measured; one line.
pub fn run(
    options: &SwitchOptions,
    available_bytes: u64,
    stop: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(&str),
) -> Result<SwitchReport, SwitchError> {
    let limits = Limits::here(available_bytes, compartments::refusal());
    let options = &plan::checked(options, &limits)?;
    let cpu = options.cpu.or(limits.cpus.last().copied()).unwrap_or_default();
    let others: Vec<usize> = limits.cpus.iter().copied().filter(|other| *other != cpu).collect();
    if !others.is_empty() {
        // What waits for the participants is not to run where they do. Participants bind themselves.
        lookaside_host::bind_to(&others)
            .map_err(|error| SwitchError(format!("CPUs {others:?} cannot be had: {error}")))?;
    }
    let report = measured(options, cpu, limits.no_compartments, stop, progress);
    // As it was; where that fails the thread stays beside the CPU, and nothing that was measured changes.
    let _ = lookaside_host::bind_to(&limits.cpus);
    report
}

fn measured(
    options: &SwitchOptions,
    cpu: usize,
    no_compartments: Option<String>,
    stop: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(&str),
) -> Result<SwitchReport, SwitchError> {
    progress("memory, processes and threads");
    let (began, stolen) = (Instant::now(), stolen_ms(cpu));
    let is_over = || began.elapsed() >= options.time;
    let compartments = no_compartments.is_none();
    let first = RoundSetup::set(options, cpu, 0, compartments).map_err(SwitchError)?;
    let mut huge_share = first.huge_share().filter(|share| *share > 0.0);
    let cases = plan::cases(options, huge_share.is_some(), compartments);
    let (mut stage, mut set) = (Some(first), 0);
    let rounds = options.rounds;
    let mut done = 0;
    let (samples, early) = in_turns(cases.len(), rounds, options.seed, &mut |round, which| {
        if stop() {
            return Err(Early::Interrupted);
        }
        if is_over() {
            return Err(Early::Time(options.time.as_secs()));
        }
        if round != set {
            // The one before goes first: both would take twice the memory.
            stage = None;
            (done, set) = (0, round);
        }
        let case: &RingCase = &cases[which];
        progress(&format!("round {} of {rounds}, {done} of {}: {case}", round + 1, cases.len()));
        done += 1;
        let stage = match &mut stage {
            Some(stage) => stage,
            None => stage.insert(RoundSetup::set(options, cpu, round, compartments).map_err(Early::Failed)?),
        };
        huge_share = huge_share.zip(stage.huge_share()).map(|(least, now)| least.min(now));
        let measured = stage.measure(case, options.window, &|| stop() || is_over());
        match measured {
            Err(Early::Interrupted) if !stop() => Err(Early::Time(options.time.as_secs())),
            measured => measured,
        }
    });
    drop(stage);
    let stolen_ms = stolen.zip(stolen_ms(cpu)).map(|(before, after)| after - before);
    let wall_ms = began.elapsed().as_secs_f64() * 1e3;
    progress("intervals");
    let (points, contrasts) = judge::judge(&cases, &samples, options.seed);
    let disturbed = judge::disturbed(&points);
    let contrasts = if disturbed.is_some() { Vec::new() } else { contrasts };
    Ok(SwitchReport {
        version: env!("CARGO_PKG_VERSION").into(),
        facts: MachineFacts::here(),
        cpu,
        rounds_wanted: rounds,
        rounds: samples.first().map_or(0, |all: &Vec<RingSample>| all.len() as u32),
        window_ms: options.window.as_secs_f64() * 1e3,
        seed: options.seed,
        huge_share,
        wall_ms,
        stolen_ms,
        points,
        contrasts,
        disturbed,
        no_compartments,
        early,
    })
}

impl SwitchReport {
    /// The point of a ring.
    pub fn point(&self, like: &Contrast, who: Who) -> Option<&RingPoint> {
        self.points.iter().find(|point| point.who == who && point.ring == like.ring)
    }
}
