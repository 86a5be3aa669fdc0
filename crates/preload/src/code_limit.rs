//! How much of a control group's memory limit copies of code may take (cgroup v2).

use std::ffi::CStr;

use lookaside_runtime::hugepages::WINDOW_BYTES;

use crate::cpus::number;
use crate::sys;

/// Copies take one byte in so many of the limit at most: what the program needs itself is not known before `main`.
const SHARE: u64 = 16;
/// Where control groups are.
const ROOT: &[u8] = b"/sys/fs/cgroup";
/// What has a group's limit.
const LIMIT: &[u8] = b"/memory.max\0";
/// The longest path.
const PATH_BYTES: usize = 4096;

/// Windows that may be copied, by the least limit of the group of this process and of those that it is in.
pub(crate) fn most_windows(text: &mut [u8]) -> usize {
    let mut path = [0; PATH_BYTES];
    let groups = sys::read_file(libc::AT_FDCWD, c"/proc/self/cgroup", text).unwrap_or_default();
    let Some(mut length) = own_group(groups).and_then(|group| begin_path(group, &mut path)) else { return usize::MAX };
    let mut least = u64::MAX;
    while let Some(file) = limit_file(&mut path, length) {
        let limit = sys::read_file(libc::AT_FDCWD, file, text).ok();
        least = least.min(limit.and_then(|text| number(text.trim_ascii())).unwrap_or(u64::MAX));
        let Some(parent) = parent(path.get(..length).unwrap_or_default()) else { break };
        length = parent;
    }
    windows(least)
}

fn windows(limit: u64) -> usize {
    if limit == u64::MAX {
        return usize::MAX;
    }
    usize::try_from(limit / SHARE / WINDOW_BYTES).unwrap_or(usize::MAX)
}

/// The group of this process in the one hierarchy of version 2.
fn own_group(groups: &[u8]) -> Option<&[u8]> {
    groups.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"0::"))
}

/// Writes the path of a group's folder; gives its length.
fn begin_path(group: &[u8], path: &mut [u8]) -> Option<usize> {
    let group = group.strip_suffix(b"/").unwrap_or(group);
    let length = ROOT.len().checked_add(group.len())?;
    path.get_mut(..ROOT.len())?.copy_from_slice(ROOT);
    path.get_mut(ROOT.len()..length)?.copy_from_slice(group);
    Some(length)
}

/// The file with the limit of the group whose folder is the first so many bytes.
fn limit_file(path: &mut [u8], length: usize) -> Option<&CStr> {
    let end = length.checked_add(LIMIT.len())?;
    path.get_mut(length..end)?.copy_from_slice(LIMIT);
    CStr::from_bytes_until_nul(path).ok()
}

/// Length of the path of the group that this one is in.
fn parent(path: &[u8]) -> Option<usize> {
    path.iter().rposition(|&byte| byte == b'/').filter(|&at| at >= ROOT.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_looked_for_from_the_group_upwards() {
        let groups = b"1:name=systemd:/x\n0::/system.slice/my.service\n";
        let mut path = [0; PATH_BYTES];
        let mut length = begin_path(own_group(groups).expect("a group"), &mut path).expect("a path");
        let mut files = Vec::new();
        loop {
            files.push(limit_file(&mut path, length).expect("a path").to_str().expect("text").to_string());
            let Some(parent) = parent(&path[..length]) else { break };
            length = parent;
        }
        let expected = ["/system.slice/my.service", "/system.slice", ""];
        assert_eq!(files, expected.map(|group| format!("/sys/fs/cgroup{group}/memory.max")));
        assert_eq!(begin_path(b"/", &mut path), Some(ROOT.len()));
        assert_eq!(begin_path(&[b'x'; PATH_BYTES], &mut path), None);
        assert_eq!(own_group(b"4:memory:/x\n"), None);
    }

    #[test]
    fn copies_take_a_sixteenth_of_a_limit() {
        assert_eq!([0, 1 << 24, 1 << 25, 1 << 30, u64::MAX].map(windows), [0, 0, 1, 32, usize::MAX]);
    }
}
