//! The memory that is baked: whose it is, and where.

use lookaside_host::Process;
use serde::Serialize;

use super::error::BakeError;

/// Bytes of a base page; the baker's regions begin and end on one.
pub const PAGE_BYTES: u64 = 4096;

/// Memory to keep warm: the pages that hold any of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct BakedRegion {
    /// Address of its first byte.
    pub start: u64,
    /// Its bytes.
    pub len: u64,
}

impl BakedRegion {
    /// The memory of a slice.
    pub fn of<T>(data: &[T]) -> Self {
        Self { start: data.as_ptr() as u64, len: std::mem::size_of_val(data) as u64 }
    }

    /// First byte of its first page, and the byte after its last page.
    pub(super) fn pages(&self) -> Result<(u64, u64), BakeError> {
        let bad = |why| BakeError::Region { start: self.start, len: self.len, why };
        if self.len == 0 {
            return Err(bad("has no bytes"));
        }
        let end = self.start.checked_add(self.len).and_then(|end| end.checked_next_multiple_of(PAGE_BYTES));
        match end {
            Some(end) if end <= 1 << 56 => Ok((self.start & !(PAGE_BYTES - 1), end)),
            _ => Err(bad("goes beyond what a program can address")),
        }
    }
}

/// Whose memory is baked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The caller's own.
    Own,
    /// Another process's, by its number; by the kernel only.
    Process(u32),
}

impl Target {
    /// The process.
    pub(super) fn process(self) -> Process {
        match self {
            Self::Own => Process::own(),
            Self::Process(pid) => Process::of(pid),
        }
    }
}
