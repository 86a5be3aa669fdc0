//! `lookaside cc`: a compiler whose programs record themselves.

use std::os::unix::process::ExitStatusExt;

use lookaside_capture::recording_compiler;

use crate::args::cc::CcArgs;
use lookaside_cli::exit::Failure;
use lookaside_cli::say::say;

/// Runs the compiler; the exit code is its own.
pub fn run(args: &CcArgs) -> Result<u8, Failure> {
    let mut compiler = recording_compiler(&args.command)?;
    let name = args.command[0].to_string_lossy();
    let status = compiler.command.status().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure { line: format!("{name}: no such compiler; install it"), code: 127 },
        _ => Failure { line: format!("{name}: {error}"), code: 126 },
    })?;
    if status.success() {
        compiler.notes.iter().for_each(say);
    }
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => (code & 0xff) as u8,
        (None, signal) => (128 + (signal.unwrap_or(0) & 0x7f)) as u8,
    })
}
