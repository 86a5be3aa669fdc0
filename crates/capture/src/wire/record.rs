//! A record of the stream: one access, or a count of accesses that the recorder left out.

use lookaside_trace::Kind;

/// The bits of an address.
pub(super) const ADDR: u64 = (1 << 48) - 1;
/// log2 of the bytes of a page.
pub(super) const PAGE_LOG2: u32 = 12;
/// Tables of the filter: loads, stores, fetches.
pub(super) const TABLES: usize = 3;
/// Most classes a filter can have, log2 (the tool's table is of this size).
pub(crate) const MAX_LOG2_CLASSES: u32 = 12;
/// Most pages of a filter's window (the tool's tables are of this size).
pub(crate) const MAX_WINDOW: u32 = 64;

/// Two words of a record: bits 0–47 of `w0` the address, 48–49 the kind (3 = a count), 50–55 zero, 56–63 the size; bits
/// 0–47 of
/// `w1` the instruction, 48–63 the count of accesses left out on the slot's previous page.
#[derive(Clone, Copy)]
pub(super) struct WireRecord {
    pub(super) w0: u64,
    pub(super) w1: u64,
}

impl WireRecord {
    /// From 16 bytes (fewer read as zero, which the caller never gives).
    #[inline]
    pub(super) fn parse(bytes: &[u8]) -> WireRecord {
        let both = bytes.first_chunk().map_or(0, |bytes| u128::from_le_bytes(*bytes));
        WireRecord { w0: both as u64, w1: (both >> 64) as u64 }
    }

    /// Neither a count nor an address that no page table translates (a program on its way into a fault).
    pub(super) fn is_access(self) -> bool {
        self.code() != 3 && self.is_canonical()
    }

    pub(super) fn is_canonical(self) -> bool {
        (self.w0 >> 50) & 0x3f == 0
    }

    pub(super) fn code(self) -> usize {
        (self.w0 >> 48) as usize & 3
    }

    pub(super) fn kind(self) -> Kind {
        [Kind::Load, Kind::Store, Kind::Fetch, Kind::Fetch][self.code()]
    }
}
