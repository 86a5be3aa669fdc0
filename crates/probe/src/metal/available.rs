//! How much memory there is to be had: what the system has free, and what control groups leave.

use std::path::Path;

/// Where control groups are mounted.
const CGROUPS: &str = "/sys/fs/cgroup";

/// Bytes that can be had without swapping or being killed; `None` where nothing says it.
pub fn available_bytes() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let system = free_bytes(&read("/proc/meminfo"));
    let groups = group_bytes(Path::new(CGROUPS), &read("/proc/self/cgroup"));
    system.into_iter().chain(groups).min()
}

/// `MemAvailable` of `/proc/meminfo`.
fn free_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// What the tightest of a process's groups (`/proc/self/cgroup`) leaves, version 1 or 2. In a container the path may be
/// that of the world outside: the top of the mount is looked at too.
fn group_bytes(root: &Path, groups: &str) -> Option<u64> {
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let (mount, files) = match controllers {
            "" => (root.to_path_buf(), ["memory.max", "memory.current", "inactive_file"]),
            names if names.split(',').any(|name| name == "memory") => {
                (root.join("memory"), ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"])
            }
            _ => return None,
        };
        let folder = mount.join(path.trim_start_matches('/'));
        folder.ancestors().take_while(|at| at.starts_with(&mount)).filter_map(|at| left_bytes(at, files)).min()
    };
    groups.lines().filter_map(of_line).min()
}

/// What is left in one group: its limit less what is used, but for file pages that can be dropped.
fn left_bytes(folder: &Path, [limit, used, droppable]: [&str; 3]) -> Option<u64> {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
    let stat = text("memory.stat").unwrap_or_default();
    let droppable = stat.lines().find_map(|line| line.strip_prefix(droppable)?.trim().parse::<u64>().ok());
    let used = number(used)?.saturating_sub(droppable.unwrap_or(0));
    number(limit).map(|limit| limit.saturating_sub(used)) // "max" is no number: no limit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    #[test]
    fn the_tightest_group_counts() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let root = folder.path();
        assert_eq!(group_bytes(root, "0::/a/b\n"), None);
        put(root, "a/b/memory.max", "max\n");
        put(root, "a/b/memory.current", "5\n");
        assert_eq!(group_bytes(root, "0::/a/b\n"), None);
        put(root, "a/memory.max", "1000\n");
        put(root, "a/memory.current", "700\n");
        put(root, "a/memory.stat", "anon 500\ninactive_file 200\nactive_file 7\n");
        assert_eq!(group_bytes(root, "0::/a/b\n"), Some(500));
        // Version 1, beside others; the path is one that only the world outside has.
        put(root, "memory/memory.limit_in_bytes", "300\n");
        put(root, "memory/memory.usage_in_bytes", "400\n");
        assert_eq!(group_bytes(root, "7:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/a/b\n"), Some(0));
        assert_eq!(group_bytes(root, "nonsense\n::\n"), None);
    }

    #[test]
    fn the_system_says_what_it_has() {
        assert_eq!(free_bytes("MemTotal: 9 kB\nMemAvailable:    3 kB\n"), Some(3072));
        assert_eq!(free_bytes("MemTotal: 9 kB\nMemAvailable: much\n"), None);
    }
}
