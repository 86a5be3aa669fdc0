//! The `probe` command.

use std::time::Duration;

use lookaside_machine::{nearest_preset, preset, to_toml, CpuId};
use lookaside_probe::{probe, Halt, Host, Options, Step};

use crate::args::{Probe, StepArg};
use crate::exit::{Failure, NOT_CLEAN};
use crate::interrupt::Interrupt;
use crate::output::{print, print_json, spinner, style, write_file};

/// Measures, prints, writes. Exit code 1 if something was not determined.
pub fn run(args: &Probe) -> Result<u8, Failure> {
    let interrupt = Interrupt::install()?;
    let options = Options {
        only: args.only.map(|step| match step {
            StepArg::L1 => Step::L1,
            StepArg::L2 => Step::L2,
            StepArg::Policy => Step::Policy,
        }),
        quick: args.quick,
        seed: args.seed,
        time: Some(Duration::from_secs(args.time)),
    };
    let mut host = Host::new(args.memory << 20).map_err(Failure::bad)?;
    let halt = || interrupt.asked().then_some(Halt::Interrupted);
    let bar = spinner("probing");
    let report = probe(&mut host, &options, &halt, &mut |step| bar.set_message(step.to_string()));
    drop(host); // back to all CPUs, and the memory to the system
    bar.finish_and_clear();

    let (nearest, _) = nearest_preset(&CpuId::running());
    if let Some(path) = &args.output {
        let machine = report.machine(&preset(nearest)?);
        machine.check()?;
        write_file(path, &to_toml(&machine))?;
    }
    if let Some(folder) = &args.evidence {
        let fail = |e| Failure::bad(format_args!("{}: {e}", folder.display()));
        std::fs::create_dir_all(folder).map_err(fail)?;
        let text = serde_json::to_string_pretty(&report).map_err(Failure::bad)?;
        write_file(&folder.join("report.json"), &text)?;
    }
    if args.json {
        print_json(&report)?;
    } else {
        print(&lookaside_report::probe::render(&report, &style(None)))?;
    }
    if interrupt.asked() {
        return Ok(interrupt.code());
    }
    Ok(if report.missing().is_empty() { 0 } else { NOT_CLEAN })
}
