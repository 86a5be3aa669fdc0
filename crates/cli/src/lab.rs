//! `lookaside lab`: the papers' programs, and the papers' own command, found as git finds its subcommands.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use crate::args::lab::LabArgs;
use crate::workload;
use lookaside_cli::exit::Failure;

/// The program's name.
const PROGRAM: &str = "lookaside-lab";

/// Runs a workload, or becomes the papers' program with these arguments: its exit code is this one's.
pub fn run(args: &LabArgs) -> Result<u8, Failure> {
    let (name, args) = match args {
        LabArgs::Workload(args) => return workload::run(args),
        LabArgs::Reproduce(passed) => ("reproduce", &passed.args),
        LabArgs::Experiment(passed) => ("experiment", &passed.args),
    };
    let Some(program) = candidates().find(|path| path.is_file()) else {
        return Err(Failure::bad(format_args!(
            "{PROGRAM} is not installed; build it: cargo build --release -p {PROGRAM}"
        )));
    };
    let error = Command::new(&program).arg(name).args(args).exec();
    Err(Failure::bad(format_args!("{}: {error}", program.display())))
}

/// Where it may be: beside this executable, then in the folders of PATH.
fn candidates() -> impl Iterator<Item = PathBuf> {
    let beside = env::current_exe().ok().and_then(|path| path.parent().map(|folder| folder.join(PROGRAM)));
    let folders: Vec<PathBuf> = env::var_os("PATH").iter().flat_map(env::split_paths).collect();
    beside.into_iter().chain(folders.into_iter().map(|folder| folder.join(PROGRAM)))
}
