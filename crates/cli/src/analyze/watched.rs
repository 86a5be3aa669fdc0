//! Looks at something now and then, by a thread beside, until it is told to end.

use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::time::{clock_gettime, ClockId};

/// Between two looks lies at least so many times what the last one took of its CPU: half a percent of a CPU at the most.
const WAIT_PER_LOOK: u32 = 200;

/// The thread, and what it has seen.
pub struct Watched<T> {
    stop: Sender<()>,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Watched<T> {
    /// Begins with what is known and looks every `least`; less often, but every `most`, where a look takes long.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        (least, most): (Duration, Duration),
        known: T,
        look: impl Fn(T) -> T + Send + 'static,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let thread = Builder::new().name("watch".into()).spawn(move || {
            let (mut seen, mut wait) = (known, least);
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(wait) {
                let began = cpu_time();
                seen = look(seen);
                wait = wait_after(cpu_time().saturating_sub(began), (least, most));
            }
            seen
        })?;
        Ok(Self { stop, thread })
    }

    /// Ends it: what was seen. `None` = a look panicked.
    pub fn end(self) -> Option<T> {
        drop(self.stop);
        self.thread.join().ok()
    }
}

/// How long to wait after a look that took so much of its CPU.
fn wait_after(look: Duration, (least, most): (Duration, Duration)) -> Duration {
    look.saturating_mul(WAIT_PER_LOOK).min(most).max(least)
}

/// What this thread has taken of its CPU so far.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheap_looks_are_never_far_apart() {
        let [least, most] = [50, 2000].map(Duration::from_millis);
        let waits = |look| wait_after(look, (least, most));
        assert_eq!(waits(Duration::ZERO), least);
        assert_eq!(waits(Duration::from_micros(200)), least);
        assert_eq!(waits(Duration::from_millis(3)), Duration::from_millis(600));
        assert_eq!(waits(Duration::MAX), most);
        assert_eq!(wait_after(Duration::ZERO, (most, least)), most, "the shortest wait counts");
    }

    #[test]
    fn it_looks_until_the_end() {
        let wait = Duration::from_millis(1);
        let count = Watched::start((wait, wait), 0, |looks| looks + 1).expect("a thread");
        std::thread::sleep(50 * wait);
        assert!(count.end().is_some_and(|looks| looks > 1));
        let never = Watched::start((Duration::MAX, Duration::MAX), 7, |_| 0).expect("a thread");
        assert_eq!(never.end(), Some(7));
    }
}
