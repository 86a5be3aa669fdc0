//! Whether a child process runs or has ended, asked without waiting for it.

/// Whether a child of ours runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildState {
    Running,
    /// Its exit code, or 128 + the signal that ended it; nobody has waited for it yet.
    Ended(i32),
    /// It has been waited for.
    Gone,
}

/// Looks without waiting for it, so that its pid stays its own.
pub fn child_state(process: u32) -> ChildState {
    use rustix::process::{waitid, Pid, WaitId, WaitIdOptions};
    let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return ChildState::Gone };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    match waitid(WaitId::Pid(pid), options) {
        Ok(None) | Err(rustix::io::Errno::INTR) => ChildState::Running,
        Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => ChildState::Ended(code),
            (None, signal) => ChildState::Ended(128 + signal.unwrap_or(0)),
        },
        Err(_) => ChildState::Gone,
    }
}
