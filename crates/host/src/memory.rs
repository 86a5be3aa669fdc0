//! The system's memory: how much there is, what of it is to be had, and its huge pages.

use std::path::{Path, PathBuf};

use crate::error::{number, read};
use crate::process_stat::{kib, line};
use crate::HostError;

const MEMINFO: &str = "/proc/meminfo";
/// Where control groups are mounted.
const CGROUPS: &str = "/sys/fs/cgroup";
/// Where the kernel shows its pools of large pages.
const POOLS: &str = "/sys/kernel/mm/hugepages";
/// Where the kernel shows and takes its settings of transparent huge pages.
const TRANSPARENT: &str = "/sys/kernel/mm/transparent_hugepage";

/// A line of `/proc/meminfo` (proc_meminfo(5)) in bytes, as `MemTotal`.
///
/// # Errors
/// The file cannot be read or has no such line.
pub fn meminfo_bytes(name: &'static str) -> Result<u64, HostError> {
    let text = read(MEMINFO)?;
    line(&text, name).and_then(kib).ok_or_else(|| HostError::text(MEMINFO, name, &text))
}

/// Bytes of memory that this process can have without swapping or being killed: what the system has available, and what
/// its control groups leave of that; `None` where neither is said.
pub fn available_bytes() -> Option<u64> {
    let groups = group_bytes(Path::new(CGROUPS), &read("/proc/self/cgroup").unwrap_or_default());
    meminfo_bytes("MemAvailable").ok().into_iter().chain(groups).min()
}

/// Bytes of free memory in pieces of less than 2 MiB (`/proc/buddyinfo`, proc_buddyinfo(5)): who asks for small pages
/// gets these first. 0 where the system does not say.
pub fn fragmented_free_bytes() -> u64 {
    fragments(&read("/proc/buddyinfo").unwrap_or_default(), rustix::param::page_size() as u64)
}

/// Of lines as `Node 0, zone Normal 12 3 …`: how many free blocks there are of 1, 2, 4, … pages.
fn fragments(text: &str, page_bytes: u64) -> u64 {
    let small = free_blocks(text, page_bytes).filter(|(_, bytes)| *bytes < 2 << 20);
    small.fold(0, |sum, (count, bytes)| sum.saturating_add(count.saturating_mul(bytes)))
}

/// Number and bytes of the free blocks of each size, in each zone.
fn free_blocks(text: &str, page_bytes: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
    let zones = text.lines().filter_map(|line| line.split_once("zone").map(|(_, zone)| zone));
    let blocks = zones.flat_map(move |zone| {
        zone.split_whitespace().skip(1).zip((0..).map_while(move |order| page_bytes.checked_shl(order)))
    });
    blocks.map(|(count, bytes)| (count.parse::<u64>().unwrap_or(0), bytes))
}

/// Free blocks of 2 MiB and more, counted in pieces of 2 MiB: huge pages to be had without moving anything. `None` where
/// the system does not say.
pub fn free_huge_blocks() -> Option<u64> {
    let text = read("/proc/buddyinfo").ok()?;
    Some(huge_blocks(&text, rustix::param::page_size() as u64))
}

fn huge_blocks(text: &str, page_bytes: u64) -> u64 {
    free_blocks(text, page_bytes).map(|(count, bytes)| count.saturating_mul(bytes >> 21)).sum()
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
    let number = |name: &str| number(folder.join(name)).ok(); // "max" is no number: no limit
    let stat = read(folder.join("memory.stat")).unwrap_or_default();
    let droppable = stat.lines().find_map(|line| line.strip_prefix(droppable)?.trim().parse::<u64>().ok());
    let used = number(used)?.saturating_sub(droppable.unwrap_or(0));
    number(limit).map(|limit| limit.saturating_sub(used))
}

/// A pool of large pages (hugetlbfs), set aside at boot or by hand (Documentation/admin-guide/mm/hugetlbpage.rst).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HugePagePool {
    /// Its folder.
    pub folder: PathBuf,
    /// Its pages.
    pub pages: u64,
    /// Those that nobody has.
    pub free: u64,
    /// Free ones that are promised to somebody.
    pub reserved: u64,
}

impl HugePagePool {
    /// The system's pool of pages of this size.
    ///
    /// # Errors
    /// There is no such pool; the error names its folder.
    pub fn of(page_bytes: u64) -> Result<Self, HostError> {
        Self::in_folder(Path::new(POOLS), page_bytes)
    }

    /// As a folder like `/sys/kernel/mm/hugepages` shows it.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn in_folder(pools: &Path, page_bytes: u64) -> Result<Self, HostError> {
        let folder = pools.join(format!("hugepages-{}kB", page_bytes >> 10));
        let number = |name: &str| number(folder.join(name));
        let (pages, free) = (number("nr_hugepages")?, number("free_hugepages")?);
        Ok(Self { pages, free, reserved: number("resv_hugepages").unwrap_or(0), folder })
    }
}

/// The kernel's settings of transparent huge pages (Documentation/admin-guide/mm/transhuge.rst).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransparentHugePages {
    folder: PathBuf,
}

impl TransparentHugePages {
    /// Of this system.
    pub fn here() -> Self {
        Self::in_folder(TRANSPARENT)
    }

    /// As a folder like `/sys/kernel/mm/transparent_hugepage` shows them.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The path of a setting, for a message or to be written.
    pub fn path(&self, setting: &str) -> PathBuf {
        self.folder.join(setting)
    }

    /// Whether the kernel has them at all.
    pub fn are_there(&self) -> bool {
        self.folder.exists()
    }

    /// What a setting says, as `enabled`, `khugepaged/defrag` or `hugepages-64kB/enabled`.
    ///
    /// # Errors
    /// There is no such setting.
    pub fn text(&self, setting: &str) -> Result<String, HostError> {
        read(self.path(setting)).map(|text| text.trim_end().to_string())
    }

    /// The choice that is made of a setting's words: `madvise` of `always [madvise] never`; `None` where none is.
    ///
    /// # Errors
    /// There is no such setting.
    pub fn chosen(&self, setting: &str) -> Result<Option<String>, HostError> {
        Ok(chosen(&self.text(setting)?).map(str::to_string))
    }

    /// Bytes of the pages, smallest first, that memory is given which asks for huge ones (`madvise`): of each size that
    /// its own setting allows (`hugepages-64kB/enabled`, Linux 6.8 and later), or `enabled` where that says `inherit`
    /// or there are no such settings.
    pub fn offered_bytes(&self) -> Vec<u64> {
        let allowed = |word: Option<String>| matches!(word.as_deref(), Some("always" | "madvise"));
        let all = allowed(self.chosen("enabled").unwrap_or_default());
        let names = std::fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let of_size = |name: &str| name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse::<u64>().ok();
        let sizes: Vec<u64> = names.filter_map(|name| of_size(name.to_str()?)).map(|kib| kib << 10).collect();
        if sizes.is_empty() {
            return self.page_bytes().ok().filter(|_| all).into_iter().collect();
        }
        let offers = |bytes: &u64| match self.chosen(&format!("hugepages-{}kB/enabled", bytes >> 10)) {
            Ok(Some(word)) if word == "inherit" => all,
            word => allowed(word.unwrap_or_default()),
        };
        let mut offered: Vec<u64> = sizes.into_iter().filter(offers).collect();
        offered.sort_unstable();
        offered
    }

    /// Bytes of one of its pages.
    ///
    /// # Errors
    /// The kernel has none.
    pub fn page_bytes(&self) -> Result<u64, HostError> {
        number(self.path("hpage_pmd_size"))
    }
}

/// The word in brackets.
fn chosen(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
        let (total, available) = (meminfo_bytes("MemTotal").expect("bytes"), available_bytes().expect("bytes"));
        assert!(0 < available && available <= total);
        let error = meminfo_bytes("MemNone").expect_err("no such line").to_string();
        assert!(error.starts_with("/proc/meminfo: MemNone expected, \"MemTotal"), "{error}");
    }

    #[test]
    fn free_blocks_below_a_huge_page_are_counted() {
        let text = "Node 0, zone      DMA      1      0      0      0      0      0      0      0      1      9      9 \n\
                    Node 0, zone   Normal      2      3      0      0      0      0      0      0      0      5      7 \n";
        assert_eq!(fragments(text, 4096), (1 + 256 + 2 + 6) * 4096);
        assert_eq!(fragments(text, 1 << 16), (1 + 2 + 6) << 16);
        assert_eq!(fragments("", 4096), 0);
    }

    #[test]
    fn a_pool_is_read_or_named() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let pool = || HugePagePool::in_folder(folder.path(), 1 << 30);
        let missing = pool().expect_err("no pool");
        assert!(missing.is_missing() && missing.to_string().contains("hugepages-1048576kB"), "{missing}");
        put(folder.path(), "hugepages-1048576kB/nr_hugepages", "3\n");
        put(folder.path(), "hugepages-1048576kB/free_hugepages", "2\n");
        let found = pool().expect("a pool");
        assert_eq!((found.pages, found.free, found.reserved), (3, 2, 0));
        put(folder.path(), "hugepages-1048576kB/resv_hugepages", "1\n");
        assert_eq!(pool().expect("a pool").reserved, 1);
    }

    #[test]
    fn settings_have_a_word_in_brackets() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let settings = TransparentHugePages::in_folder(folder.path().join("none"));
        assert!(!settings.are_there() && settings.chosen("enabled").expect_err("none").is_missing());
        let settings = TransparentHugePages::in_folder(folder.path());
        put(folder.path(), "enabled", "always [madvise] never\n");
        put(folder.path(), "hpage_pmd_size", "2097152\n");
        assert_eq!(settings.chosen("enabled").expect("a setting").as_deref(), Some("madvise"));
        assert_eq!(settings.text("enabled").expect("a setting"), "always [madvise] never");
        assert_eq!(settings.page_bytes().expect("a size"), 2 << 20);
        // Before there were sizes, `enabled` says it of the one.
        assert_eq!(settings.offered_bytes(), [2 << 20]);
        for (kib, text) in
            [(2048, "[inherit] never"), (64, "[madvise] never"), (16, "madvise [never]"), (8, "[always]")]
        {
            put(folder.path(), &format!("hugepages-{kib}kB/enabled"), text);
        }
        assert_eq!(settings.offered_bytes(), [8 << 10, 64 << 10, 2 << 20]);
        put(folder.path(), "enabled", "always madvise [never]\n");
        assert_eq!(settings.offered_bytes(), [8 << 10, 64 << 10]);
        assert_eq!(TransparentHugePages::in_folder(folder.path().join("none")).offered_bytes(), []);
        assert_eq!((chosen("always"), chosen("a ]b[ c"), chosen("a [b"), chosen("[]")), (None, None, None, Some("")));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC*") {
            chosen(&text);
            group_bytes(Path::new("/nonexistent"), &text);
            fragments(&text, 4096);
            fragments(&format!("Node 0, zone x {text}"), 4096);
        }
    }
}
