//! `lookaside color run`: a program whose heap lies in one partition.

use std::path::Path;

use lookaside_machine::{Partitions, BOOKKEEPING};
use lookaside_report::num::bytes;
use lookaside_runtime::color::spec;
use serde::Deserialize;

use crate::args::color::ColorRunArgs;
use crate::launch::Launch;
use crate::preload::library::{self, check_loadable, COLOR_INSTEAD, MALLOC};
use lookaside_cli::exit::Failure;

/// Runs the program. Without statistics this process becomes the program.
pub fn run(args: &ColorRunArgs) -> Result<u8, Failure> {
    let line = partition(&args.partition)?;
    check_loadable(&args.command, COLOR_INSTEAD)?;
    let mut launch = Launch::of(&args.command);
    launch.preload(&library::find(&MALLOC)?);
    launch.command.env("LOOKASIDE_COLOR", line).env_remove("LOOKASIDE_COLOR_STATS");
    match args.stats {
        true => launch.with_statistics("LOOKASIDE_COLOR_STATS", summary),
        false => Err(launch.replace_this_process()),
    }
}

/// What was allocated in one process, as its library writes it at the exit: a line of JSON.
#[derive(Default, Deserialize)]
struct MallocExit {
    capacity_bytes: u64,
    peak_bytes: u64,
    outside_allocations: u64,
    outside_bytes: u64,
    refused: u64,
}

/// The line that the library reads, of `FILE[:NAME]`.
fn partition(text: &str) -> Result<String, Failure> {
    let bad = |why: String| Failure::bad(format_args!("--partition: {why}"));
    let (path, name) = match text.rsplit_once(':') {
        // A file may have a colon in its name.
        Some((path, name)) if !Path::new(text).exists() => (path, Some(name)),
        _ => (text, None),
    };
    let file = Partitions::load(path).map_err(|e| bad(e.to_string()))?;
    if file.page_size.shift() != 12 {
        return Err(bad(format!("{path}: a whole program can't be given {} pages, only 4K pages", file.page_size)));
    }
    let own = |name: &str| spec(&file, name).map_err(|why| bad(format!("{path}: {why}")));
    let names = file.partitions.iter().map(|partition| partition.name.as_str());
    let programs: Vec<&str> = names.filter(|name| *name != BOOKKEEPING).collect();
    match (name, programs.as_slice()) {
        (Some(name), _) => own(name),
        (None, [only]) => own(only),
        (None, all) => {
            Err(bad(format!("{path}: has {} partitions; say which: {path}:NAME, of {}", all.len(), all.join(", "))))
        }
    }
}

/// A line for each process that allocated something.
fn summary(lines: &str) -> String {
    let exits: Vec<MallocExit> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut text = format!("lookaside: exited processes that used the partition: {}\n", exits.len());
    for exit in exits {
        text += &format!(
            "lookaside:   {} of its pages, at most {} in use; {} allocations ({}) lie outside it, since no run of \
             its pages could hold them; {} refused\n",
            bytes(exit.capacity_bytes),
            bytes(exit.peak_bytes),
            exit.outside_allocations,
            bytes(exit.outside_bytes),
            exit.refused
        );
    }
    text
}
