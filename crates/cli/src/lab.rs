//! `lookaside lab`: the papers' own program, found as git finds its subcommands.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use lookaside_cli::exit::Failure;

/// The program's name.
const PROGRAM: &str = "lookaside-lab";

/// Becomes the program with these arguments: its exit code is this one's.
pub fn run(args: &[OsString]) -> Result<u8, Failure> {
    let Some(program) = candidates().find(|path| path.is_file()) else {
        return Err(Failure::bad(format_args!(
            "{PROGRAM} is not installed; from the sources: cargo build --release -p {PROGRAM}"
        )));
    };
    let error = Command::new(&program).args(args).exec();
    Err(Failure::bad(format_args!("{}: {error}", program.display())))
}

/// Where it may be: beside this executable, then in the folders of PATH.
fn candidates() -> impl Iterator<Item = PathBuf> {
    let beside = env::current_exe().ok().and_then(|path| path.parent().map(|folder| folder.join(PROGRAM)));
    let folders: Vec<PathBuf> = env::var_os("PATH").iter().flat_map(env::split_paths).collect();
    beside.into_iter().chain(folders.into_iter().map(|folder| folder.join(PROGRAM)))
}
