//! What the engine models, from the arguments `--machine`, `--set`, `--pages`, `--frames` and `--seed`.

use lookaside_engine::{OsModel, Setup};

use crate::args::model::ModelArgs;
use lookaside_cli::exit::Failure;
use lookaside_cli::machines;

/// A setup for each machine asked for, and why it is that machine.
pub fn setups(args: &ModelArgs) -> Result<Vec<(Setup, String)>, Failure> {
    let asked: Vec<(String, String)> = if args.machine.is_empty() {
        let (name, reason) = machines::nearest();
        vec![(name.to_string(), reason)]
    } else {
        args.machine.iter().map(|name| (name.clone(), "asked for".to_string())).collect()
    };
    asked
        .into_iter()
        .map(|(name, reason)| {
            let mut setup = Setup::new(machines::find(&name)?.with_overrides(&args.set)?);
            setup.os = OsModel { frames: args.frames, pages: args.pages.into(), huge_page: None };
            setup.seed = args.seed;
            Ok((setup, reason))
        })
        .collect()
}

/// Whether the running system says of itself that it is a virtual machine.
pub fn is_virtual() -> bool {
    lookaside_host::CpuInfo::here().has_flag("hypervisor") == Some(true)
}
