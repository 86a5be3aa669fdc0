//! The native format, extension `.lkt`. Its specification is `docs/reference/trace-format.md`.

mod column;
mod columns;
mod decode;
mod encode;
mod events;
mod file;
mod frame;
mod limits;
mod reader;
mod stream;
mod table;
#[cfg(test)]
mod tests;
mod varint;
mod writer;

pub use file::{ChunkRef, NativeFile, NativeWorker};
pub use limits::BLOCK_ACCESSES;
pub use reader::NativeReader;
pub use writer::TraceWriter;

pub(crate) use writer::OUTPUT;

pub(crate) use frame::{u64_at, MAGIC};
