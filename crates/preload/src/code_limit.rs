//! How much of a control group's memory limit copies of code may take.

use std::ffi::CStr;

use lookaside_runtime::hugepages::WINDOW_BYTES;

use crate::cpus::number;
use crate::sys;

/// Copies take one byte in so many of the limit at most: what the program needs itself is not known before `main`.
const SHARE: u64 = 16;
/// The longest path.
const PATH_BYTES: usize = 4096;

/// Where the groups of a version are, and what has a group's limit.
struct Hierarchy {
    folder: &'static [u8],
    limit: &'static [u8],
}

/// Version 2: one hierarchy. The limit is `max` where there is none.
const UNIFIED: Hierarchy = Hierarchy { folder: b"/sys/fs/cgroup", limit: b"/memory.max\0" };
/// Version 1: the hierarchy of the memory controller. The limit is near 2^63 where there is none.
const OF_MEMORY: Hierarchy = Hierarchy { folder: b"/sys/fs/cgroup/memory", limit: b"/memory.limit_in_bytes\0" };

/// Windows that may be copied, by the least limit of the group of this process and of those that it is in.
pub(crate) fn most_windows(text: &mut [u8]) -> usize {
    let (mut path, mut least) = ([0; PATH_BYTES], u64::MAX);
    for hierarchy in [UNIFIED, OF_MEMORY] {
        let groups = sys::read_file(libc::AT_FDCWD, c"/proc/self/cgroup", text).unwrap_or_default();
        let begin = |group| hierarchy.begin_path(group, &mut path);
        let Some(mut length) = hierarchy.own_group(groups).and_then(begin) else { continue };
        // The group's folder may be hidden from a container: then what is there is the container's own.
        while let Some(file) = hierarchy.limit_file(&mut path, length) {
            let limit = sys::read_file(libc::AT_FDCWD, file, text).ok();
            least = least.min(limit.and_then(|text| number(text.trim_ascii())).unwrap_or(u64::MAX));
            let Some(parent) = hierarchy.parent(path.get(..length).unwrap_or_default()) else { break };
            length = parent;
        }
    }
    windows(least)
}

fn windows(limit: u64) -> usize {
    usize::try_from(limit / SHARE / WINDOW_BYTES).unwrap_or(usize::MAX)
}

impl Hierarchy {
    /// The group of this process: the third part of its line, of which the second names the controllers.
    fn own_group<'a>(&self, groups: &'a [u8]) -> Option<&'a [u8]> {
        groups.split(|&byte| byte == b'\n').find_map(|line| {
            let mut parts = line.splitn(3, |&byte| byte == b':').skip(1);
            let (mut controllers, group) = (parts.next()?.split(|&byte| byte == b','), parts.next()?);
            let wanted: &[u8] = if self.folder == UNIFIED.folder { b"" } else { b"memory" };
            controllers.any(|controller| controller == wanted).then_some(group)
        })
    }

    /// Writes the path of a group's folder; gives its length.
    fn begin_path(&self, group: &[u8], path: &mut [u8]) -> Option<usize> {
        let group = group.strip_suffix(b"/").unwrap_or(group);
        let length = self.folder.len().checked_add(group.len())?;
        path.get_mut(..self.folder.len())?.copy_from_slice(self.folder);
        path.get_mut(self.folder.len()..length)?.copy_from_slice(group);
        Some(length)
    }

    /// The file with the limit of the group whose folder is the first so many bytes.
    fn limit_file<'a>(&self, path: &'a mut [u8], length: usize) -> Option<&'a CStr> {
        let end = length.checked_add(self.limit.len())?;
        path.get_mut(length..end)?.copy_from_slice(self.limit);
        CStr::from_bytes_until_nul(path).ok()
    }

    /// Length of the path of the group that this one is in.
    fn parent(&self, path: &[u8]) -> Option<usize> {
        path.iter().rposition(|&byte| byte == b'/').filter(|&at| at >= self.folder.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_looked_for_from_the_group_upwards() {
        let groups = b"9:name=systemd:/x\n4:hugetlb,memory:/a/b\n0::/system.slice/my.service\n";
        let mut path = [0; PATH_BYTES];
        let mut files = |hierarchy: Hierarchy| {
            let group = hierarchy.own_group(groups).expect("a group");
            let mut length = hierarchy.begin_path(group, &mut path).expect("a path");
            let mut files = Vec::new();
            loop {
                files
                    .push(hierarchy.limit_file(&mut path, length).expect("a path").to_str().expect("text").to_string());
                let Some(parent) = hierarchy.parent(&path[..length]) else { return files };
                length = parent;
            }
        };
        let expected = ["/system.slice/my.service", "/system.slice", ""];
        assert_eq!(files(UNIFIED), expected.map(|group| format!("/sys/fs/cgroup{group}/memory.max")));
        let expected = ["/a/b", "/a", ""];
        assert_eq!(
            files(OF_MEMORY),
            expected.map(|group| format!("/sys/fs/cgroup/memory{group}/memory.limit_in_bytes"))
        );
        assert_eq!(UNIFIED.begin_path(b"/", &mut path), Some(UNIFIED.folder.len()));
        assert_eq!(UNIFIED.begin_path(&[b'x'; PATH_BYTES], &mut path), None);
        assert_eq!((UNIFIED.own_group(b"4:memory:/x\n"), OF_MEMORY.own_group(b"0::/x\n")), (None, None));
        assert_eq!(UNIFIED.own_group(b"no line\n\n0:\n"), None);
    }

    #[test]
    fn copies_take_a_sixteenth_of_a_limit() {
        assert_eq!([0, 1 << 24, 1 << 25, 1 << 30].map(windows), [0, 0, 1, 32]);
        assert!(windows(u64::MAX) > 1 << 30 && windows(i64::MAX as u64) > 1 << 30, "no limit");
    }
}
