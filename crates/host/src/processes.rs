//! Which processes there are.

use std::path::{Component, Path, PathBuf};

use crate::error::read;
use crate::HostError;

/// Numbers of all processes that this one can see.
///
/// # Errors
/// The system does not list them.
pub fn all_processes() -> Result<Vec<u32>, HostError> {
    let entries = std::fs::read_dir("/proc").map_err(|e| HostError::io("/proc", e))?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// Where control groups of version 2, of both, and the controller of memory of version 1 are mounted.
const MOUNTS: [&str; 3] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory"];

/// The folder of a control group by its path below the mount, as `/proc/PID/cgroup` has it, or by the folder itself.
///
/// # Errors
/// There is none.
pub fn control_group_folder(name: &Path) -> Result<PathBuf, HostError> {
    let is_group = |folder: &Path| folder.join("cgroup.procs").is_file();
    if MOUNTS.iter().any(|mount| name.starts_with(mount)) && is_group(name) {
        return Ok(name.into());
    }
    let mut below = PathBuf::new();
    for part in name.components() {
        match part {
            Component::Normal(part) => below.push(part),
            Component::RootDir | Component::CurDir => {}
            _ => return Err(HostError::text(name, "path of a control group", &name.display().to_string())),
        }
    }
    let found = MOUNTS.iter().map(|mount| Path::new(mount).join(&below)).find(|folder| is_group(folder));
    let none = || HostError::io(name, std::io::Error::new(std::io::ErrorKind::NotFound, "no such control group"));
    found.ok_or_else(none)
}

/// Numbers of the processes of a control group and of those below it (Documentation/admin-guide/cgroup-v2.rst), by the
/// group's folder.
///
/// # Errors
/// There is no such group.
pub fn control_group_processes(group: &Path) -> Result<Vec<u32>, HostError> {
    let text = read(group.join("cgroup.procs"))?;
    let mut pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            // A group that is being taken away has no processes.
            pids.extend(control_group_processes(&entry.path()).unwrap_or_default());
        }
    }
    Ok(pids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_among_all() {
        assert!(all_processes().expect("processes").contains(&std::process::id()));
    }

    #[test]
    fn a_group_has_its_own_processes_and_those_below() {
        let folder = tempfile::tempdir().expect("a folder");
        let (below, gone) = (folder.path().join("below"), folder.path().join("gone"));
        for folder in [&below, &gone] {
            std::fs::create_dir(folder).expect("a folder");
        }
        std::fs::write(folder.path().join("cgroup.procs"), "7\n8\n").expect("a file");
        std::fs::write(below.join("cgroup.procs"), "9\n").expect("a file");
        assert_eq!(control_group_processes(folder.path()).expect("a group"), [7, 8, 9]);
        assert!(control_group_processes(&gone).expect_err("no group").is_missing());
    }
}
