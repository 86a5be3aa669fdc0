//! Probing the machine at hand: for `probe`, and for commands that need its description and are given none.

use std::time::Duration;

use lookaside_machine::Machine;
use lookaside_probe::{
    claims_of_cpu, probe, probe_with_retries, Halt, HostMachine, ProbeOptions, ProbeReport, ProbeStep, RetryLimits,
};

use crate::exit::Failure;

use crate::interrupt::Interrupt;
use crate::nearest::described;
use crate::output::spinner;
use crate::say::say;

/// Attempts within the time: where neighbours are busy one may find in a minute's second half what it did not in the
/// first.
pub const ATTEMPTS: u64 = 3;
/// Memory of the probe, in bytes, where nobody says how much.
const PROBE_BYTES: u64 = 256 << 20;
/// Memory of its random reads: so much, but no more than this part of what is to be had.
const READ_BYTES: (u64, u64) = (1 << 30, 4);
/// Time of an attempt, likewise.
const PROBE_TIME: Duration = Duration::from_secs(60);

/// How long a probe may take.
#[derive(Clone, Copy, Debug)]
pub struct ProbeTime {
    /// Each attempt.
    pub attempt: Duration,
    /// All of them; `None` = no bound but theirs.
    pub all: Option<Duration>,
}

/// The description that the probe makes of this machine, for commands that are given none.
pub fn probed(seed: u64, interrupt: &Interrupt) -> Result<Machine, Failure> {
    say("no --machine: probing this machine first");
    let report = measured(seed, ProbeTime { attempt: PROBE_TIME, all: None }, &|| interrupt.asked())?;
    let open: Vec<String> = report.missing().into_iter().map(|(what, _)| what).collect();
    if !open.is_empty() {
        say(format_args!("not measured, taken from the nearest preset: {}", open.join(", ")));
    }
    described(&report)
}

/// This machine, with so many bytes of memory to measure in, or as many as the probe needs.
pub fn host_machine(max_bytes: Option<u64>) -> Result<HostMachine, Failure> {
    let host = HostMachine::on_idlest_cpu(max_bytes.unwrap_or(PROBE_BYTES)).map_err(Failure::bad)?;
    if max_bytes.is_some() {
        return Ok(host);
    }
    let available = lookaside_host::available_bytes().unwrap_or(u64::MAX);
    Ok(host.with_sequence_bytes(READ_BYTES.0.min(available / READ_BYTES.1).max(PROBE_BYTES)))
}

/// What the probe finds on this machine, within the time.
pub fn measured(seed: u64, time: ProbeTime, asked: &dyn Fn() -> bool) -> Result<ProbeReport, Failure> {
    let mut host = host_machine(None)?;
    // Where someone waits for it, the levels need all of the time, and their costs in cycles are what is modelled.
    let without = time.all.map(|_| ProbeStep::Timing);
    let options = ProbeOptions { only: None, quick: false, without, seed, time: Some(time.attempt) };
    let attempts = RetryLimits { most: ATTEMPTS, time: time.all };
    let attempt = |options: &ProbeOptions, halt: &dyn Fn() -> Option<Halt>, progress: &mut dyn FnMut(&str)| {
        Ok(probe(&mut host, options, halt, progress))
    };
    let mut report = attempted(&options, attempts, asked, attempt)?;
    report.compare(claims_of_cpu(host.cpu()));
    Ok(report)
}

/// Attempts at a probe, with progress, which says the number of each after the first.
pub fn attempted(
    options: &ProbeOptions,
    attempts: RetryLimits,
    asked: &dyn Fn() -> bool,
    mut attempt: impl FnMut(&ProbeOptions, &dyn Fn() -> Option<Halt>, &mut dyn FnMut(&str)) -> Result<ProbeReport, Failure>,
) -> Result<ProbeReport, Failure> {
    let bar = spinner("probing");
    let halt = || asked().then_some(Halt::Interrupted);
    let mut made = 0;
    let mut attempt = |options: &ProbeOptions| {
        made += 1;
        let number = if made > 1 { format!("attempt {made}: ") } else { String::new() };
        attempt(options, &halt, &mut |step| bar.set_message(format!("{number}{step}")))
    };
    let report = probe_with_retries(options, attempts, asked, &mut attempt);
    bar.finish_and_clear();
    report
}
