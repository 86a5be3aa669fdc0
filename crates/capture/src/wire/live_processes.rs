//! The processes that are being recorded.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The processes that have written to the pipe and have not written of their end; shared by reader and launcher.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveProcesses {
    live: Arc<Mutex<BTreeSet<u32>>>,
    /// The last one seen, so that a run of frames costs no lock each.
    last: Option<u32>,
}

impl LiveProcesses {
    /// Ids of those that live, ascending.
    pub(crate) fn live(&self) -> Vec<u32> {
        self.set().iter().copied().collect()
    }

    pub(super) fn seen(&mut self, process: u32) {
        if self.last != Some(process) {
            self.set().insert(process);
            self.last = Some(process);
        }
    }

    pub(super) fn ended(&mut self, process: u32) {
        self.set().remove(&process);
        self.last = None;
    }

    pub(super) fn take_all(&mut self) -> BTreeSet<u32> {
        self.last = None;
        std::mem::take(&mut *self.set())
    }

    fn set(&self) -> std::sync::MutexGuard<'_, BTreeSet<u32>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_lives_from_its_first_frame_to_its_end() {
        let mut reader = LiveProcesses::default();
        let launcher = reader.clone();
        [7, 7, 3, 3].into_iter().for_each(|process| reader.seen(process));
        assert_eq!(launcher.live(), [3, 7]);
        reader.ended(3);
        assert_eq!(launcher.live(), [7]);
        // Its number is given again.
        reader.seen(3);
        assert_eq!(launcher.live(), [3, 7]);
        assert_eq!(reader.take_all(), BTreeSet::from([3, 7]));
        assert!(launcher.live().is_empty());
        reader.seen(3);
        assert_eq!(launcher.live(), [3]);
    }
}
