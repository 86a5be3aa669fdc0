//! `lookaside run`: a program with a technique applied from within, by a preloaded library, or from outside, by this process.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;

use lookaside_report::hugepages_live;
use lookaside_runtime::bake::{BakeError, Unmodified};
use lookaside_runtime::hugepages::{self, orders, Way};
use rustix::io::Errno;
use rustix::process::{kill_process, waitid, Pid, Signal, WaitId, WaitIdOptions};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::iterator::SignalsInfo;
use signal_hook::low_level::siginfo::Cause;

use crate::args::run::Run;
use crate::clock::Clock;
use crate::colored;
use crate::exit::Failure;
use crate::huge_plan::PlanFile;
use crate::output::short_count;
use crate::preload::{check_loadable, library, told, Told, BAKER, BAKE_INSTEAD, HUGEPAGES_INSTEAD, MALLOC};

/// Runs the program. Without statistics and huge pages this process becomes the program.
pub fn run(args: &Run) -> Result<u8, Failure> {
    let bad = |e: BakeError| Failure::bad(format_args!("--bake: {e}"));
    let baker = args.bake.as_ref().map(|bake| bake.parse::<Unmodified>().map_err(bad)).transpose()?;
    if let Some(baker) = &baker {
        baker.check().map_err(bad)?;
    }
    let color = args.color.as_ref().map(|text| colored::partition(text)).transpose()?;
    let huge = args.hugepages.as_ref().map(|text| huge_settings(text)).transpose()?;
    let name = args.command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let from_inside = matches!(huge, Some((_, Way::Inside)));
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
        add(&mut preloads, &library(&MALLOC)?);
        command.env("LOOKASIDE_COLOR", line).env_remove("LOOKASIDE_COLOR_STATS");
    }
    if baker.is_some() || from_inside {
        add(&mut preloads, &library(&BAKER)?);
        // The library does what it is told here, and nothing that an environment around this one tells it.
        command.env_remove("LOOKASIDE_BAKE").env_remove("LOOKASIDE_BAKE_STATS").env_remove(orders::VARIABLE);
    }
    if from_inside {
        command.env(orders::VARIABLE, orders::VALUE);
    }
    if let Some(baker) = &baker {
        // Nothing is refused any more: an error would be one line, alone.
        let may_use = rustix::thread::sched_getaffinity(None).map_or(2, |cpus| cpus.count());
        if may_use < 2 {
            eprintln!(
                "lookaside: --bake: the program may use one CPU only, which the helper would take away; it runs without"
            );
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
    for (lines, summary) in [(baked, summary as fn(&str) -> String), (placed, colored::summary)] {
        if let Some(lines) = lines {
            eprint!("{}", summary(&std::fs::read_to_string(lines.path())?));
        }
    }
    Ok(match (status.code(), status.signal()) {
        (Some(code), _) => (code & 0xff) as u8,
        (None, signal) => (128 + (signal.unwrap_or(0) & 0x7f)) as u8,
    })
}

/// How huge pages are to be made.
enum Huge {
    Auto(hugepages::Settings),
    Plan(PlanFile),
}

/// The thread that makes them.
enum Making {
    Auto(hugepages::Watch),
    Plan(hugepages::Apply),
}

impl Huge {
    fn start(self, pid: u32) -> std::io::Result<Making> {
        Ok(match self {
            Self::Auto(settings) => Making::Auto(hugepages::Watch::start(pid, settings, Arc::new(Clock))?),
            Self::Plan(plan) => Making::Plan(hugepages::Apply::start(pid, Arc::new(plan))?),
        })
    }
}

impl Making {
    /// Ends it; what was done, in lines.
    fn end(self) -> String {
        match self {
            Self::Auto(watch) => hugepages_live::summary(&watch.end()),
            Self::Plan(apply) => hugepages_live::planned(&apply.end()),
        }
    }
}

/// How huge pages are to be made, and from where; what stands in their way is found before the program starts.
fn huge_settings(text: &str) -> Result<(Huge, Way), Failure> {
    let bad = |e: hugepages::HugeError| Failure::bad(format_args!("--hugepages: {e}"));
    let huge = match hugepages::names_plan(text) {
        true => Huge::Plan(PlanFile::load(Path::new(text))?),
        false => Huge::Auto(text.parse().map_err(bad)?),
    };
    Ok((huge, hugepages::way().map_err(bad)?))
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

/// A line for all processes, and one for each that had something to bake or where the system refused a call.
fn summary(lines: &str) -> String {
    let lines = told(lines);
    let helper_ms = lines.iter().map(|line| line.cpu_nanos).sum::<u64>() as f64 / 1e6;
    let busy: Vec<&Told> = lines.iter().filter(|line| line.touches > 0 || line.errno != 0).collect();
    let mut text = format!(
        "lookaside: baked {} of {} processes that exited; helpers used {helper_ms:.1} ms of CPU\n",
        busy.len(),
        lines.len()
    );
    for line in busy {
        let share = 100.0 * line.cpu_nanos as f64 / line.elapsed_nanos.max(1) as f64;
        text += &format!(
            "lookaside:   {} touches in {} rounds, up to {} MiB in small pages, {share:.1} % of a CPU over {:.2} s; by {}; at the end: {}{}\n",
            short_count(line.touches),
            short_count(line.rounds),
            line.most_small_bytes >> 20,
            line.elapsed_nanos as f64 / 1e9,
            line.backend,
            line.state,
            if line.errno == 0 {
                String::new()
            } else {
                format!(" ({})", std::io::Error::from_raw_os_error(line.errno))
            },
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_what_was_baked() {
        let line = |touches: u64, errno: i32| {
            format!(
                "{{\"pid\":1,\"bake\":\"auto\",\"backend\":\"prefetch:t0\",\"state\":\"warm\",\"errno\":{errno},\"elapsed_nanos\":2000000000,\"cpu_nanos\":500000000,\
                 \"rounds\":3,\"touches\":{touches},\"pause_nanos\":0,\"looks\":1,\"longest_look_nanos\":1,\"ranges\":1,\
                 \"small_bytes\":1,\"most_small_bytes\":8388608}}\n"
            )
        };
        let text = summary(&[line(300, 0), line(0, 0), line(0, libc::EPERM), "{\"pid\":".into()].concat());
        assert!(text.starts_with("lookaside: baked 2 of 3 processes that exited; helpers used 1500.0 ms"), "{text}");
        assert!(
            text.contains(
                "300 touches in 3 rounds, up to 8 MiB in small pages, 25.0 % of a CPU over 2.00 s; by prefetch:t0; at the end: warm\n"
            ),
            "{text}"
        );
        assert!(text.contains("Operation not permitted"), "{text}");
        assert_eq!(text.lines().count(), 3);
    }
}
