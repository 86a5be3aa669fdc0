//! What could not be read of the system.

use std::io;
use std::path::{Path, PathBuf};

/// A file of the system that does not say what it should: which one, and what was found.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct HostError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub problem: FileProblem,
}

/// What is wrong with a file of the system.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// It cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It holds something else than it should.
    #[error("{expected} expected, {found:?} found")]
    Text {
        /// What it should hold.
        expected: &'static str,
        /// The beginning of what it holds.
        found: String,
    },
}

/// Most characters of a file's text that an error shows.
const SHOWN_CHARS: usize = 60;

impl HostError {
    /// The file cannot be read or written.
    pub fn io(path: impl Into<PathBuf>, error: io::Error) -> Self {
        Self { path: path.into(), problem: FileProblem::Io(error) }
    }

    /// The file holds something else than it should.
    pub fn text(path: impl Into<PathBuf>, expected: &'static str, found: &str) -> Self {
        let found = found.trim().chars().take(SHOWN_CHARS).collect();
        Self { path: path.into(), problem: FileProblem::Text { expected, found } }
    }

    /// There is no such file, or the process that it is about has ended.
    pub fn is_missing(&self) -> bool {
        self.is_ended() || matches!(&self.problem, FileProblem::Io(e) if e.kind() == io::ErrorKind::NotFound)
    }

    /// The process that the file is about has ended (`ESRCH`).
    pub fn is_ended(&self) -> bool {
        matches!(&self.problem, FileProblem::Io(e) if e.raw_os_error() == Some(libc::ESRCH))
    }

    /// The caller lacks the rights.
    pub fn is_forbidden(&self) -> bool {
        matches!(&self.problem, FileProblem::Io(e) if e.kind() == io::ErrorKind::PermissionDenied)
    }
}

/// The text of a file; bytes that are no UTF-8 are replaced.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<String, HostError> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|e| HostError::io(path, e))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The number that a file holds.
pub(crate) fn number(path: impl AsRef<Path>) -> Result<u64, HostError> {
    let path = path.as_ref();
    let text = read(path)?;
    text.trim().parse().map_err(|_| HostError::text(path, "a number", &text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_file_and_what_was_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("level");
        let missing = number(&path).expect_err("no file");
        assert!(missing.is_missing() && !missing.is_forbidden() && !missing.is_ended());
        assert!(missing.to_string().starts_with(&format!("{}: ", path.display())), "{missing}");
        std::fs::write(&path, format!("three\n{}", "x".repeat(1000))).expect("a file");
        let wrong = number(&path).expect_err("no number").to_string();
        assert!(wrong.contains("a number expected, \"three\\nxxx") && wrong.len() < 200, "{wrong}");
        std::fs::write(&path, [b'7', 0xff]).expect("a file");
        assert!(number(&path).expect_err("no number").to_string().contains('\u{fffd}'));
        std::fs::write(&path, " 7\n").expect("a file");
        assert_eq!(number(&path).expect("a number"), 7);
    }

    #[test]
    fn a_process_that_has_ended_is_missing() {
        let ended = HostError::io("/proc/1/maps", io::Error::from_raw_os_error(libc::ESRCH));
        assert!(ended.is_missing() && ended.is_ended());
        assert!(HostError::io("x", io::Error::from_raw_os_error(libc::EACCES)).is_forbidden());
    }
}
