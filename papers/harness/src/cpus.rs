//! CPUs that a thread may run on.

/// Those of the calling thread, in order; none where the system does not say.
pub fn allowed() -> Vec<usize> {
    lookaside_host::allowed_cpus().unwrap_or_default()
}
