//! The `probe` command.

use std::time::Duration;

use lookaside_machine::{nearest_preset, preset, to_toml, CpuId, Machine};
use lookaside_probe::{probe, probe_again, stated_here, Attempts, Halt, Host, Options, Report, Step};

use crate::args::probe::{Probe, StepArg};
use crate::evidence::{Evidence, Samples};
use crate::exit::{Failure, NOT_CLEAN};
use crate::interrupt::Interrupt;
use crate::output::{check_writable, print, print_json, spinner, style, write_file};

/// Attempts within the time: where neighbours are busy one may find in a minute's second half what it did not in the first.
const ATTEMPTS: u64 = 3;

/// Memory of the probe, in bytes, as `lookaside probe` has it by default.
const PROBE_BYTES: u64 = 256 << 20;
/// Time of an attempt, likewise.
const PROBE_TIME: Duration = Duration::from_secs(60);

/// Measures, prints, writes. Exit code 1 if something was not determined.
pub fn run(args: &Probe) -> Result<u8, Failure> {
    let interrupt = Interrupt::install()?;
    let options = Options {
        only: args.only.map(|step| match step {
            StepArg::L1 => Step::L1,
            StepArg::L2 => Step::L2,
            StepArg::Policy => Step::Policy,
            StepArg::Effects => Step::Effects,
            StepArg::Counters => Step::Counters,
            StepArg::Caches => Step::Caches,
            StepArg::Walks => Step::Walks,
            StepArg::WalkCaches => Step::WalkCaches,
            StepArg::Covers => Step::Covers,
            StepArg::Spread => Step::Spread,
            StepArg::Large => Step::Large,
        }),
        quick: args.quick,
        seed: args.seed,
        time: Some(Duration::from_secs(args.time)),
    };
    if let Some(path) = &args.output {
        check_writable(path)?;
    }
    let (nearest, _) = nearest_preset(&CpuId::running());
    let base = preset(nearest)?;
    let mut host = Host::on_calmest_cpu(args.memory << 20).map_err(Failure::bad)?;
    let (report, samples) = measure(&mut host, args, &options, &interrupt)?;
    drop(host); // back to all CPUs, and the memory to the system

    // What was found is printed before anything can go wrong with files.
    if args.json {
        print_json(&report)?;
    } else {
        print(&lookaside_report::probe::render(&report, &style(None)))?;
    }
    if let Some(path) = &args.output {
        let machine = report.machine(&base);
        machine.check()?;
        write_file(path, &to_toml(&machine))?;
    }
    for samples in samples {
        samples.add()?;
    }
    if interrupt.asked() {
        return Ok(interrupt.code());
    }
    Ok(if report.missing().is_empty() { 0 } else { NOT_CLEAN })
}

/// Probes, with samples if they are wanted: each attempt's, the first in the folder itself and later ones in folders of their own there.
fn measure(
    host: &mut Host,
    args: &Probe,
    options: &Options,
    interrupt: &Interrupt,
) -> Result<(Report, Vec<Samples>), Failure> {
    let mut samples = Vec::new();
    let attempts = Attempts { most: ATTEMPTS, time: options.time };
    let mut report = attempted(options, attempts, interrupt, |options, halt, progress| {
        let Some(folder) = &args.evidence else { return Ok(probe(host, options, halt, progress)) };
        let folder = match samples.len() {
            0 => folder.clone(),
            earlier => folder.join(format!("again-{earlier}")),
        };
        let stated = stated_here(host.cpu());
        let mut evidence = Evidence::begin(&folder, host, options.seed)?;
        let mut report = probe(evidence.metal(), options, halt, progress);
        report.compare(stated);
        samples.push(evidence.end(&report));
        Ok(report)
    })?;
    report.compare(stated_here(host.cpu()));
    Ok((report, samples))
}

/// The description that the probe makes of this machine, for commands that are given none.
pub fn probed(seed: u64, interrupt: &Interrupt) -> Result<Machine, Failure> {
    eprintln!("lookaside: no --machine: probing this machine first");
    let mut host = Host::on_calmest_cpu(PROBE_BYTES).map_err(Failure::bad)?;
    let options = Options { only: None, quick: false, seed, time: Some(PROBE_TIME) };
    let attempts = Attempts { most: ATTEMPTS, time: None };
    let report = attempted(&options, attempts, interrupt, |options, halt, progress| {
        Ok(probe(&mut host, options, halt, progress))
    })?;
    let open: Vec<String> = report.missing().into_iter().map(|(what, _)| what).collect();
    if !open.is_empty() {
        eprintln!("lookaside: not found, so that the nearest preset's stands in: {}", open.join(", "));
    }
    let (nearest, _) = nearest_preset(&CpuId::running());
    let machine = report.machine(&preset(nearest)?);
    machine.check()?;
    Ok(machine)
}

/// Attempts at a probe, with progress, which says the number of each after the first.
fn attempted(
    options: &Options,
    attempts: Attempts,
    interrupt: &Interrupt,
    mut attempt: impl FnMut(&Options, &dyn Fn() -> Option<Halt>, &mut dyn FnMut(&str)) -> Result<Report, Failure>,
) -> Result<Report, Failure> {
    let bar = spinner("probing");
    let halt = || interrupt.asked().then_some(Halt::Interrupted);
    let mut made = 0;
    let mut attempt = |options: &Options| {
        made += 1;
        let number = if made > 1 { format!("attempt {made}: ") } else { String::new() };
        attempt(options, &halt, &mut |step| bar.set_message(format!("{number}{step}")))
    };
    let report = probe_again(options, attempts, &|| interrupt.asked(), &mut attempt);
    bar.finish_and_clear();
    report
}
