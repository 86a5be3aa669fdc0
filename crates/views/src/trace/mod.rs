//! What a trace holds, and whether it can be read.

pub mod check;
pub mod info;
