//! Whom a trial is about.

use lookaside_cli::exit::Failure;
use lookaside_host::control_group_folder;
use lookaside_runtime::bake::{members, named};

use crate::args::trial::TrialArgs;

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
        let folder = control_group_folder(group).map_err(|e| Failure::bad(format_args!("--cgroup: {e}")))?;
        let found = members(&folder)?;
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
