//! The `probe` command.

use std::time::Duration;

use lookaside_machine::{nearest_preset, preset, to_toml, CpuId};
use lookaside_probe::{probe, stated_here, Halt, Host, Options, Report, Step};

use crate::args::probe::{Probe, StepArg};
use crate::evidence::{Evidence, Samples};
use crate::exit::{Failure, NOT_CLEAN};
use crate::interrupt::Interrupt;
use crate::output::{check_writable, print, print_json, spinner, style, write_file};

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
    let mut host = Host::new(args.memory << 20).map_err(Failure::bad)?;
    let (mut report, samples) = measure(&mut host, args, &options, &interrupt)?;
    report.compare(stated_here(host.cpu()));
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
    if let Some(samples) = samples {
        samples.add(&report)?;
    }
    if interrupt.asked() {
        return Ok(interrupt.code());
    }
    Ok(if report.missing().is_empty() { 0 } else { NOT_CLEAN })
}

/// Probes, with samples if they are wanted.
fn measure(
    host: &mut Host,
    args: &Probe,
    options: &Options,
    interrupt: &Interrupt,
) -> Result<(Report, Option<Samples>), Failure> {
    let bar = spinner("probing");
    let mut progress = |step: &str| bar.set_message(step.to_string());
    let halt = || interrupt.asked().then_some(Halt::Interrupted);
    let Some(folder) = &args.evidence else {
        let report = probe(host, options, &halt, &mut progress);
        bar.finish_and_clear();
        return Ok((report, None));
    };
    let mut evidence = Evidence::begin(folder, host, args.seed)?;
    let report = probe(evidence.metal(), options, &halt, &mut progress);
    bar.finish_and_clear();
    Ok((report, Some(evidence.end())))
}
