//! Traces: read, written, converted and damaged.

mod common;
mod damage;
mod export;
mod import;
mod import_edges;
mod native;
mod tools;
