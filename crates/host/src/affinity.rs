//! The CPUs that a thread may run on.

use rustix::io::Errno;
use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

/// The CPU that the calling thread runs on now.
pub fn current_cpu() -> usize {
    // The C library's: rustix looks for the system's own code (vDSO) at an address that Valgrind has unmapped, and
    // dies. SAFETY: takes nothing and touches no memory.
    let cpu = unsafe { libc::sched_getcpu() };
    usize::try_from(cpu).unwrap_or(0)
}

/// The CPUs that the calling thread may run on, in order.
///
/// # Errors
/// The system refuses to say.
pub fn allowed_cpus() -> Result<Vec<usize>, Errno> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Binds the calling thread to these CPUs. One system call and no allocation: a child may do it right after a fork.
///
/// # Errors
/// None of them can be used, or one has a number beyond the size of a set.
pub fn bind_to(cpus: &[usize]) -> Result<(), Errno> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(Errno::INVAL);
        }
        set.set(cpu);
    }
    sched_setaffinity(None, &set)
}

/// Binds the calling thread to one CPU; on drop it may use its former CPUs again.
#[derive(Debug)]
pub struct Pinned {
    cpu: usize,
    before: Vec<usize>,
}

impl Pinned {
    /// Binds it to the CPU that it runs on.
    ///
    /// # Errors
    /// The system refuses.
    pub fn here() -> Result<Self, Errno> {
        Self::to(current_cpu())
    }

    /// Binds it to this CPU.
    ///
    /// # Errors
    /// The thread may not use that CPU.
    pub fn to(cpu: usize) -> Result<Self, Errno> {
        let before = allowed_cpus()?;
        bind_to(&[cpu])?;
        Ok(Self { cpu, before })
    }

    /// Binds it to another CPU.
    ///
    /// # Errors
    /// The thread may not use that CPU.
    pub fn move_to(&mut self, cpu: usize) -> Result<(), Errno> {
        bind_to(&[cpu])?;
        self.cpu = cpu;
        Ok(())
    }

    /// The CPU that it is bound to.
    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// The other CPUs that it could use before.
    pub fn others(&self) -> impl Iterator<Item = usize> + '_ {
        self.before.iter().copied().filter(|&cpu| cpu != self.cpu)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // It can only fail where a cpuset took the CPUs away meanwhile: nothing to do then.
        let _ = bind_to(&self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuTopology;

    #[test]
    fn a_pinned_thread_is_given_its_cpus_back() {
        std::thread::spawn(|| {
            let before = allowed_cpus().expect("CPUs");
            let pinned = Pinned::here().expect("a CPU");
            assert_eq!(allowed_cpus().expect("CPUs"), [pinned.cpu()]);
            assert_eq!(pinned.others().count(), before.len() - 1);
            drop(pinned);
            assert_eq!(allowed_cpus().expect("CPUs"), before);
            assert_eq!(bind_to(&[usize::MAX]), Err(Errno::INVAL));
            assert!(bind_to(&[]).is_err());
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn this_machine_has_cpus() {
        let online = CpuTopology::here().online().unwrap_or_default();
        assert!(online.is_empty() || allowed_cpus().expect("CPUs").iter().all(|cpu| online.contains(cpu)));
    }
}
