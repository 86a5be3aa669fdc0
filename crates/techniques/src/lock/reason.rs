//! What the mapping from a page of one run to that of another rests on, and how sure that makes it.

use std::fmt;

use lookaside_trace::Region;
use serde::{Deserialize, Serialize};

/// How sure an answer is; the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// It can't be another page, if the program is the same.
    Exact,
    /// It is, if both runs did the same.
    Likely,
    /// It may be another page.
    Guess,
}

/// What an answer rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The same file, permission and offset in the file.
    SameFile,
    /// The same file by another name.
    SameInode,
    /// The name is the same; device or inode is not, as on another machine, or after a new build.
    OtherInode,
    /// Offset in the `.bss` of a file.
    BssOffset,
    /// Offset in the heap, which both runs fill in the same order.
    HeapOffset,
    /// Distance from the stack pointer at the program's first instruction.
    StackDepth,
    /// The environment moved the stack by so many bytes within a page: what shared a page can lie on two.
    StackShifted {
        /// Bytes, less than a page.
        bytes: u64,
    },
    /// Distance from the stack's end, as the first stack pointer isn't known in both runs.
    StackEndOnly,
    /// Arguments and environment themselves, which each run has of its own.
    StackStrings,
    /// The only region of its size and permission in both runs.
    SizeAlone,
    /// One of so many regions of its size and permission, in the order of their making.
    OrderAmongEquals {
        /// How many.
        count: usize,
    },
    /// Told from others of its size by what it lies next to.
    Neighbours,
    /// The kernel lists several regions as one; they were told apart by their sizes and order.
    Merged,
    /// The region has another size.
    RegionGrew {
        /// Bytes in the profiled run.
        from_bytes: u64,
        /// Bytes in the native run.
        to_bytes: u64,
    },
    /// A static program's heap begins with a record of the vDSO, which emulators hide: blocks lie about a KiB apart.
    HeapWithoutVdso,
    /// Valgrind's heap ends at 8 MiB: what it mapped instead was taken for the heap's continuation.
    HeapAfterBrkCap,
    /// One of the runs unmapped it before its end.
    Gone,
    /// What an interpreter keeps in memory depends on names, paths and hash seeds: it may lie pages away.
    InterpretersHeap,
}

impl Reason {
    /// How sure an answer is that rests on it.
    pub fn confidence(&self) -> Confidence {
        match self {
            Reason::SameFile | Reason::SameInode | Reason::BssOffset => Confidence::Exact,
            Reason::HeapOffset | Reason::StackDepth | Reason::StackShifted { .. } | Reason::SizeAlone => {
                Confidence::Likely
            }
            Reason::OrderAmongEquals { .. } | Reason::RegionGrew { .. } | Reason::Merged => Confidence::Likely,
            Reason::OtherInode | Reason::StackEndOnly | Reason::StackStrings | Reason::Neighbours => Confidence::Guess,
            Reason::HeapWithoutVdso | Reason::HeapAfterBrkCap | Reason::InterpretersHeap | Reason::Gone => {
                Confidence::Guess
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::SameFile => f.write_str("same file, permission and offset"),
            Reason::SameInode => f.write_str("same file by another name"),
            Reason::OtherInode => f.write_str("same name, but another device or inode"),
            Reason::BssOffset => f.write_str("offset in a file's .bss"),
            Reason::HeapOffset => f.write_str("offset in the heap"),
            Reason::StackDepth => f.write_str("depth below the first stack pointer"),
            Reason::StackShifted { bytes } => write!(f, "stack moved by {bytes} bytes within its page"),
            Reason::StackEndOnly => f.write_str("distance from the stack's end; its first pointer is not known"),
            Reason::StackStrings => f.write_str("arguments and environment, which each run has of its own"),
            Reason::SizeAlone => f.write_str("only region of its size"),
            Reason::OrderAmongEquals { count } => write!(f, "order among {count} regions of its size"),
            Reason::Neighbours => f.write_str("told by its neighbours alone"),
            Reason::Merged => f.write_str("part of a region that the kernel merged"),
            Reason::RegionGrew { from_bytes, to_bytes } => {
                write!(f, "region has {} KiB, {} when profiled", to_bytes >> 10, from_bytes >> 10)
            }
            Reason::HeapWithoutVdso => {
                f.write_str("static program: the vDSO's record, which emulators hide, shifts its heap")
            }
            Reason::HeapAfterBrkCap => f.write_str("past the 8 MiB of Valgrind's heap"),
            Reason::Gone => f.write_str("unmapped before the end of the run"),
            Reason::InterpretersHeap => f.write_str("an interpreter's memory, which may lie pages away"),
        }
    }
}

/// What to say of the sizes of two partners.
pub(super) fn grew(from: &Region, to: &Region) -> Option<Reason> {
    let (from_bytes, to_bytes) = (from.bytes(), to.bytes());
    (from_bytes != to_bytes).then_some(Reason::RegionGrew { from_bytes, to_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_says_its_numbers_and_how_sure_it_is() {
        let grew = Reason::RegionGrew { from_bytes: 12 << 10, to_bytes: 20 << 10 };
        for (reason, confidence, text) in [
            (Reason::SameFile, Confidence::Exact, "same file, permission and offset"),
            (Reason::StackShifted { bytes: 48 }, Confidence::Likely, "stack moved by 48 bytes within its page"),
            (Reason::OrderAmongEquals { count: 3 }, Confidence::Likely, "order among 3 regions of its size"),
            (grew, Confidence::Likely, "region has 20 KiB, 12 when profiled"),
            (Reason::Gone, Confidence::Guess, "unmapped before the end of the run"),
        ] {
            assert_eq!((reason.confidence(), reason.to_string().as_str()), (confidence, text));
        }
    }
}
