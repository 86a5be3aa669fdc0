//! Staying on one CPU, and going back to all of them afterwards.

use crate::metal::MetalError;

/// Binds the calling thread to the CPU it runs on; its former CPUs are given back on drop.
#[derive(Debug)]
pub(crate) struct Pinned {
    cpu: usize,
    before: libc::cpu_set_t,
}

impl Pinned {
    /// Binds the calling thread.
    pub(crate) fn here() -> Result<Self, MetalError> {
        let failed = || MetalError::Affinity(std::io::Error::last_os_error().to_string());
        // SAFETY: a `cpu_set_t` is a plain array of words; all zero is the empty set.
        let mut before: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the set is ours and as long as we say.
        if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut before) } != 0 {
            return Err(failed());
        }
        // SAFETY: takes and touches nothing of ours.
        let cpu = usize::try_from(unsafe { libc::sched_getcpu() }).map_err(|_| failed())?;
        bind(cpu)?;
        Ok(Self { cpu, before })
    }

    /// Goes to another CPU, to stay there.
    pub(crate) fn move_to(&mut self, cpu: usize) -> Result<(), MetalError> {
        bind(cpu)?;
        self.cpu = cpu;
        Ok(())
    }

    /// The other CPUs that the thread may run on.
    pub(crate) fn others(&self) -> Vec<usize> {
        // SAFETY: numbers below the set's length.
        let has = |&cpu: &usize| unsafe { libc::CPU_ISSET(cpu, &self.before) };
        (0..8 * size_of::<libc::cpu_set_t>()).filter(has).filter(|&cpu| cpu != self.cpu).collect()
    }

    /// The CPU.
    pub(crate) fn cpu(&self) -> usize {
        self.cpu
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: the set is ours. It can only fail where a cpuset took the CPUs away meanwhile: nothing to do then.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &self.before) };
    }
}

/// Binds the calling thread to a CPU.
pub(crate) fn bind(cpu: usize) -> Result<(), MetalError> {
    // SAFETY: a `cpu_set_t` is a plain array of words; all zero is the empty set.
    let mut only: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if cpu >= 8 * size_of::<libc::cpu_set_t>() {
        return Err(MetalError::Affinity(format!("CPU {cpu} is beyond what a CPU set holds")));
    }
    // SAFETY: the number was checked against the set's length.
    unsafe { libc::CPU_SET(cpu, &mut only) };
    // SAFETY: the set is ours and as long as we say.
    if unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &only) } != 0 {
        return Err(MetalError::Affinity(std::io::Error::last_os_error().to_string()));
    }
    Ok(())
}
