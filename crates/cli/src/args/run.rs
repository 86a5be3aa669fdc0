//! The arguments of `run`.

use std::ffi::OsString;

use clap::Args;

#[derive(Args)]
pub struct RunArgs {
    /// Keep the program's page-table entries in the caches: auto, or BACKEND[,stride=PAGES][,nops=N][,sleep=TIME]
    /// [,cpu=auto|sibling|NUMBER][,share=PART], where BACKEND is prefetch (prefetch:t0, :t1, :t2), scan, mincore or
    /// module [default with no value: auto]
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "auto", required_unless_present_any = ["color", "hugepages"])]
    pub bake: Option<String>,
    /// All that the program allocates lies in pages of one partition of the TLB: of a file, as plan color writes it,
    /// and of the name given where it has several
    #[arg(long, value_name = "FILE[:NAME]", require_equals = true)]
    pub color: Option<String>,
    /// Make huge pages, K at a time at most, of the memory that the program and those that it starts are seen in most
    /// (auto:K), or of the windows that a plan names, as plan hugepages writes it; while it runs, from outside, or by a
    /// library preloaded into it where there is no right to do that
    #[arg(long, value_name = "auto:K|PLAN", require_equals = true)]
    pub hugepages: Option<String>,
    /// Say on standard error at the end what was done in which process
    #[arg(long)]
    pub stats: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD", required = true)]
    pub command: Vec<OsString>,
}
