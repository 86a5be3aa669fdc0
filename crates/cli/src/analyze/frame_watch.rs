//! How scattered the frames are that the native run gets.

use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use lookaside_host::{FrameScatter, Process};

/// First look at the program, and each next one after twice as long, up to the last. A look takes a millisecond or two.
const FIRST_LOOK: Duration = Duration::from_millis(20);
const LAST_LOOK: Duration = Duration::from_secs(1);

/// The thread beside the run.
pub struct FrameWatch {
    stop: Sender<()>,
    thread: JoinHandle<Option<FrameScatter>>,
}

impl FrameWatch {
    /// Begins to look at the process.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(pid: u32) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let beside = std::thread::Builder::new().name("frames".into());
        let thread = beside.spawn(move || {
            let (mut most, mut wait): (Option<FrameScatter>, _) = (None, FIRST_LOOK);
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(wait) {
                wait = (wait * 2).min(LAST_LOOK);
                let now = FrameScatter::of_process(&Process::of(pid));
                let pages = |scatter: Option<FrameScatter>| scatter.map_or(0, |scatter| scatter.pages);
                if pages(now) >= pages(most) {
                    most = now;
                }
            }
            most
        })?;
        Ok(Self { stop, thread })
    }

    /// Ends it: the frames when most were looked at. `None` = they may not be seen, or there was no look.
    pub fn end(self) -> Option<FrameScatter> {
        drop(self.stop);
        self.thread.join().ok().flatten()
    }
}
