//! Taking back what a trial left.

use serde::Serialize;

use super::error::TrialError;
use super::journal::{Journal, JournalEntry, JournalState};
use crate::hugepages::{CollapseHandle, SplitResult};

/// What became of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct UndoneEntry {
    /// The entry as it is now.
    pub entry: JournalEntry,
    /// Huge pages that are small pages now.
    pub split: usize,
    /// Why some could not be split, one line each.
    pub refused: Vec<String>,
}

/// Takes back what an entry says, and notes it in the journal. What the processes gave back themselves, and processes
/// that have ended, are nothing to do.
///
/// # Errors
/// The trial is going on; the journal can't be written.
pub fn undo(journal: &Journal, number: u64) -> Result<UndoneEntry, TrialError> {
    let mut entry = journal.entry(number)?;
    if entry.state == JournalState::Running && entry.command.is_same() {
        return Err(TrialError::Bad(format!(
            "trial {number} is going on: end it by Ctrl-C, or kill -INT {}",
            entry.command.pid
        )));
    }
    let (mut split, mut refused) = (0, Vec::new());
    for process in entry.processes.iter().filter(|_| entry.has_something()).filter(|process| process.is_same()) {
        let handle = match CollapseHandle::open_to_split(process.pid) {
            Ok(handle) => handle,
            Err(e) => {
                refused.push(e.to_string());
                continue;
            }
        };
        for &window in process.windows.iter().filter(|&&window| handle.is_huge(window)) {
            match handle.split_patiently(window) {
                SplitResult::Split { .. } => split += 1,
                SplitResult::Refused { why, .. } => refused.push(format!("process {}: {why}", process.pid)),
            }
        }
    }
    refused.sort_unstable();
    refused.dedup();
    if refused.is_empty() {
        entry.state = JournalState::TakenBack;
        journal.write(&entry)?;
    }
    Ok(UndoneEntry { entry, split, refused })
}
