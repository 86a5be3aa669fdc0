//! What was done to whom, on disk before it is done: whatever ends this command, it can be taken back.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lookaside_host::{boot_id, is_only_ours, state_folder};
use serde::{Deserialize, Serialize};

use super::error::TrialError;
use crate::bake::Identity;

/// The folder of a user's journal: a file of JSON for each trial, named by its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    folder: PathBuf,
}

/// A trial in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct JournalEntry {
    /// Its number.
    pub number: u64,
    /// What was switched.
    pub what: String,
    /// What is known of it.
    pub state: JournalState,
    /// The start of the system that it belongs to.
    pub boot: String,
    /// The command that does it.
    pub command: JournalProcess,
    /// What has to be taken back.
    pub processes: Vec<JournalProcess>,
    /// What was found, in a line.
    pub said: Option<String>,
}

/// What is known of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum JournalState {
    /// It is going on, or its command was killed.
    Running,
    /// What was tried stays.
    Kept,
    /// It was taken back.
    TakenBack,
}

/// A process of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct JournalProcess {
    /// Its number.
    pub pid: u32,
    /// Which program it ran.
    pub identity: Identity,
    /// First bytes of the windows that were made huge.
    pub windows: Vec<u64>,
}

impl JournalProcess {
    /// Whether it still runs that program.
    pub fn is_same(&self) -> bool {
        Identity::of(self.pid).is_ok_and(|now| now == self.identity)
    }
}

impl JournalEntry {
    /// Its command was killed before it could take back what it did, and the processes are there.
    pub fn is_left_over(&self) -> bool {
        self.state == JournalState::Running && !self.command.is_same() && self.has_something()
    }

    /// Something of it may be there still.
    pub fn has_something(&self) -> bool {
        self.state != JournalState::TakenBack
            && self.boot == boot_id()
            && self.processes.iter().any(|process| !process.windows.is_empty() && process.is_same())
    }
}

impl Journal {
    /// The user's own, made if it is not there.
    ///
    /// # Errors
    /// No folder for it; others could write there.
    pub fn open() -> Result<Self, TrialError> {
        let folder = state_folder()
            .ok_or_else(|| TrialError::Bad("no folder for the journal of trials: set HOME or XDG_STATE_HOME".into()))?;
        Self::in_folder(&folder.join("trials"))
    }

    /// One in this folder.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn in_folder(folder: &Path) -> Result<Self, TrialError> {
        let mut made = DirBuilder::new();
        made.recursive(true).mode(0o700).create(folder).map_err(|e| failed(folder, &e))?;
        if !is_only_ours(folder) {
            let line =
                format!("{}: others can write there; set XDG_STATE_HOME to a folder of your own", folder.display());
            return Err(TrialError::Bad(line));
        }
        Ok(Self { folder: folder.to_path_buf() })
    }

    /// All entries, by number. Files that are none are left out.
    ///
    /// # Errors
    /// The folder can't be read.
    pub fn entries(&self) -> Result<Vec<JournalEntry>, TrialError> {
        let files = std::fs::read_dir(&self.folder).map_err(|e| failed(&self.folder, &e))?;
        let numbers = files.flatten().filter_map(|file| number_of(&file.file_name().to_string_lossy()));
        let mut entries: Vec<JournalEntry> = numbers.filter_map(|number| self.entry(number).ok()).collect();
        entries.sort_by_key(|entry| entry.number);
        Ok(entries)
    }

    /// One entry.
    ///
    /// # Errors
    /// There is none of that number, or it can't be read.
    pub fn entry(&self, number: u64) -> Result<JournalEntry, TrialError> {
        let path = self.path(number);
        let text = std::fs::read(&path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                TrialError::Bad(format!("trial {number}: there is none; lookaside undo --list shows all"))
            }
            _ => failed(&path, &e),
        })?;
        let entry: JournalEntry = serde_json::from_slice(&text)
            .map_err(|e| TrialError::Bad(format!("{}: {e}; it is no entry of the journal", path.display())))?;
        match entry.number == number {
            true => Ok(entry),
            false => Err(TrialError::Bad(format!("{}: it is the entry of trial {}", path.display(), entry.number))),
        }
    }

    /// Begins an entry: the next number that is free.
    ///
    /// # Errors
    /// It can't be written.
    pub(super) fn begin(&self, what: &str, processes: Vec<JournalProcess>) -> Result<JournalEntry, TrialError> {
        let own = std::process::id();
        let identity = Identity::of(own)?;
        let mut entry = JournalEntry {
            number: self.entries()?.last().map_or(1, |last| last.number + 1),
            what: what.into(),
            state: JournalState::Running,
            boot: boot_id(),
            command: JournalProcess { pid: own, identity, windows: Vec::new() },
            processes,
            said: None,
        };
        loop {
            // Whoever makes the file has the number.
            let path = self.path(entry.number);
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(_) => break,
                Err(e) if e.kind() == ErrorKind::AlreadyExists => entry.number += 1,
                Err(e) => return Err(failed(&path, &e)),
            }
        }
        self.write(&entry)?;
        Ok(entry)
    }

    /// Finds out whether a trial is going on in one of these processes: two would take back what the other applies.
    ///
    /// # Errors
    /// One is.
    pub(super) fn check_free(&self, pids: &[u32]) -> Result<(), TrialError> {
        let entries = self.entries()?;
        let going_on = entries.iter().filter(|entry| entry.state == JournalState::Running && entry.command.is_same());
        for entry in going_on {
            if let Some(process) = entry.processes.iter().find(|process| pids.contains(&process.pid)) {
                return Err(TrialError::Bad(format!(
                    "process {}: trial {} is going on in it: wait for its end, or kill -INT {}",
                    process.pid, entry.number, entry.command.pid
                )));
            }
        }
        Ok(())
    }

    /// Takes note of windows of a process that are about to be made huge, and to stay so: not for a trial, but to be
    /// undone as one. Gives the number of the entry.
    ///
    /// # Errors
    /// There is no such process; it can't be written.
    pub fn record_kept(&self, what: &str, pid: u32, windows: &[u64]) -> Result<u64, TrialError> {
        let process = JournalProcess { pid, identity: Identity::of(pid)?, windows: windows.to_vec() };
        let mut entry = self.begin(what, vec![process])?;
        entry.state = JournalState::Kept;
        self.write(&entry)?;
        Ok(entry.number)
    }

    /// Writes an entry, whole or not at all, and to the disk.
    ///
    /// # Errors
    /// It can't be written.
    pub(super) fn write(&self, entry: &JournalEntry) -> Result<(), TrialError> {
        let (path, new) = (self.path(entry.number), self.folder.join(format!(".{}.new", entry.number)));
        let text = serde_json::to_vec_pretty(entry).map_err(|e| TrialError::Bad(e.to_string()))?;
        let write = || {
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            file.write_all(&text)?;
            file.sync_all()?;
            std::fs::rename(&new, &path)?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|e| failed(&path, &e))
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number}.json"))
    }
}

/// The number of a file of the journal, if it is one.
fn number_of(name: &str) -> Option<u64> {
    name.strip_suffix(".json")?.parse().ok()
}

fn failed(path: &Path, error: &std::io::Error) -> TrialError {
    TrialError::Bad(format!("{}: {error}; the journal of trials is kept there (XDG_STATE_HOME)", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal() -> (tempfile::TempDir, Journal) {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = Journal::in_folder(&folder.path().join("deep/trials")).expect("it is ours");
        (folder, journal)
    }

    fn process(pid: u32) -> JournalProcess {
        JournalProcess { pid, identity: Identity::of(std::process::id()).expect("it runs"), windows: vec![1 << 21] }
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let (_folder, journal) = journal();
        let own = std::process::id();
        let mut first = journal.begin("hugepages", vec![process(own)]).expect("written");
        let second = journal.begin("bake", Vec::new()).expect("written");
        assert_eq!((first.number, second.number), (1, 2));
        assert!(first.has_something() && !second.has_something() && !first.is_left_over());
        let busy = journal.check_free(&[1, own]).expect_err("a trial is going on").to_string();
        assert!(busy.starts_with(&format!("process {own}: trial 1 is going on in it")), "{busy}");
        first.state = JournalState::Kept;
        first.said = Some("p99 −12 %".into());
        journal.write(&first).expect("written");
        journal.check_free(&[own]).expect("it is over");
        let third = journal.record_kept("hugepages apply", own, &[3 << 21]).expect("written");
        let kept = journal.entry(third).expect("read");
        assert_eq!((kept.number, kept.state, &kept.processes[0].windows[..]), (3, JournalState::Kept, &[3 << 21][..]));
        assert_eq!(journal.entries().expect("read"), [first, second, kept]);
        assert_eq!(
            journal.entry(4).expect_err("none").to_string(),
            "trial 4: there is none; lookaside undo --list shows all"
        );
    }

    #[test]
    fn what_a_killed_command_left_is_found_while_its_processes_run() {
        let (_folder, journal) = journal();
        let mut entry = journal.begin("hugepages", vec![process(std::process::id())]).expect("written");
        // A command that is gone: a number that no process has.
        entry.command.pid = 4_194_305;
        assert!(entry.is_left_over());
        let another = JournalEntry { boot: "another".into(), ..entry.clone() };
        assert!(!another.is_left_over() && !another.has_something());
        entry.processes[0].pid = 4_194_305;
        assert!(!entry.is_left_over());
    }

    #[test]
    fn files_that_are_no_entries_do_no_harm() {
        let (_folder, journal) = journal();
        for (name, text) in [("7.json", "{"), ("x.json", "{}"), ("8.txt", ""), ("9.json", "[]")] {
            std::fs::write(journal.folder.join(name), text).expect("written");
        }
        assert_eq!(journal.entries().expect("read"), []);
        assert!(journal.entry(7).expect_err("half of one").to_string().contains("7.json: "));
        assert_eq!(journal.begin("hugepages", Vec::new()).expect("written").number, 1);
    }

    proptest::proptest! {
        #[test]
        fn whatever_a_file_holds_is_an_entry_or_an_error(bytes: Vec<u8>, field in "[a-z]{1,9}", number: u64) {
            let (_folder, journal) = journal();
            std::fs::write(journal.path(7), &bytes).expect("written");
            let _ = journal.entry(7);
            std::fs::write(journal.path(7), format!("{{\"{field}\": {number}, \"number\": 7}}")).expect("written");
            proptest::prop_assert!(journal.entry(7).is_err() && journal.entries().is_ok());
        }
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = folder.path().join("open");
        std::fs::create_dir(&open).expect("made");
        std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("ours");
        assert!(Journal::in_folder(&open).expect_err("others").to_string().contains("others can write there"));
    }
}
