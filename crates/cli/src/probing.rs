//! Probing the machine at hand: for `probe`, and for commands that need its description and are given none.

use std::time::Duration;

use lookaside_machine::{preset, Machine};
use lookaside_probe::{probe, probe_with_retries, Halt, HostMachine, ProbeOptions, ProbeReport, RetryLimits};

use crate::exit::Failure;
use crate::interrupt::Interrupt;
use crate::machines;
use crate::output::spinner;

/// Attempts within the time: where neighbours are busy one may find in a minute's second half what it did not in the
/// first.
pub const ATTEMPTS: u64 = 3;
/// Memory of the probe, in bytes, as `lookaside probe` has it by default.
const PROBE_BYTES: u64 = 256 << 20;
/// Time of an attempt, likewise.
const PROBE_TIME: Duration = Duration::from_secs(60);

/// The description that the probe makes of this machine, for commands that are given none.
pub fn probed(seed: u64, interrupt: &Interrupt) -> Result<Machine, Failure> {
    eprintln!("lookaside: no --machine: probing this machine first");
    let mut host = HostMachine::on_idlest_cpu(PROBE_BYTES).map_err(Failure::bad)?;
    let options = ProbeOptions { only: None, quick: false, seed, time: Some(PROBE_TIME) };
    let attempts = RetryLimits { most: ATTEMPTS, time: None };
    let report = attempted(&options, attempts, interrupt, |options, halt, progress| {
        Ok(probe(&mut host, options, halt, progress))
    })?;
    let open: Vec<String> = report.missing().into_iter().map(|(what, _)| what).collect();
    if !open.is_empty() {
        eprintln!("lookaside: not found, so that the nearest preset's stands in: {}", open.join(", "));
    }
    let (nearest, _) = machines::nearest();
    let machine = report.machine(&preset(nearest)?);
    machine.check()?;
    Ok(machine)
}

/// Attempts at a probe, with progress, which says the number of each after the first.
pub fn attempted(
    options: &ProbeOptions,
    attempts: RetryLimits,
    interrupt: &Interrupt,
    mut attempt: impl FnMut(&ProbeOptions, &dyn Fn() -> Option<Halt>, &mut dyn FnMut(&str)) -> Result<ProbeReport, Failure>,
) -> Result<ProbeReport, Failure> {
    let bar = spinner("probing");
    let halt = || interrupt.asked().then_some(Halt::Interrupted);
    let mut made = 0;
    let mut attempt = |options: &ProbeOptions| {
        made += 1;
        let number = if made > 1 { format!("attempt {made}: ") } else { String::new() };
        attempt(options, &halt, &mut |step| bar.set_message(format!("{number}{step}")))
    };
    let report = probe_with_retries(options, attempts, &|| interrupt.asked(), &mut attempt);
    bar.finish_and_clear();
    report
}
