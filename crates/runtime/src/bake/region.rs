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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_the_pages_that_hold_any_of_its_bytes() {
        let of = |start, len| BakedRegion { start, len }.pages();
        assert_eq!(of(0x1000, 0x1000), Ok((0x1000, 0x2000)));
        assert_eq!([of(0x1001, 1), of(0x1fff, 1)], [Ok((0x1000, 0x2000)), Ok((0x1000, 0x2000))]);
        assert_eq!(of(0x1fff, 2), Ok((0x1000, 0x3000)));
        // Up to 2^56, as five levels of tables reach.
        let most = 1 << 56;
        assert_eq!(
            [of(most - 0x1000, 0x1000), of(most - 1, 1)],
            [Ok((most - 0x1000, most)), Ok((most - 0x1000, most))]
        );
        let why = |start, len| match of(start, len) {
            Err(BakeError::Region { why, .. }) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!([why(0, 0), why(most, 0)], ["has no bytes"; 2]);
        let beyond = [why(most - 1, 2), why(most, 1), why(u64::MAX, 1), why(1, u64::MAX)];
        assert_eq!(beyond, ["goes beyond what a program can address"; 4]);
    }

    #[test]
    fn a_slice_is_all_of_its_bytes() {
        let data = [0u32; 10];
        assert_eq!(BakedRegion::of(&data), BakedRegion { start: data.as_ptr() as u64, len: 40 });
        assert_eq!(BakedRegion::of(&data[..0]).pages().map_err(|e| e.to_string().contains("has no bytes")), Err(true));
    }
}
