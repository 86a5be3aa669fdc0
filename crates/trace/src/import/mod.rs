//! Traces of other tools, as streams of blocks.
//!
//! Each format is a `Parser` that turns input into `ParsedItem`s; `Importer` gathers these into blocks.

mod champsim;
mod csv;
mod drmemtrace;
mod importer;
mod input;
mod lackey;
mod lines;
mod open;
mod parser;
mod perf;
mod text;

pub(crate) use open::open_as;
pub use open::{open, open_reader, Format};
