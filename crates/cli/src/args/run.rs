//! The arguments of `run`.

use std::ffi::OsString;

use clap::Args;

#[derive(Args)]
pub struct RunArgs {
    /// Keep the program's page tables in the CPU caches: auto, or BACKEND[,stride=PAGES][,nops=N][,sleep=TIME]
    /// [,cpu=auto|sibling|N][,share=0.5], where BACKEND is prefetch (prefetch:t0, :t1, :t2), scan, mincore or module
    /// [default with no value: auto]
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "auto", required_unless_present_any = ["color", "hugepages"])]
    pub bake: Option<String>,
    /// Allocate the program's heap in one TLB partition of FILE (written by `plan color`); NAME selects one of several
    #[arg(long, value_name = "FILE[:NAME]", require_equals = true)]
    pub color: Option<String>,
    /// Promote memory of the program and its children to huge pages: auto:K keeps up to K of the hottest 2 MiB windows
    /// huge; PLAN (a file written by `plan hugepages`) promotes the windows it names. Without the permission to do this
    /// from outside, a preloaded library does it
    #[arg(long, value_name = "auto:K|PLAN", require_equals = true)]
    pub hugepages: Option<String>,
    /// Print what was done in each process to standard error at the end
    #[arg(long)]
    pub stats: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD", required = true)]
    pub command: Vec<OsString>,
}
