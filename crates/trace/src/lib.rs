//! What a program *did*: the access stream with its memory map, processes and threads; the native
//! file format; readers and writers of others' formats.
//!
//! Everything flows as [`Block`]s pulled from a [`Source`]: columns of accesses of one thread, with
//! [`Event`]s at positions between them. [`open`] reads a file of any known format, [`TraceWriter`] writes the native
//! one, and [`MemoryMap`] follows a program's mappings by its events.
//!
//! ```
//! use lookaside_trace::{Block, Kind, NativeReader, Source, TraceInfo, TraceWriter};
//!
//! let mut block = Block { process: 1, thread: 1, ..Block::default() };
//! block.push(Kind::Load, 0x1000);
//! block.push(Kind::Store, 0x2000);
//! let mut file = Vec::new();
//! let mut writer = TraceWriter::new(&mut file, &TraceInfo::default())?;
//! writer.write(&block)?;
//! writer.finish()?;
//!
//! let mut reader = NativeReader::new(file.as_slice(), "example.lkt")?;
//! let mut read = Block::default();
//! assert!(reader.next_block(&mut read)?);
//! assert_eq!((read.addr, read.kind), (block.addr, block.kind));
//! # Ok::<(), lookaside_trace::TraceError>(())
//! ```

mod block;
mod damage;
mod event;
mod export;
mod import;
mod kind;
mod memory_map;
mod memory_source;
mod native;
mod source;
mod text_event;
mod tools;
mod window_event;
mod windowed;

pub use block::{Block, WINDOW_PAGES};
pub use event::{Event, FrameList, MapSource, SiteId};
pub use export::{write_champsim, write_text, ChampSimLosses, TextWriter};
pub use import::{open, open_reader, Format};
pub use kind::Kind;
pub use memory_map::{parse_maps, source_of, FileId, MemoryMap, Region};
pub use memory_source::MemorySource;
pub use native::{ChunkRef, NativeFile, NativeReader, NativeWorker, TraceWriter, BLOCK_ACCESSES};

pub use source::{Damage, FilterWindow, Granularity, Source, TraceError, TraceInfo};
pub use tools::{cat, check, convert, summary, Converted, Summary};
pub use window_event::{WindowChange, WindowEvent};
pub use windowed::WindowedSource;
