//! Sizes of chunks and blocks.

/// Accesses in a chunk at most: what is unpacked of it stays in a core's second-level cache.
pub(crate) const CHUNK_ACCESSES: usize = 1 << 17;

/// Accesses in a block that a reader yields, at most: its columns then stay in a core's second-level cache.
pub const BLOCK_ACCESSES: usize = 1 << 14;

/// Runs of one thread in a chunk at most.
pub(crate) const CHUNK_SEGMENTS: usize = 1 << 16;
