//! CPUs: which there are, and what they share.

use std::path::{Path, PathBuf};

use crate::error::{number, read};
use crate::units::{parse_cpu_list, parse_size};

/// Where the kernel describes CPUs.
const CPUS: &str = "/sys/devices/system/cpu";
/// More caches than the kernel describes for any CPU.
const MOST_CACHES: u32 = 16;

/// What the kernel says of the machine's CPUs (Documentation/ABI/testing/sysfs-devices-system-cpu). What it does not
/// say is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuTopology {
    folder: PathBuf,
}

/// A cache of a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuCache {
    /// The kernel's number of it: `cpuN/cache/indexI`.
    pub index: u32,
    /// 1 = nearest to the core.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Its bytes.
    pub bytes: Option<u64>,
    /// Its ways; `None`: fully associative, or not said.
    pub ways: Option<u32>,
    /// CPUs that share it.
    pub cpus: Vec<usize>,
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

impl CpuTopology {
    /// Of this machine.
    pub fn here() -> Self {
        Self::in_folder(CPUS)
    }

    /// As a folder like `/sys/devices/system/cpu` describes it.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder that describes it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// CPUs that are online; `None`: not said.
    pub fn online(&self) -> Option<Vec<usize>> {
        self.list("online")
    }

    /// The hardware threads of a CPU's core, itself among them; `None`: not said.
    pub fn siblings(&self, cpu: usize) -> Option<Vec<usize>> {
        self.list(format!("cpu{cpu}/topology/thread_siblings_list"))
    }

    /// The caches of a CPU, in the kernel's order.
    pub fn caches(&self, cpu: usize) -> Vec<CpuCache> {
        (0..MOST_CACHES).filter_map(|index| self.cache(cpu, index)).collect()
    }

    /// The last-level cache of a CPU.
    pub fn last_cache(&self, cpu: usize) -> Option<CpuCache> {
        self.caches(cpu).into_iter().max_by_key(|cache| cache.level)
    }

    fn cache(&self, cpu: usize, index: u32) -> Option<CpuCache> {
        let folder = self.folder.join(format!("cpu{cpu}/cache/index{index}"));
        let word = |name: &str| Some(read(folder.join(name)).ok()?.trim().to_string());
        let level = u32::try_from(number(folder.join("level")).ok()?).ok()?;
        let kind = match word("type").as_deref() {
            Some("Data") => CacheKind::Data,
            Some("Instruction") => CacheKind::Instruction,
            _ => CacheKind::Unified,
        };
        Some(CpuCache {
            index,
            level,
            kind,
            bytes: word("size").and_then(|size| parse_size(&size)),
            // 0: fully associative. Many Arm firmwares leave it out.
            ways: word("ways_of_associativity").and_then(|ways| ways.parse().ok()).filter(|&ways| ways > 0),
            cpus: word("shared_cpu_list").map_or_else(Vec::new, |list| parse_cpu_list(&list)),
        })
    }

    fn list(&self, path: impl AsRef<Path>) -> Option<Vec<usize>> {
        read(self.folder.join(path)).ok().map(|text| parse_cpu_list(&text)).filter(|cpus| !cpus.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Path, path: &str, text: &str) {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    #[test]
    fn a_topology_is_read_as_far_as_it_is_described() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let topology = CpuTopology::in_folder(folder.path());
        assert_eq!((topology.online(), topology.siblings(0), topology.last_cache(0)), (None, None, None));
        put(folder.path(), "online", "0-3\n");
        put(folder.path(), "cpu1/topology/thread_siblings_list", "0-1\n");
        for (index, files) in [
            (0, [("level", "1\n"), ("type", "Data\n"), ("size", "48K\n"), ("ways_of_associativity", "12\n")]),
            (1, [("level", "1"), ("type", "Instruction"), ("size", "32K"), ("ways_of_associativity", "0")]),
            (3, [("level", "3"), ("type", "Unified"), ("size", "much"), ("shared_cpu_list", "0-3")]),
            (4, [("level", "x"), ("type", "Unified"), ("size", "1K"), ("shared_cpu_list", "0-3")]),
        ] {
            for (name, text) in files {
                put(folder.path(), &format!("cpu1/cache/index{index}/{name}"), text);
            }
        }
        assert_eq!(topology.online(), Some(vec![0, 1, 2, 3]));
        assert_eq!((topology.siblings(1), topology.siblings(0)), (Some(vec![0, 1]), None));
        let [data, code, last] = &topology.caches(1)[..] else { panic!("three caches") };
        assert_eq!((data.kind, data.bytes, data.ways), (CacheKind::Data, Some(48 << 10), Some(12)));
        assert_eq!((code.kind, code.bytes, code.ways), (CacheKind::Instruction, Some(32 << 10), None));
        let expected = (CacheKind::Unified, None, None, vec![0, 1, 2, 3]);
        assert_eq!((last.kind, last.bytes, last.ways, last.cpus.clone()), expected);
        assert_eq!(topology.last_cache(1).map(|cache| cache.index), Some(3));
    }
}
