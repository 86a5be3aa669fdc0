//! CPUs that a thread may run on.

use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

/// Those of the calling thread, in order.
pub fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// Binds the calling thread to these. Only a system call: a child may do it right after a fork.
///
/// # Errors
/// The system refuses, as where the thread may run on none of them.
pub fn bind(cpus: &[usize]) -> rustix::io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
    sched_setaffinity(None, &set)
}
