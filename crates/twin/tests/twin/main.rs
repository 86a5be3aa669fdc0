//! The digital twin: its patterns, and what it says of machines that are known.

mod compare;
mod pattern;
