//! `--machine`, `--set`, `--pages`, …: from the command line to model setups; the `machine` command.

use lookaside_engine::{OsModel, PagePolicy, Setup};
use lookaside_machine::{nearest_preset, presets, CpuId, Machine};

use crate::args::{MachineArgs, MachineCommand, PagesArg};
use crate::exit::Failure;
use crate::output::{print, print_json};

/// The machine of this name: a preset, or else a file.
pub fn find(name: &str) -> Result<Machine, Failure> {
    if name.contains(['/', '.']) {
        return Ok(lookaside_machine::load(name)?);
    }
    Ok(lookaside_machine::preset(name)?)
}

/// The machine of this name; without one the preset nearest to the running CPU, said on standard error.
pub fn find_or_nearest(name: Option<&str>) -> Result<Machine, Failure> {
    match name {
        Some(name) => find(name),
        None => {
            let (name, reason) = nearest_preset(&CpuId::running());
            eprintln!("lookaside: machine {name}: {reason}");
            find(name)
        }
    }
}

/// A setup for each machine asked for, and why it is that machine.
pub fn setups(args: &MachineArgs) -> Result<Vec<(Setup, String)>, Failure> {
    let asked: Vec<(String, String)> = if args.machine.is_empty() {
        let (name, reason) = nearest_preset(&CpuId::running());
        vec![(name.to_string(), reason)]
    } else {
        args.machine.iter().map(|name| (name.clone(), "asked for".to_string())).collect()
    };
    asked
        .into_iter()
        .map(|(name, reason)| {
            let mut setup = Setup::new(find(&name)?.with_overrides(&args.set)?);
            setup.os = OsModel {
                frames: args.frames,
                pages: match args.pages {
                    PagesArg::Base => PagePolicy::Base,
                    PagesArg::Thp => PagePolicy::Thp,
                },
                huge_page: None,
            };
            setup.seed = args.seed;
            Ok((setup, reason))
        })
        .collect()
}

/// Whether the running system says of itself that it is a virtual machine.
pub fn is_virtual() -> bool {
    std::fs::read_to_string("/proc/cpuinfo")
        .is_ok_and(|text| text.lines().any(|l| l.starts_with("flags") && l.split(' ').any(|f| f == "hypervisor")))
}

/// The `machine` command.
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
                return Ok(crate::exit::BAD_INPUT);
            }
        }
    }
    Ok(0)
}
