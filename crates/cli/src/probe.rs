//! The `probe` command.

use std::time::Duration;

use evidence_folder::{EvidenceFolder, EvidenceSamples};
use lookaside_machine::{preset, to_toml, Machine};
use lookaside_probe::{claims_of_cpu, probe, Claim, HostMachine, ProbeOptions, ProbeReport, RetryLimits};
use lookaside_views::json;
use lookaside_views::probe::view;

use crate::args::probe::ProbeArgs;
use lookaside_cli::exit::{Failure, NOT_CLEAN};
use lookaside_cli::here::keep_for_later;
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::nearest::{described, nearest};
use lookaside_cli::output::{check_writable, style, write_file};
use lookaside_cli::probing::{attempted, host_machine, ATTEMPTS};
use lookaside_cli::say::say;

mod evidence_folder;

/// Measures, prints, writes. Exit code 1 if something was not determined.
pub fn run(args: &ProbeArgs) -> Result<u8, Failure> {
    let interrupt = Interrupt::install()?;
    let options = ProbeOptions {
        only: args.only.map(Into::into),
        quick: args.quick,
        without: None,
        seed: args.seed,
        time: Some(Duration::from_secs(args.time)),
    };
    if let Some(path) = &args.output {
        check_writable(path)?;
    }
    args.report.check()?;
    let base = preset(nearest().0)?;
    let mut host = host_machine(args.memory.map(|mib| mib << 20))?;
    let (report, samples) = measure(&mut host, &base, args, &options, &interrupt)?;
    drop(host); // back to all CPUs, and the memory to the system

    // What was found is printed before anything can go wrong with files.
    args.report.write(&view(&report), &json::render(&report), &style(None))?;
    if let Some(path) = &args.output {
        let machine = report.machine(&base);
        machine.check()?;
        write_file(path, &to_toml(&machine))?;
    }
    let all = args.only.is_none() && !args.quick && !interrupt.asked();
    if all && report.measured_a_level() {
        match keep_for_later(&described(&report)?) {
            Ok(()) => say("saved: commands without --machine use it"),
            Err(e) => say(format_args!("not saved for commands without --machine: {e}")),
        }
    }
    for samples in samples {
        samples.add()?;
    }
    if interrupt.asked() {
        return Ok(interrupt.code());
    }
    Ok(if report.missing().is_empty() { 0 } else { NOT_CLEAN })
}

/// Probes, with samples if they are wanted: each attempt's, the first in the folder itself and later ones in folders of
/// their own there.
fn measure(
    host: &mut HostMachine,
    base: &Machine,
    args: &ProbeArgs,
    options: &ProbeOptions,
    interrupt: &Interrupt,
) -> Result<(ProbeReport, Vec<EvidenceSamples>), Failure> {
    let mut samples = Vec::new();
    let attempts = RetryLimits { most: ATTEMPTS, time: options.time };
    let mut report = attempted(options, attempts, &|| interrupt.asked(), |options, halt, progress| {
        let Some(folder) = &args.evidence else { return Ok(probe(host, options, halt, progress)) };
        let folder = match samples.len() {
            0 => folder.clone(),
            earlier => folder.join(format!("again-{earlier}")),
        };
        let stated = claims_of_cpu(host.cpu());
        let mut evidence = EvidenceFolder::begin(&folder, host, options.seed)?;
        let mut report = probe(evidence.metal(), options, halt, progress);
        complete(&mut report, stated, base);
        samples.push(evidence.end(&report));
        Ok(report)
    })?;
    let stated = claims_of_cpu(host.cpu());
    complete(&mut report, stated, base);
    Ok((report, samples))
}

/// Adds what others state, and where the values are from that a description by this report would have.
fn complete(report: &mut ProbeReport, stated: Vec<Claim>, base: &Machine) {
    report.compare(stated);
    report.origins = Some(report.machine(base).origins);
}
