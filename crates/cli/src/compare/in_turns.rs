//! A program run in several variants, in turns: for `compare` and `analyze --measure`.

use std::sync::Arc;

use lookaside_capture::{CaptureError, ChildEnd, ProgramControl};
use lookaside_runtime::compare::{compare, CompareError, Comparison, ComparisonHooks, ComparisonPlan};
use rustix::process::{kill_process, Pid, Signal};

use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::spinner;

/// Runs a plan's variants, with a spinner that says what is done; a signal ends the program that runs.
pub fn in_turns(plan: &ComparisonPlan, interrupt: &Interrupt, doing: &str) -> Result<Comparison, CompareError> {
    let bar = spinner(doing);
    let found = compare(
        plan,
        &ComparisonHooks {
            halt: &|| interrupt.asked(),
            started: &|pid| interrupt.watch(Arc::new(RunningProgram(pid)), true),
            ended: &|| interrupt.unwatch(),
            progress: &|what| bar.set_message(what.to_string()),
        },
    );
    bar.finish_and_clear();
    found
}

/// A program that runs, for signals. It is unwatched before its number can be given to another.
struct RunningProgram(u32);

impl ProgramControl for RunningProgram {
    fn pid(&self) -> u32 {
        self.0
    }

    fn stop(&self) {
        if let Some(pid) = i32::try_from(self.0).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL); // gone already: nothing to end
        }
    }

    fn wait(&self) -> Result<ChildEnd, CaptureError> {
        Ok(ChildEnd::Detached)
    }
}
