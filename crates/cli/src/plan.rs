//! What the plans of `hugepages` and `lock` share: their input, their files, the run without a recorder.

pub mod file;
pub mod finder;
pub mod input;
pub mod native_run;
pub mod output;
pub mod program;
