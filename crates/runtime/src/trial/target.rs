//! The processes of a trial.

use lookaside_host::Process;

use super::error::TrialError;
use super::report::TrialProcess;
use crate::bake::Identity;

/// A process, and which program it runs.
#[derive(Clone, Debug)]
pub(super) struct TrialTarget {
    pub(super) pid: u32,
    pub(super) identity: Identity,
}

impl TrialTarget {
    /// Takes note of these processes. One alone has to be there; of several those that have ended are left out.
    ///
    /// # Errors
    /// None is there.
    pub(super) fn all(pids: &[u32]) -> Result<Vec<Self>, TrialError> {
        let mut problem = TrialError::Bad("no process: name one by number, name or control group".into());
        let mut found: Vec<Self> = Vec::new();
        for &pid in pids {
            match Identity::of(pid) {
                Ok(identity) => found.push(Self { pid, identity }),
                Err(e) => problem = e.into(),
            }
        }
        match found.is_empty() {
            true => Err(problem),
            false => Ok(found),
        }
    }

    /// Whether it still runs that program.
    pub(super) fn is_same(&self) -> bool {
        Identity::of(self.pid).is_ok_and(|now| now == self.identity)
    }

    /// Bytes that it has in memory.
    pub(super) fn resident_bytes(&self) -> u64 {
        Process::of(self.pid).status().unwrap_or_default().bytes("VmRSS").unwrap_or(0)
    }

    pub(super) fn shown(&self) -> TrialProcess {
        TrialProcess { pid: self.pid, comm: self.identity.comm.clone() }
    }
}
