//! What happens between accesses: the memory map, allocations, threads, processes, markers.
//!
//! An event speaks of the process and thread of the block that it stands in, unless it names another.

use serde::{Deserialize, Serialize};

/// Number of a call site within one process's trace; defined by [`Event::Site`] before its first use. 0 = not known.
pub type SiteId = u32;

/// Return addresses of a call stack, innermost first (at most 16).
pub type FrameList = Vec<u64>;

/// What is behind a mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MapSource {
    /// Zero-filled memory.
    Anonymous,
    /// A file, or a kernel name as `[vdso]` or `[anon:NAME]` ([`MapSource::named`]).
    File {
        /// Path as the kernel gives it.
        path: String,
        /// Offset in the file, bytes.
        offset: u64,
    },
    /// The brk heap.
    Heap,
    /// A thread's stack.
    Stack,
}

impl MapSource {
    /// Zero-filled memory with a name, as Linux lists it (`PR_SET_VMA_ANON_NAME`): `[anon:NAME]`.
    pub fn named(name: &str) -> Self {
        Self::File { path: format!("{NAMED}{name}]"), offset: 0 }
    }

    /// Both are the same to who can't see names: zero-filled memory with any or none, as kernels may not keep them
    /// (`CONFIG_ANON_VMA_NAME`), or else equal.
    pub fn is_like(&self, other: &Self) -> bool {
        let is_anonymous = |source: &Self| match source {
            Self::Anonymous => true,
            Self::File { path, .. } => path.starts_with(NAMED),
            _ => false,
        };
        self == other || is_anonymous(self) && is_anonymous(other)
    }

    /// A file's contents, or a kernel's own page: no memory of the program's that began as zeros.
    pub fn is_file(&self) -> bool {
        matches!(self, Self::File { path, .. } if !path.starts_with(NAMED))
    }
}

/// How the kernel's name for named zero-filled memory begins.
const NAMED: &str = "[anon:";

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// `len` bytes at `addr` are mapped; replaces what was mapped there.
    Map {
        /// First byte.
        addr: u64,
        /// Bytes.
        len: u64,
        /// `PROT_READ` 1, `PROT_WRITE` 2, `PROT_EXEC` 4.
        prot: u8,
        /// What is behind it.
        source: MapSource,
        /// Who called mmap.
        site: SiteId,
    },
    /// The range is unmapped.
    Unmap {
        /// First byte.
        addr: u64,
        /// Bytes.
        len: u64,
    },
    /// The range moved or changed its length; translations move along with their frames.
    Remap {
        /// Old first byte.
        old_addr: u64,
        /// Old bytes.
        old_len: u64,
        /// New first byte.
        new_addr: u64,
        /// New bytes.
        new_len: u64,
    },
    /// Protection changed.
    Protect {
        /// First byte.
        addr: u64,
        /// Bytes.
        len: u64,
        /// As in `Map`.
        prot: u8,
    },
    /// `madvise`.
    Advise {
        /// First byte.
        addr: u64,
        /// Bytes.
        len: u64,
        /// The kernel's number: 4 = `MADV_DONTNEED`, 14 = `MADV_HUGEPAGE`, 15 = `MADV_NOHUGEPAGE`, …
        advice: i32,
    },
    /// The heap's end moved.
    Brk {
        /// Start of the heap.
        start: u64,
        /// New end.
        end: u64,
    },
    /// A thread began.
    ThreadStart {
        /// Its id.
        thread: u32,
    },
    /// A thread ended.
    ThreadExit {
        /// Its id.
        thread: u32,
    },
    /// A process began by fork; its map is a copy of its parent's.
    Fork {
        /// The parent's id.
        parent: u32,
        /// The child's id.
        child: u32,
    },
    /// The process replaced itself; its map is empty now.
    Exec {
        /// Program.
        path: String,
    },
    /// The process ended.
    ProcessExit {
        /// Exit code, or 128 + signal.
        code: i32,
    },
    /// The block's thread was switched in on this hardware thread, where it stays until told otherwise.
    ContextSwitch {
        /// Hardware-thread number over the whole machine, from 0.
        cpu: u32,
    },
    /// The block's thread moved to this hardware thread.
    Migrate {
        /// Hardware-thread number over the whole machine, from 0.
        cpu: u32,
    },
    /// A mark of the user's.
    Marker {
        /// Its text.
        text: String,
    },
    /// Defines a call site of this process.
    Site {
        /// Its number, not 0.
        id: SiteId,
        /// Where.
        frames: FrameList,
    },
    /// A heap allocation.
    Alloc {
        /// First byte.
        addr: u64,
        /// Bytes.
        len: u64,
        /// Where it was made.
        site: SiteId,
    },
    /// An allocation ended.
    Free {
        /// First byte, as in `Alloc`.
        addr: u64,
    },
    /// `count` further accesses to the page of `addr` that the recorder counted and left out
    /// (as [`crate::Block::repeat`], known only now).
    Repeats {
        /// Any address in the page.
        addr: u64,
        /// `Load`, `Store` or `Fetch`: as which they count.
        #[serde(default = "load", skip_serializing_if = "is_load")]
        kind: crate::Kind,
        /// How many.
        count: u64,
    },
    /// Loads of this instruction that brought a page into the recorder's window, over the whole run of this process's
    /// image, and how many of them waited: their address came from what such a load before them had read, which a core
    /// could still have been waiting for. The last one stands. A recorder that doesn't tell has no such event.
    Waits {
        /// The instruction.
        ip: u64,
        /// Its loads that brought a page in.
        visits: u64,
        /// Of these, those that waited for another.
        waits: u64,
    },
    /// The recorder was off until now: what comes is an interval of the run, in which it sees all that a thread does. A
    /// model's state is that of the end of the interval before, so what comes warms it up, and does not count before
    /// [`Event::Counts`].
    Interval {
        /// CPU time that the program, with all its threads and processes, had used, in nanoseconds.
        cpu_ns: u64,
    },
    /// From here on the interval counts.
    Counts,
    /// Counts of this process so far, by kind, left-out repeats included; the last one stands.
    Totals {
        /// Loads.
        loads: u64,
        /// Stores.
        stores: u64,
        /// Instruction fetches (instructions executed); 0 when fetches are not recorded.
        fetches: u64,
        /// Instructions executed, recorded as fetches or not.
        instructions: u64,
    },
}

/// What text says nothing of.
fn load() -> crate::Kind {
    crate::Kind::Load
}

fn is_load(kind: &crate::Kind) -> bool {
    *kind == load()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_makes_no_other_memory_of_zeros() {
        let file = |path: &str| MapSource::File { path: path.into(), offset: 0 };
        assert_eq!(MapSource::named("a heap"), file("[anon:a heap]"));
        let zeros = [MapSource::Anonymous, MapSource::named("a heap"), MapSource::named("")];
        let others = [MapSource::Heap, MapSource::Stack, file("[vdso]"), file("/lib/a.so"), file("/lib/b.so")];
        let all: Vec<&MapSource> = zeros.iter().chain(&others).collect();
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate() {
                assert_eq!(a.is_like(b), i == j || i.max(j) < zeros.len(), "{a:?} and {b:?}");
            }
        }
        let files: Vec<bool> = all.iter().map(|source| source.is_file()).collect();
        assert_eq!(files, [false, false, false, false, false, true, true, true]);
    }
}
