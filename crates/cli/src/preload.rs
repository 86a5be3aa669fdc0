//! The libraries that are preloaded into unmodified programs, for `run` and `compare`.

pub mod baker_exit;
pub mod code_report;
pub mod library;
