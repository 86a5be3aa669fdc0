//! The `machine` command: lists, shows and checks machine descriptions.

use lookaside_machine::{presets, Machine};

use crate::args::machine::MachineCommand;
use lookaside_cli::exit::{Failure, BAD_INPUT};
use lookaside_cli::machines::find;
use lookaside_cli::output::{print, print_json};

/// Runs the command. Exit code 2 where a file is no sound description.
pub fn run(command: MachineCommand) -> Result<u8, Failure> {
    match command {
        MachineCommand::List { json: true } => {
            let all: Result<Vec<Machine>, _> = presets().iter().map(|p| lookaside_machine::preset(p.name)).collect();
            print_json(&all?)?;
        }
        MachineCommand::List { json: false } => print(&lookaside_machine::list_presets())?,
        MachineCommand::Show { machine, set, toml, json } => {
            let machine = find(&machine)?.with_overrides(&set)?;
            match (toml, json) {
                (true, _) => print(&lookaside_machine::to_toml(&machine))?,
                (_, true) => print_json(&machine)?,
                _ => print(&lookaside_machine::describe(&machine))?,
            }
        }
        MachineCommand::Check { files } => {
            let mut bad = 0;
            for file in &files {
                match lookaside_machine::load(file) {
                    Ok(machine) => print(&format!("{}: {}: sound\n", file.display(), machine.name))?,
                    Err(e) => {
                        eprintln!("lookaside: {e}");
                        bad += 1;
                    }
                }
            }
            if bad > 0 {
                return Ok(BAD_INPUT);
            }
        }
    }
    Ok(0)
}
