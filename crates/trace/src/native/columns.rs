//! What a chunk holds: its accesses as columns, its runs of one thread, the flags and modes in its header.

use crate::Kind;

/// The accesses of a chunk; a column that is not recorded is all zero.
#[derive(Default)]
pub(crate) struct ChunkColumns {
    pub(crate) addr: Vec<u64>,
    pub(crate) kind: Vec<Kind>,
    pub(crate) size: Vec<u8>,
    pub(crate) ip: Vec<u64>,
    pub(crate) repeat: Vec<u32>,
}

/// A run of accesses of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) process: u32,
    pub(crate) thread: u32,
    pub(crate) accesses: u32,
    pub(crate) events: u32,
}

/// Ways to write addresses. Part of the format: never renumber.
pub(crate) mod mode {
    /// Distance from the chunk's lowest address.
    pub(crate) const BASE: u8 = 0;
    /// Distance from the access before.
    pub(crate) const DELTA: u8 = 1;
    /// Distance from the access before of the same entry of the table.
    pub(crate) const ENTRY: u8 = 2;
    /// As [`ENTRY`]; accesses of entries whose address never changes in the chunk have no values. Since version 3.
    pub(crate) const MOVING_ENTRY: u8 = 3;
    /// As [`BASE`] for accesses of the other entries; those of entries whose address never changes have no values. Since
    /// version 3.
    pub(crate) const MOVING_BASE: u8 = 4;

    /// Whether the table has first addresses.
    pub(crate) fn has_firsts(mode: u8) -> bool {
        matches!(mode, ENTRY | MOVING_ENTRY | MOVING_BASE)
    }

    /// Whether the table tells entries whose address changes from others.
    pub(crate) fn has_moving(mode: u8) -> bool {
        matches!(mode, MOVING_ENTRY | MOVING_BASE)
    }

    /// Whether values are unsigned distances from one address.
    pub(crate) fn has_base(mode: u8) -> bool {
        matches!(mode, BASE | MOVING_BASE)
    }
}

/// The chunk has sizes.
pub(crate) const HAS_SIZE: u8 = 1;

/// The chunk has instruction addresses.
pub(crate) const HAS_IP: u8 = 2;

/// The chunk has repeats.
pub(crate) const HAS_REPEAT: u8 = 4;

/// They stand in the table, not in a column of their own.
pub(crate) const TABLE_REPEAT: u8 = 8;
