//! The `machine` command: lists, shows, checks and measures machines.

use lookaside_machine::presets;
use lookaside_views::machine::check::{CheckedMachine, MachineCheck};
use lookaside_views::machine::presets::MachineList;
use lookaside_views::{json, machine as views};

use crate::args::machine::MachineCommand;
use crate::{probe, validate};
use lookaside_cli::exit::{Failure, BAD_INPUT};
use lookaside_cli::machines::find;
use lookaside_cli::output::{print, style, OutputArgs};
use lookaside_cli::say::say;

/// Runs the command. Exit code 2 where a file is no sound description.
pub fn run(command: MachineCommand) -> Result<u8, Failure> {
    match command {
        MachineCommand::List { output } => {
            output.check()?;
            let machines = presets().iter().map(|p| lookaside_machine::preset(p.name)).collect::<Result<_, _>>()?;
            let list = MachineList { machines };
            output.write(&views::presets::view(&list.machines), &json::render(&list), &style(None))?;
            Ok(0)
        }
        MachineCommand::Show { machine, set, toml, output } => {
            output.check()?;
            let machine = find(&machine)?.with_overrides(&set)?;
            match toml {
                true => print(&lookaside_machine::to_toml(&machine))?,
                false => output.write(&views::view(&machine), &json::render(&machine), &style(None))?,
            }
            Ok(0)
        }
        MachineCommand::Check { machines, output } => check(&machines, &output),
        MachineCommand::Probe(args) => probe::run(&args),
        MachineCommand::Validate(args) => validate::run(&args),
    }
}

fn check(machines: &[String], output: &OutputArgs) -> Result<u8, Failure> {
    output.check()?;
    let checked = machines.iter().map(|name| match find(name) {
        Ok(machine) => CheckedMachine { file: name.clone(), machine: Some(machine.name), error: None },
        Err(e) => CheckedMachine { file: name.clone(), machine: None, error: Some(e.line) },
    });
    let checked = MachineCheck { files: checked.collect() };
    let errors: Vec<&String> = checked.files.iter().filter_map(|file| file.error.as_ref()).collect();
    errors.iter().for_each(say);
    output.write(&views::check::view(&checked.files), &json::render(&checked), &style(None))?;
    Ok(if errors.is_empty() { 0 } else { BAD_INPUT })
}
