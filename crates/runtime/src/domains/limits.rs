//! How many there can be.

/// Keys that can be had: 16, of which 0 is that of all other memory.
pub(super) const MOST_KEYS: usize = 15;
/// Compartments whose memory one may share: each needs a key while it is in.
pub const MOST_SHARED: usize = MOST_KEYS - 1;
/// Enters of one thread that have not been left.
pub const MOST_DEEP: usize = 1024;
