//! How scattered the frames are that the native run gets.

use std::time::Duration;

use lookaside_host::{FrameScatter, Process};

use super::watched::Watched;

/// Shortest and longest wait between two looks at the program. A look takes a millisecond or two.
const LOOKS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// Begins to look at the process: the frames when most were looked at. `None` = they may not be seen, or there was no
/// look.
///
/// # Errors
/// No thread can be started.
pub fn watch_frames(pid: u32) -> std::io::Result<Watched<Option<FrameScatter>>> {
    let pages = |scatter: Option<FrameScatter>| scatter.map_or(0, |scatter| scatter.pages);
    Watched::start(LOOKS, None, move |most| {
        let now = FrameScatter::of_process(&Process::of(pid));
        if pages(now) >= pages(most) {
            now
        } else {
            most
        }
    })
}
