//! Who hands out a program's memory, by the libraries that it maps, and the switch that makes it ask for huge pages.

use lookaside_engine::RegionRow;
use lookaside_trace::MapSource;

/// An allocator or runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// The C library's `malloc`.
    Glibc,
    /// jemalloc, as a library.
    Jemalloc,
    /// mimalloc, as a library.
    Mimalloc,
    /// tcmalloc, as a library.
    Tcmalloc,
    /// HotSpot.
    Jvm,
    /// CPython, whose own allocator lies before the C library's.
    CPython,
    /// V8 in Node.
    Node,
}

/// What any allocator's memory gets huge pages by, where root may say so.
pub const ALWAYS: &str = "echo always > /sys/kernel/mm/transparent_hugepage/enabled";

impl Allocator {
    /// The one that most of the memory is from, as far as the names of mapped files tell; `None` = no name that is
    /// known.
    pub fn of(regions: &[RegionRow]) -> Option<Self> {
        let files = regions.iter().filter_map(|region| match &region.source {
            MapSource::File { path, .. } => path.rsplit('/').next(),
            _ => None,
        });
        // A runtime lies before the library that it is built on.
        files.filter_map(Self::of_file).min_by_key(|allocator| *allocator == Self::Glibc)
    }

    fn of_file(name: &str) -> Option<Self> {
        let begins = |start: &str| name.starts_with(start);
        let python = begins("libpython3") || name.strip_prefix("python3").is_some_and(is_version);
        match () {
            () if begins("libjvm.so") => Some(Self::Jvm),
            () if python => Some(Self::CPython),
            () if name == "node" || name == "nodejs" || begins("libnode.so") => Some(Self::Node),
            () if begins("libjemalloc.so") => Some(Self::Jemalloc),
            () if begins("libmimalloc") => Some(Self::Mimalloc),
            () if begins("libtcmalloc") => Some(Self::Tcmalloc),
            () if begins("libc.so") || begins("libc-2") => Some(Self::Glibc),
            () => None,
        }
    }

    /// Its own switch, as words before the program's command; `None` = it has none, and [`ALWAYS`] is the way.
    pub fn switch(self) -> Option<&'static str> {
        match self {
            // The GNU C Library manual, "Memory Allocation Tunables".
            Self::Glibc => Some("GLIBC_TUNABLES=glibc.malloc.hugetlb=1"),
            // jemalloc(3), opt.thp.
            Self::Jemalloc => Some("MALLOC_CONF=thp:always"),
            // mimalloc's documentation, "Environment Options".
            Self::Mimalloc => Some("MIMALLOC_ALLOW_LARGE_OS_PAGES=1"),
            // The java command's reference, "Advanced Garbage Collection Options".
            Self::Jvm => Some("JAVA_TOOL_OPTIONS=-XX:+UseTransparentHugePages"),
            // Python's documentation, PYTHONMALLOC: small objects come from the C library then.
            Self::CPython => Some("PYTHONMALLOC=malloc GLIBC_TUNABLES=glibc.malloc.hugetlb=1"),
            // gperftools' docs/tcmalloc.html: TCMALLOC_MEMFS_MALLOC_PATH, a folder of hugetlbfs, whose pages have to be
            // reserved before. google/tcmalloc, docs/tuning.md: the system's setting.
            Self::Tcmalloc => None,
            // node(1) has none for V8's heap.
            Self::Node => None,
        }
    }

    /// Its switch for huge pages that hold its own code; `None` = it has none.
    pub fn code_switch(self) -> Option<&'static str> {
        // Node.js documentation, "Command-line API", --use-largepages: moves its code to memory with huge pages.
        (self == Self::Node).then_some("NODE_OPTIONS=--use-largepages=on")
    }
}

/// What stands behind `python3`: nothing, or `.11`.
fn is_version(rest: &str) -> bool {
    rest.is_empty() || rest.strip_prefix('.').is_some_and(|minor| minor.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(paths: &[&str]) -> Option<Allocator> {
        let region = |path: &&str| RegionRow {
            process: 1,
            start: 0,
            end: 4096,
            source: MapSource::File { path: path.to_string(), offset: 0 },
            site: Vec::new(),
            pages: 0,
            accesses: 0,
            cost: Default::default(),
        };
        Allocator::of(&paths.iter().map(region).collect::<Vec<_>>())
    }

    #[test]
    fn a_runtime_lies_before_the_library_that_it_is_built_on() {
        assert_eq!(of(&["/lib/libc.so.6", "/usr/lib/jvm/lib/server/libjvm.so"]), Some(Allocator::Jvm));
        assert_eq!(of(&["/usr/bin/python3.11", "/lib/libc.so.6"]), Some(Allocator::CPython));
        assert_eq!(of(&["/usr/lib/libjemalloc.so.2", "/lib/libc-2.31.so"]), Some(Allocator::Jemalloc));
        assert_eq!(of(&["/usr/bin/sort", "/lib/libc.so.6"]), Some(Allocator::Glibc));
        assert_eq!(of(&["/usr/bin/python3-config", "/usr/lib/libcairo.so"]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn each_is_known_by_its_files_and_has_a_switch_or_none() {
        let malloc = Some("GLIBC_TUNABLES=glibc.malloc.hugetlb=1");
        let python = Some("PYTHONMALLOC=malloc GLIBC_TUNABLES=glibc.malloc.hugetlb=1");
        let java = Some("JAVA_TOOL_OPTIONS=-XX:+UseTransparentHugePages");
        for (file, allocator, switch) in [
            ("libc-2.31.so", Allocator::Glibc, malloc),
            ("libjemalloc.so.2", Allocator::Jemalloc, Some("MALLOC_CONF=thp:always")),
            ("libmimalloc.so.2.0", Allocator::Mimalloc, Some("MIMALLOC_ALLOW_LARGE_OS_PAGES=1")),
            ("libtcmalloc_minimal.so.4", Allocator::Tcmalloc, None),
            ("libjvm.so", Allocator::Jvm, java),
            ("libpython3.11.so.1.0", Allocator::CPython, python),
            ("python3", Allocator::CPython, python),
            ("python3.12", Allocator::CPython, python),
            ("node", Allocator::Node, None),
            ("nodejs", Allocator::Node, None),
            ("libnode.so.108", Allocator::Node, None),
        ] {
            let found = of(&[&format!("/usr/lib/{file}")]);
            assert_eq!((found, found.and_then(Allocator::switch)), (Some(allocator), switch), "{file}");
            let code_switch = (allocator == Allocator::Node).then_some("NODE_OPTIONS=--use-largepages=on");
            assert_eq!(allocator.code_switch(), code_switch, "{file}");
        }
        assert_eq!(["python3.1a", "nodes", "libcommon.so"].map(|file| of(&[file])), [None; 3]);
    }
}
