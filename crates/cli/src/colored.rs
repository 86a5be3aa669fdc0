//! `lookaside run --color`: which partition, and what the preloaded malloc tells at the end.

use std::path::Path;

use lookaside_machine::{Partitions, BOOKKEEPING};
use lookaside_report::num::bytes;
use lookaside_runtime::color::spec;
use serde::Deserialize;

use crate::exit::Failure;

/// What the library tells of a process that exits, a line of JSON each.
#[derive(Default, Deserialize)]
struct Told {
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
    let told: Vec<Told> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut text = format!("lookaside: {} processes that exited allocated in the partition\n", told.len());
    for told in told {
        text += &format!(
            "lookaside:   {} of its pages, at most {} in use; {} allocations ({}) that no run of its pages could hold lie outside; {} refused\n",
            bytes(told.capacity_bytes),
            bytes(told.peak_bytes),
            told.outside_allocations,
            bytes(told.outside_bytes),
            told.refused
        );
    }
    text
}
