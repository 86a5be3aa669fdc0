//! For which memory huge pages are asked, as the system is set and with `malloc` asking for them: what `--measure`
//! runs.

use lookaside_engine::RegionRow;
use lookaside_host::TransparentHugePages;
use lookaside_trace::MapSource;

use super::advice_watch::AdvisedAreas;
use crate::symbol_names::SymbolNames;

/// All memory, or `malloc`'s alone; and what the program asks for by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedMemory {
    by: Asking,
    own: AdvisedAreas,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    /// The system gives huge pages to all (`always`).
    All,
    /// It waits to be asked, and glibc's `malloc` asks (`glibc.malloc.hugetlb=1`).
    Malloc,
}

impl AskedMemory {
    /// By this system's settings; `own`: what the program asks for.
    pub fn here(own: AdvisedAreas) -> Self {
        let pages = TransparentHugePages::here();
        let word = |setting| pages.chosen(setting).ok().flatten();
        let chosen = word("hugepages-2048kB/enabled").filter(|word| word != "inherit").or_else(|| word("enabled"));
        let by = if chosen.as_deref() == Some("always") { Asking::All } else { Asking::Malloc };
        Self { by, own }
    }

    /// Huge pages are asked for this mapping. Of memory whose mapper is not known it is taken for granted.
    pub fn holds(&self, names: &SymbolNames, region: &RegionRow) -> bool {
        if self.own.hold(region.process, region.start, region.end) {
            return true;
        }
        // The first frame is `mmap` itself, or the system call; the next one who called it.
        let caller = match (self.by, &region.source, region.site.get(1)) {
            (Asking::Malloc, MapSource::Anonymous, Some(&caller)) => caller,
            _ => return true,
        };
        let file = names.place(region.process, caller.saturating_sub(1)).file;
        is_glibc(file.rsplit('/').next().unwrap_or(&file))
    }
}

/// `libc.so.6`, `libc-2.31.so`.
fn is_glibc(file: &str) -> bool {
    file.starts_with("libc.so") || file.starts_with("libc-2")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_is_known_by_its_file() {
        assert!(is_glibc("libc.so.6") && is_glibc("libc-2.31.so"));
        assert!(!is_glibc("libcairo.so.2") && !is_glibc("libjemalloc.so.2") && !is_glibc(""));
    }
}
