//! `lookaside run`: a program with a technique applied from within, by a preloaded library, or from outside, by this
//! process.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command};

use lookaside_runtime::bake::{BakeError, PreloadSettings};
use lookaside_runtime::hugepages::{remote_collapse, CollapseSide};
use rustix::io::Errno;
use rustix::process::{kill_process, waitid, Pid, Signal, WaitId, WaitIdOptions};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::iterator::SignalsInfo;
use signal_hook::low_level::siginfo::Cause;

use crate::args::run::RunArgs;
use crate::preload::library::{self, check_loadable, BAKER, BAKE_INSTEAD, HUGEPAGES_INSTEAD, MALLOC};
use lookaside_cli::exit::Failure;
use lookaside_cli::say::say;

mod bake;
mod color;
mod hugepages;

/// Runs the program. Without statistics and huge pages this process becomes the program.
pub fn run(args: &RunArgs) -> Result<u8, Failure> {
    let bad = |e: BakeError| Failure::bad(format_args!("--bake: {e}"));
    let baker = args.bake.as_ref().map(|bake| bake.parse::<PreloadSettings>().map_err(bad)).transpose()?;
    if let Some(baker) = &baker {
        baker.check().map_err(bad)?;
    }
    let color = args.color.as_ref().map(|text| color::partition(text)).transpose()?;
    let huge = args.hugepages.as_ref().map(|text| hugepages::settings(text)).transpose()?;
    let name = args.command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let from_inside = matches!(huge, Some((_, CollapseSide::Inside)));
    if baker.is_some() || color.is_some() {
        check_loadable(&args.command, BAKE_INSTEAD)?;
    }
    if from_inside {
        check_loadable(&args.command, HUGEPAGES_INSTEAD)?;
    }
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]);
    let mut preloads = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    if let Some(line) = &color {
        add(&mut preloads, &library::find(&MALLOC)?);
        command.env("LOOKASIDE_COLOR", line).env_remove("LOOKASIDE_COLOR_STATS");
    }
    if baker.is_some() || from_inside {
        add(&mut preloads, &library::find(&BAKER)?);
        // The library does what it is told here, and nothing that an environment around this one tells it.
        command.env_remove("LOOKASIDE_BAKE").env_remove("LOOKASIDE_BAKE_STATS").env_remove(remote_collapse::VARIABLE);
    }
    if from_inside {
        command.env(remote_collapse::VARIABLE, remote_collapse::VALUE);
    }
    if let Some(baker) = &baker {
        // Nothing is refused any more: an error would be one line, alone.
        let may_use = lookaside_host::allowed_cpus().map_or(2, |cpus| cpus.len());
        if may_use < 2 {
            say("--bake: the program may use one CPU only, which the helper would take away; it runs without");
        }
        command.env("LOOKASIDE_BAKE", baker.to_string());
    }
    if !preloads.is_empty() {
        command.env("LD_PRELOAD", preloads);
    }
    if !args.stats && huge.is_none() {
        return Err(not_started(&name, &command.exec()));
    }
    let file = || {
        tempfile::NamedTempFile::new()
            .map_err(|e| Failure::bad(format_args!("--stats: no temporary file (TMPDIR): {e}")))
    };
    let baked = baker.filter(|_| args.stats).map(|_| file()).transpose()?;
    let placed = color.filter(|_| args.stats).map(|_| file()).transpose()?;
    for (variable, lines) in [("LOOKASIDE_BAKE_STATS", &baked), ("LOOKASIDE_COLOR_STATS", &placed)] {
        if let Some(lines) = lines {
            command.env(variable, lines.path());
        }
    }
    let mut child = command.spawn().map_err(|e| not_started(&name, &e))?;
    pass_signals_on(&child)?;
    let watch = huge.map(|(huge, _)| huge.start(child.id())).transpose()?;
    if let Some(watch) = watch {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        // Its number stays its own until the watch is over.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while pid.is_some_and(|pid| matches!(waitid(WaitId::Pid(pid), ended), Err(Errno::INTR))) {}
        eprint!("{}", watch.end());
    }
    let status = child.wait()?;
    for (lines, summary) in [(baked, bake::summary as fn(&str) -> String), (placed, color::summary)] {
        if let Some(lines) = lines {
            eprint!("{}", summary(&std::fs::read_to_string(lines.path())?));
        }
    }
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => (code & 0xff) as u8,
        (None, signal) => (128 + (signal.unwrap_or(0) & 0x7f)) as u8,
    })
}

fn not_started(name: &str, error: &std::io::Error) -> Failure {
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    Failure { line: format!("{name}: {error}"), code }
}

/// One library more.
fn add(preloads: &mut OsString, library: &Path) {
    if !preloads.is_empty() {
        preloads.push(":");
    }
    preloads.push(library);
}

/// Signals that others send to this process go to the program; those of the terminal reach it by themselves.
fn pass_signals_on(child: &Child) -> Result<(), Failure> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let mut signals = SignalsInfo::<WithOrigin>::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])
        .map_err(|e| Failure::bad(format_args!("signal handler: {e}")))?;
    std::thread::spawn(move || {
        for origin in signals.forever() {
            let signal = match origin.signal {
                SIGINT => Signal::INT,
                SIGQUIT => Signal::QUIT,
                SIGHUP => Signal::HUP,
                _ => Signal::TERM,
            };
            if let (Some(pid), true) = (pid, origin.cause != Cause::Kernel) {
                let _ = kill_process(pid, signal); // gone already: nothing to tell
            }
        }
    });
    Ok(())
}
