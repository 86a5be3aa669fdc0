//! Traces: read, written, converted and damaged.

mod common;
mod damage;
mod import;
mod native;
mod tools;
