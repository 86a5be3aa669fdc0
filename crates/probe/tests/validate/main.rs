//! Validation: its patterns, and what it says of machines that are known.

mod access_pattern;
mod compare;
