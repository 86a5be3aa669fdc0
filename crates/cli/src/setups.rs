//! What the engine models, from the arguments `--machine`, `--no-probe`, `--set`, `--pages`, `--frames` and `--seed`.

use lookaside_engine::{OsModel, Setup};

use crate::args::model::ModelArgs;
use lookaside_cli::exit::Failure;
use lookaside_cli::machines::ChosenMachine;

/// A setup, why it is this machine, and whether that is a preset that nobody asked for.
pub struct ChosenSetup {
    /// What is modelled.
    pub setup: Setup,
    /// Why it is this machine.
    pub reason: String,
    /// It is the nearest preset: nothing was asked for and nothing measured.
    pub is_guess: bool,
}

/// A setup for each machine asked for; without one for the machine at hand.
pub fn setups(args: &ModelArgs) -> Result<Vec<ChosenSetup>, Failure> {
    let names: Vec<Option<&str>> = match args.machine.is_empty() {
        true => vec![None],
        false => args.machine.iter().map(|name| Some(name.as_str())).collect(),
    };
    let chosen = names.into_iter().map(|name| {
        let ChosenMachine { machine, reason, is_guess } = ChosenMachine::find(name, !args.no_probe)?;
        let mut setup = Setup::new(machine.with_overrides(&args.set)?);
        setup.os = OsModel { frames: args.frames, pages: args.pages.into(), huge_page: None };
        setup.seed = args.seed;
        Ok(ChosenSetup { setup, reason, is_guess })
    });
    chosen.collect()
}

/// Whether the running system says of itself that it is a virtual machine.
pub fn is_virtual() -> bool {
    lookaside_host::CpuInfo::here().has_flag("hypervisor") == Some(true)
}
