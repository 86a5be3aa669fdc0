//! Whom a trial is about.

use std::path::{Path, PathBuf};

use lookaside_cli::exit::Failure;
use lookaside_runtime::bake::{members, named};

use crate::args::trial::TrialArgs;

/// Where control groups are mounted (Documentation/admin-guide/cgroup-v2.rst).
const GROUPS: &str = "/sys/fs/cgroup";

/// The processes that are meant.
pub fn pids(args: &TrialArgs) -> Result<Vec<u32>, Failure> {
    let mut pids = args.pid.clone();
    if pids.contains(&std::process::id()) {
        return Err(Failure::bad("--pid: names this command itself"));
    }
    for comm in &args.comm {
        let found = named(comm)?;
        if found.is_empty() {
            return Err(Failure::bad(format_args!(
                "--comm {comm}: no process has that name (as ps -o comm prints it)"
            )));
        }
        pids.extend(found);
    }
    for group in &args.cgroup {
        let found = members(&folder(group))?;
        if found.is_empty() {
            return Err(Failure::bad(format_args!("--cgroup {}: no process is in it", group.display())));
        }
        pids.extend(found);
    }
    pids.retain(|&pid| pid != std::process::id());
    pids.sort_unstable();
    pids.dedup();
    Ok(pids)
}

/// A group's folder, by that or by its path below the place where groups are mounted.
pub fn folder(group: &Path) -> PathBuf {
    let below = Path::new(GROUPS).join(group.strip_prefix("/").unwrap_or(group));
    match group.is_dir() {
        false if below.is_dir() => below,
        _ => group.to_path_buf(),
    }
}
