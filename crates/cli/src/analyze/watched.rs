//! Looks at something now and then, by a thread beside, until it is told to end.

use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The thread, and what it has seen.
pub struct Watched<T> {
    stop: Sender<()>,
    thread: JoinHandle<T>,
}

impl<T: Send + 'static> Watched<T> {
    /// Begins with what is known, looks after `first`, and each time again after twice as long, up to `last`.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        (first, last): (Duration, Duration),
        known: T,
        look: impl Fn(T) -> T + Send + 'static,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let thread = Builder::new().name("watch".into()).spawn(move || {
            let (mut seen, mut wait) = (known, first);
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(wait) {
                wait = (wait * 2).min(last);
                seen = look(seen);
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

#[cfg(test)]
mod tests {
    use super::*;

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
