//! Probing the machine at hand: for `probe`, and for commands that need its description and are given none.

use std::time::Duration;

use lookaside_machine::Machine;
use lookaside_probe::{probe, probe_with_retries, Halt, HostMachine, ProbeOptions, ProbeReport, RetryLimits};

use crate::exit::Failure;

use crate::interrupt::Interrupt;
use crate::nearest::described;
use crate::output::spinner;

/// Attempts within the time: where neighbours are busy one may find in a minute's second half what it did not in the
/// first.
pub const ATTEMPTS: u64 = 3;
/// Memory of the probe, in bytes, as `lookaside probe` has it by default.
const PROBE_BYTES: u64 = 256 << 20;
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
    eprintln!("lookaside: no --machine: probing this machine first");
    let report = measured(seed, ProbeTime { attempt: PROBE_TIME, all: None }, &|| interrupt.asked())?;
    let open: Vec<String> = report.missing().into_iter().map(|(what, _)| what).collect();
    if !open.is_empty() {
        eprintln!("lookaside: not found, so that the nearest preset's stands in: {}", open.join(", "));
    }
    described(&report)
}

/// What the probe finds on this machine, within the time.
pub fn measured(seed: u64, time: ProbeTime, asked: &dyn Fn() -> bool) -> Result<ProbeReport, Failure> {
    let mut host = HostMachine::on_idlest_cpu(PROBE_BYTES).map_err(Failure::bad)?;
    let options = ProbeOptions { only: None, quick: false, seed, time: Some(time.attempt) };
    let attempts = RetryLimits { most: ATTEMPTS, time: time.all };
    attempted(&options, attempts, asked, |options, halt, progress| Ok(probe(&mut host, options, halt, progress)))
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
