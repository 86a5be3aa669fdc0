//! The native format, extension `.lkt`. Its specification is `docs/trace-format.md`.

mod column;
mod decode;
mod encode;
mod events;
mod file;
mod frame;
mod reader;
mod stream;
mod table;
#[cfg(test)]
mod tests;
mod varint;
mod writer;

pub use file::{ChunkRef, NativeFile, NativeWorker};
pub use reader::NativeReader;
pub use writer::TraceWriter;

pub(crate) use writer::OUTPUT;

pub(crate) use frame::{u64_at, MAGIC};

/// Accesses in a chunk at most: what is unpacked of it stays in a core's second-level cache.
pub const CHUNK_ACCESSES: usize = 1 << 17;
/// Accesses in a block that a reader yields, at most: its columns then stay in a core's second-level cache.
pub const BLOCK_ACCESSES: usize = 1 << 14;
/// Runs of one thread in a chunk at most.
const CHUNK_SEGMENTS: usize = 1 << 16;
