//! A running recording and its program.

use lookaside_trace::Source;

use crate::error::CaptureError;
use crate::request::RecorderBackend;

/// A running recording.
pub struct Recording {
    /// What the program does; ends when the program has ended (all its processes).
    pub source: Box<dyn Source + Send>,
    /// Stops the program and waits for it.
    pub control: Box<dyn ProgramControl>,
    /// Its recorder.
    pub backend: RecorderBackend,
    /// For the reader of the result: why this recorder, what it leaves out, what would add that.
    pub notes: Vec<String>,
}

/// Stops a recorded program and waits for it. Its output and signals pass through untouched.
pub trait ProgramControl: Send + Sync {
    /// Process id of the program.
    fn pid(&self) -> u32;

    /// Asks it to end (SIGTERM, then SIGKILL after two seconds); for an attached process: detaches only.
    fn stop(&self);

    /// Waits for it and says how it ended. Call after the source has ended.
    ///
    /// # Errors
    /// Where the program could not be waited for.
    fn wait(&self) -> Result<ChildEnd, CaptureError>;

    /// What came of the recording, for the reader of its result. Call after the source has ended.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildEnd {
    /// Exit code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
    /// Not ours to wait for (attached); it still runs.
    Detached,
}
