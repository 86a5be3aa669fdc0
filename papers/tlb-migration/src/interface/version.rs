//! The four interfaces.

use std::fmt;

/// Beyond the paper: ages that an entry can have, 0 to 7, three bits.
pub const AGES: u8 = 8;

/// Which interface (sections 5.1 and 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// 92 bits in three registers, read by index, committed by [`COMMIT`](super::COMMIT).
    V1,
    /// 64 bits in two registers, read by index, committed by the write to the last.
    V2,
    /// 55 bits in two registers, streamed for an ASID.
    V3,
    /// As V3, packed by bytes, ended by zeroed registers both ways.
    V4,
}

impl Version {
    /// Data registers.
    pub fn registers(self) -> usize {
        match self {
            Self::V1 => 3,
            Self::V2 | Self::V3 | Self::V4 => 2,
        }
    }

    /// What its operation register takes first.
    pub(super) fn wanted(self) -> &'static str {
        match self {
            Self::V1 | Self::V2 => "index",
            Self::V3 | Self::V4 => "ASID",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
