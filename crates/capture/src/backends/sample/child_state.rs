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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_runs_then_has_ended_and_is_gone_once_waited_for() {
        for (script, code) in [("exit 3", 3), ("kill -9 $$", 128 + 9)] {
            let mut child = Command::new("sh").args(["-c", &format!("sleep 0.2; {script}")]).spawn().unwrap();
            assert_eq!(child_state(child.id()), ChildState::Running);
            while child_state(child.id()) == ChildState::Running {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            // Looking again changes nothing.
            for _ in 0..2 {
                assert_eq!(child_state(child.id()), ChildState::Ended(code), "{script}");
            }
            child.wait().unwrap();
            assert_eq!(child_state(child.id()), ChildState::Gone);
        }
        assert_eq!((child_state(0), child_state(u32::MAX)), (ChildState::Gone, ChildState::Gone));
        assert_eq!(child_state(std::process::id()), ChildState::Gone, "it is no child of ours");
    }
}
