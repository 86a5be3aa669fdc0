//! `lookaside run --color`: which partition, and what the preloaded malloc writes at the exit of each process.

use std::path::Path;

use lookaside_machine::{Partitions, BOOKKEEPING};
use lookaside_report::num::bytes;
use lookaside_runtime::color::spec;
use serde::Deserialize;

use lookaside_cli::exit::Failure;

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
pub fn partition(text: &str) -> Result<String, Failure> {
    let bad = |why: String| Failure::bad(format_args!("--color: {why}"));
    let (path, name) = match text.rsplit_once(':') {
        // A file may have a colon in its name.
        Some((path, name)) if !Path::new(text).exists() => (path, Some(name)),
        _ => (text, None),
    };
    let file = Partitions::load(path).map_err(|e| bad(e.to_string()))?;
    if file.page_size.shift() != 12 {
        return Err(bad(format!("{path}: pages of {} can't be given to a whole program; 4K can", file.page_size)));
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
pub fn summary(lines: &str) -> String {
    let exits: Vec<MallocExit> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut text = format!("lookaside: {} processes that exited allocated in the partition\n", exits.len());
    for exit in exits {
        text += &format!(
            "lookaside:   {} of its pages, at most {} in use; {} allocations ({}) that no run of its pages could hold lie outside; {} refused\n",
            bytes(exit.capacity_bytes),
            bytes(exit.peak_bytes),
            exit.outside_allocations,
            bytes(exit.outside_bytes),
            exit.refused
        );
    }
    text
}
