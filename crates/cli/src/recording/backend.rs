//! Which recorder is used; offers to install what exact recording needs.

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::{Command, Stdio};

use lookaside_capture::{exact_backend, RecordRequest, RecordTarget, RecorderBackend, Recording};

use lookaside_cli::exit::Failure;
use lookaside_cli::say::say;

/// The line that installs it.
const INSTALL: &str = "apt-get install -y valgrind gcc libc6-dev";

/// The backend to ask for; `None` leaves it to the capture. Offers to install Valgrind where it would see the program.
/// With `exact` it is one that sees every access.
pub fn choose(
    target: &RecordTarget,
    named: Option<RecorderBackend>,
    exact: bool,
    yes: bool,
) -> Result<Option<RecorderBackend>, Failure> {
    let RecordTarget::Command(command) = target else { return Ok(named) };
    let fitting = match named {
        Some(backend) => Ok(backend),
        None => exact_backend(command),
    };
    if let Ok(RecorderBackend::Valgrind) = fitting {
        offer_valgrind(yes);
    }
    match fitting {
        Ok(backend) if exact => Ok(Some(backend)),
        Err(e) if exact => Err(e.into()),
        _ => Ok(named),
    }
}

/// Starts a recording. Which recorder it is, and why, is said before: from then on the terminal is the program's. Gives
/// that word too, for the report.
pub fn start(request: RecordRequest) -> Result<(Recording, Option<String>), Failure> {
    let (backend, why) = lookaside_capture::choose(&request)?;
    why.iter().for_each(say);
    let recording = lookaside_capture::start(&RecordRequest { backend: Some(backend), ..request })?;
    Ok((recording, why))
}

/// Installs Valgrind if it is missing and the user wants it: asks on a terminal, not when `yes`.
/// What goes wrong is said; the caller then does without.
fn offer_valgrind(yes: bool) {
    if have("valgrind") && (have("gcc") || have("cc")) {
        return;
    }
    // Without an answer the capture itself says what is missing.
    if !have("apt-get") || !yes && !agreed() {
        return;
    }
    say(format_args!("installing valgrind ({INSTALL})"));
    let quiet = |line: &str| {
        let mut words = line.split(' ');
        let program = words.next().unwrap_or_default();
        Command::new(program)
            .args(["-o", "DPkg::Lock::Timeout=120", "-qq"])
            .args(words)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let installed = quiet(INSTALL) || (quiet("apt-get update") && quiet(INSTALL));
    if !installed {
        say(format_args!("valgrind could not be installed; as root: {INSTALL}"));
    }
}

fn agreed() -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return false;
    }
    eprint!("lookaside: valgrind is not installed; exact recording needs it. Install it now ({INSTALL})? [y/N] ");
    let _ = io::stderr().flush();
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).is_ok() && answer.trim().eq_ignore_ascii_case("y")
}

fn have(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
