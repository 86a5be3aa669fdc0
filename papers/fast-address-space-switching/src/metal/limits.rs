//! What the system allows.

use lookaside_harness::cpus;
use lookaside_host::most_tasks;
use rustix::process::{getrlimit, Resource};

/// What there is room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// CPUs that the calling thread may run on.
    pub cpus: Vec<usize>,
    /// Files that this process may have open.
    pub open_files: u64,
    /// Processes and threads that there may be, and by whose word; `None` where nobody limits them.
    pub tasks: Option<(u64, String)>,
    /// Memory that programs may still have.
    pub available_bytes: u64,
    /// Why there are no compartments by protection keys; `None`: there are.
    pub no_compartments: Option<String>,
}

impl Limits {
    /// This system's; `no_compartments` says why there are none by protection keys.
    pub(super) fn here(available_bytes: u64, no_compartments: Option<String>) -> Self {
        let of_system = most_tasks().map(|(most, file)| (most, file.display().to_string()));
        let of_user = getrlimit(Resource::Nproc).current.map(|most| (most, "ulimit -u".to_string()));
        Self {
            cpus: cpus::allowed(),
            open_files: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
            tasks: of_system.into_iter().chain(of_user).min_by_key(|(most, _)| *most),
            available_bytes,
            no_compartments,
        }
    }
}
