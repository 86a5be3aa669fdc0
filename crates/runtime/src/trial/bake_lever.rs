//! Baking from outside, begun and ended.

use std::sync::mpsc::{channel, Sender};
use std::thread::JoinHandle;

use super::error::TrialError;
use super::journal::JournalProcess;
use super::lever::{Lever, LeverCalls, LeverState};
use super::target::TrialTarget;
use crate::bake::{ProcessBakers, ProcessSelection, Settings};

/// Bakers of the processes, while it is on.
pub(super) struct BakeLever {
    settings: Settings,
    targets: Vec<TrialTarget>,
    running: Option<RunningBakers>,
}

struct RunningBakers {
    /// Closed when they are to end.
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl BakeLever {
    /// Nothing is baked yet.
    pub(super) fn new(settings: &Settings, targets: &[TrialTarget]) -> Self {
        Self { settings: settings.clone(), targets: targets.to_vec(), running: None }
    }

    fn start(&self) -> Result<RunningBakers, TrialError> {
        let settings = self.settings.clone();
        let pids = self.targets.iter().filter(|target| target.is_same()).map(|target| target.pid).collect();
        let ((end, ended), (tell, told)) = (channel(), channel());
        let beside = std::thread::Builder::new().name("bake".into());
        let thread = beside.spawn(move || {
            let wanted = ProcessSelection { pids, ..ProcessSelection::default() };
            let mut bakers = match ProcessBakers::start(&settings, wanted) {
                Ok(bakers) => bakers,
                Err(e) => return drop(tell.send(Err(e))),
            };
            let _ = tell.send(Ok(()));
            while ended.recv_timeout(bakers.until_refresh()) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                // A process that has ended is let go; what else fails is seen by its having no effect.
                let _ = bakers.refresh();
            }
            bakers.stop();
        });
        let thread = thread.map_err(|e| TrialError::Bad(format!("baking: no thread: {e}")))?;
        match told.recv() {
            Ok(Ok(())) => Ok(RunningBakers { end, thread }),
            Ok(Err(e)) => Err(TrialError::Bad(format!("baking: {e}"))),
            Err(_) => Err(TrialError::Bad("baking: its thread has ended".into())),
        }
    }
}

impl Lever for BakeLever {
    fn switch(&mut self, on: bool, _stop: &dyn Fn() -> bool) -> Result<(), TrialError> {
        if let Some(RunningBakers { end, thread }) = self.running.take() {
            drop(end);
            let _ = thread.join();
        }
        if on {
            self.running = Some(self.start()?);
        }
        Ok(())
    }

    fn state(&self) -> LeverState {
        let there = self.targets.iter().filter(|target| target.is_same()).count();
        match self.running.is_some() {
            true => LeverState { applied: there, not_applied: 0 },
            false => LeverState { applied: 0, not_applied: there },
        }
    }

    fn calls(&self) -> LeverCalls {
        LeverCalls::default()
    }

    fn to_undo(&self) -> Vec<JournalProcess> {
        Vec::new() // the helpers are threads of this command
    }

    fn stays(&self) -> bool {
        false
    }

    fn advice(&self) -> String {
        let pids: String = self.targets.iter().map(|target| format!(" {}", target.pid)).collect();
        format!("while it runs: lookaside bake pid{pids} --settings {}", self.settings)
    }
}
