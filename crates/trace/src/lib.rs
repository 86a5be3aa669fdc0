//! What a program *did*: the access stream with its memory map, processes and threads; the native
//! file format; readers and writers of others' formats.
//!
//! Everything flows as [`Block`]s pulled from a [`Source`]: columns of accesses of one thread, with
//! [`Event`]s at positions between them.

mod block;
mod damage;
mod event;
mod export;
mod import;
mod kind;
mod memory_map;
mod native;
mod source;
mod tools;

pub use block::Block;
pub use event::{Event, FrameList, MapSource, SiteId};
pub use export::{write_champsim, write_text, ChampSimLosses, TextWriter};
pub use import::{open, open_as, open_reader, Format};
pub use kind::Kind;
pub use memory_map::{parse_maps, source_of, FileId, MemoryMap, Region};
pub use native::{ChunkRef, NativeFile, NativeReader, NativeWorker, TraceWriter, BLOCK_ACCESSES, CHUNK_ACCESSES};

pub use source::{Damage, FilterWindow, Granularity, Source, TraceError, TraceInfo};
pub use tools::{cat, check, convert, summary, Converted, Summary};
