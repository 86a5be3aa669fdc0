//! Between which CPUs, and what the system says of them.

use lookaside_harness::cpus::allowed;
use lookaside_host::{CacheKind, CpuTopology};
use schemars::JsonSchema;
use serde::Serialize;

use super::error::MigrateError;
use super::plan::HUGE_BYTES;

/// Bytes of caches where the system says nothing: as large as a client's last one.
const CACHES_BYTES: u64 = 32 << 20;
/// A buffer is no smaller, and no larger: then a round would take too long, and the private caches are thrashed by far
/// less.
const BUFFER_BYTES: std::ops::RangeInclusive<u64> = (4 << 20)..=(256 << 20);

/// What the system says of its CPUs.
#[derive(Clone, Debug)]
pub struct SystemCpus {
    /// CPUs that this thread may run on, ascending.
    pub allowed: Vec<usize>,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// The CPUs.
    pub topology: CpuTopology,
}

/// What two CPUs share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// They are threads of one core.
    Core,
    /// A cache.
    Cache,
    /// No cache.
    Nothing,
    /// Nobody says.
    Unknown,
}

/// Where the experiment takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MoveCpus {
    pub from: usize,
    pub to: usize,
    pub relation: Relation,
    /// Twice the caches of the new CPU, whole huge pages.
    pub thrash_bytes: u64,
    pub page_bytes: u64,
}

impl SystemCpus {
    /// This one.
    pub fn here() -> Self {
        Self { allowed: allowed(), page_bytes: rustix::param::page_size() as u64, topology: CpuTopology::here() }
    }

    /// What two CPUs share.
    fn relation(&self, a: usize, b: usize) -> Relation {
        if self.topology.siblings(a).is_some_and(|core| core.contains(&b)) {
            return Relation::Core;
        }
        let caches = self.topology.caches(a);
        if caches.is_empty() {
            Relation::Unknown
        } else if caches.iter().any(|cache| cache.cpus.contains(&b)) {
            Relation::Cache
        } else {
            Relation::Nothing
        }
    }

    /// Bytes of a CPU's data caches together; `None`: nobody says.
    fn cache_bytes(&self, cpu: usize) -> Option<u64> {
        let of_data = self.topology.caches(cpu).into_iter().filter(|cache| cache.kind != CacheKind::Instruction);
        let sizes: Vec<u64> = of_data.filter_map(|cache| cache.bytes).collect();
        (!sizes.is_empty()).then(|| sizes.into_iter().fold(0, u64::saturating_add))
    }
}

impl Relation {
    /// In words that follow "CPUs A and B".
    pub fn words(self) -> &'static str {
        match self {
            Self::Core => "are threads of one core",
            Self::Cache => "share a cache",
            Self::Nothing => "share no cache",
            Self::Unknown => "share what nobody says",
        }
    }

    /// What has to be known of it.
    pub(super) fn remark(self) -> Option<String> {
        (self == Self::Core).then(|| {
            "the two CPUs are threads of one core: they share its caches, and on many cores its TLBs; name others with --from and --to".into()
        })
    }
}

impl MoveCpus {
    /// The CPUs that are asked for, or good ones.
    pub(super) fn choose(from: Option<usize>, to: Option<usize>, system: &SystemCpus) -> Result<Self, MigrateError> {
        let bad = |why: String| Err(MigrateError(why));
        for cpu in from.into_iter().chain(to) {
            if system.topology.online().is_some_and(|online| !online.contains(&cpu)) {
                let folder = system.topology.folder().display();
                return bad(format!("CPU {cpu} is not there, or offline; see {folder}/online"));
            }
            if !system.allowed.contains(&cpu) {
                let allowed: Vec<String> = system.allowed.iter().map(usize::to_string).collect();
                return bad(format!(
                    "CPU {cpu}: this process may run on {} only (taskset, a cpuset or a container); name one of these",
                    allowed.join(", ")
                ));
            }
        }
        if system.allowed.len() < 2 {
            return bad(
                "a thread needs two CPUs to move, and this process may run on one only (one-CPU machine, taskset, cpuset or container)"
                    .into(),
            );
        }
        if let (Some(from), Some(to)) = (from, to) {
            if from == to {
                return bad(format!("--from and --to are both CPU {from}: a thread that stays keeps its translations"));
            }
        }
        // The first that is no thread of the other's core, or just the first that is another.
        let beside = |other: Option<usize>| {
            let others = || system.allowed.iter().copied().filter(|cpu| Some(*cpu) != other);
            let apart = |cpu: &usize| other.is_none_or(|other| system.relation(other, *cpu) != Relation::Core);
            others().find(apart).or_else(|| others().next()).unwrap_or_default()
        };
        let from = from.unwrap_or_else(|| beside(to));
        let to = to.unwrap_or_else(|| beside(Some(from)));
        let caches = system.cache_bytes(to).unwrap_or(CACHES_BYTES);
        let buffer = caches.saturating_mul(2).clamp(*BUFFER_BYTES.start(), *BUFFER_BYTES.end());
        Ok(Self {
            from,
            to,
            relation: system.relation(from, to),
            thrash_bytes: buffer.next_multiple_of(HUGE_BYTES),
            page_bytes: system.page_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// CPUs 0 to 3: 0 and 1 are one core's threads, 2 shares the last cache with them, 3 nothing.
    fn system(folder: &Path, allowed: &[usize]) -> SystemCpus {
        let put = |path: &str, text: &str| {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        put("online", "0-3\n");
        for (cpu, siblings, last) in [(0, "0-1", "0-2"), (1, "0-1", "0-2"), (2, "2", "0-2"), (3, "3", "3")] {
            put(&format!("cpu{cpu}/topology/thread_siblings_list"), siblings);
            let caches = [("Data", "48K", siblings), ("Instruction", "32K", siblings), ("Unified", "6M\n", last)];
            for (i, (kind, size, shared)) in caches.into_iter().enumerate() {
                put(&format!("cpu{cpu}/cache/index{i}/level"), if kind == "Unified" { "2" } else { "1" });
                put(&format!("cpu{cpu}/cache/index{i}/type"), kind);
                put(&format!("cpu{cpu}/cache/index{i}/size"), size);
                put(&format!("cpu{cpu}/cache/index{i}/shared_cpu_list"), shared);
            }
        }
        SystemCpus { allowed: allowed.to_vec(), page_bytes: 4096, topology: CpuTopology::in_folder(folder) }
    }

    #[test]
    fn a_thread_of_another_core_is_preferred() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let chosen = |allowed: &[usize], from, to| {
            let here = MoveCpus::choose(from, to, &system(folder.path(), allowed)).expect("CPUs");
            (here.from, here.to, here.relation)
        };
        assert_eq!(chosen(&[0, 1, 2, 3], None, None), (0, 2, Relation::Cache));
        assert_eq!(chosen(&[0, 1], None, None), (0, 1, Relation::Core));
        assert_eq!(chosen(&[0, 1, 2, 3], None, Some(0)), (2, 0, Relation::Cache));
        assert_eq!(chosen(&[0, 1, 2, 3], Some(3), None), (3, 0, Relation::Nothing));
        assert_eq!(chosen(&[0, 1, 2, 3], Some(2), Some(3)), (2, 3, Relation::Nothing));
        let here = MoveCpus::choose(None, None, &system(folder.path(), &[0, 2])).expect("CPUs");
        assert_eq!(here.thrash_bytes, (2 * ((48u64 << 10) + (6 << 20))).next_multiple_of(2 << 20));
    }

    #[test]
    fn cpus_that_cannot_be_had_are_named() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let refused = |allowed: &[usize], from, to| {
            let error = MoveCpus::choose(from, to, &system(folder.path(), allowed)).expect_err("refused");
            error.to_string()
        };
        assert!(refused(&[0, 1, 2, 3], Some(9), None).starts_with("CPU 9 is not there"));
        assert!(refused(&[0, 2], Some(0), Some(3)).starts_with("CPU 3: this process may run on 0, 2 only"));
        assert!(refused(&[2], None, None).contains("needs two CPUs"));
        assert!(refused(&[], None, None).contains("needs two CPUs"));
        assert!(refused(&[1, 2], Some(2), Some(2)).contains("both CPU 2"));
    }

    #[test]
    fn a_system_that_says_nothing_will_do() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let system =
            SystemCpus { allowed: vec![4, 7], page_bytes: 4096, topology: CpuTopology::in_folder(folder.path()) };
        let here = MoveCpus::choose(None, None, &system).expect("CPUs");
        assert_eq!((here.from, here.to, here.relation), (4, 7, Relation::Unknown));
        assert_eq!(here.thrash_bytes, 2 * CACHES_BYTES);
    }
}
