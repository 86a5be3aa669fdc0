//! What a program *did*: the access stream with its memory map, processes and threads; the native
//! file format; readers and writers of others' formats.
//!
//! Everything flows as [`Block`]s pulled from a [`Source`]: columns of accesses of one thread, with
//! [`Event`]s at positions between them.

mod block;
mod event;
mod source;

pub use block::{Block, Kind};
pub use event::{Event, FrameList, MapSource, SiteId};
pub use source::{Damage, Granularity, Source, TraceError, TraceInfo};
