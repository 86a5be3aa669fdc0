//! Files that others have open, held before they are opened.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{open, Mode, OFlags};

use crate::{HostError, Process};

/// A hold on a file that opens nothing (`O_PATH`): a pipe or device does not notice, and what it is can be asked before
/// it is opened. Meant for links as `/proc/PID/fd/N`, behind which another process can have anything.
#[derive(Debug)]
pub struct HeldFile(OwnedFd);

impl HeldFile {
    /// The file that this path leads to now.
    ///
    /// # Errors
    /// There is none, or it may not be looked at.
    pub fn at(path: &Path) -> Result<Self, HostError> {
        let held = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        held.map(Self).map_err(|e| HostError::io(path, e.into()))
    }

    /// What the kernel calls it: a path, or a name as `pipe:[7]`, which is the same for both ends.
    ///
    /// # Errors
    /// The system's own.
    pub fn name(&self) -> Result<PathBuf, HostError> {
        Process::own().open_file(self.0.as_raw_fd())
    }

    /// Opens it; it is closed on exec.
    ///
    /// # Errors
    /// The system's own.
    pub fn open(&self, flags: OFlags) -> Result<File, HostError> {
        let path = Process::own().path(&format!("fd/{}", self.0.as_raw_fd()));
        let opened = open(&path, flags | OFlags::CLOEXEC, Mode::empty());
        opened.map(File::from).map_err(|e| HostError::io(path, e.into()))
    }
}

impl AsFd for HeldFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Number of the mount that a file of this process is in (`mnt_id`, proc_pid_fdinfo(5)). All memory files are in one,
/// which
/// no path leads to.
///
/// # Errors
/// The kernel does not say.
pub fn mount_id(file: impl AsFd) -> Result<u64, HostError> {
    let name = format!("fdinfo/{}", file.as_fd().as_raw_fd());
    let bytes = Process::own().bytes(&name)?;
    let text = String::from_utf8_lossy(&bytes);
    let number = text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    number.ok_or_else(|| HostError::text(Process::own().path(&name), "a line mnt_id", &text))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use rustix::fs::{memfd_create, mknodat, FileType, MemfdFlags, CWD};

    use super::*;

    /// The path of a file that this process has open.
    fn link(file: &impl AsRawFd) -> PathBuf {
        Process::own().path(&format!("fd/{}", file.as_raw_fd()))
    }

    #[test]
    fn a_pipe_is_held_without_being_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
        // To open it would wait for who writes.
        let held = HeldFile::at(&path).expect("a hold");
        assert_eq!(held.name().expect("a name"), path);
        assert!(HeldFile::at(&folder.path().join("none")).expect_err("no file").is_missing());
    }

    #[test]
    fn both_ends_of_a_pipe_have_one_name() {
        let (mut reader, mut writer) = std::io::pipe().expect("a pipe");
        let [one, other] = [link(&reader), link(&writer)].map(|path| HeldFile::at(&path).expect("a hold"));
        let name = one.name().expect("a name");
        assert!(name == other.name().expect("a name") && name.to_string_lossy().starts_with("pipe:["), "{name:?}");
        let mut written = other.open(OFlags::WRONLY | OFlags::NONBLOCK).expect("opened");
        written.write_all(b"by the hold").expect("written");
        writer.write_all(b", by its owner").expect("written");
        drop((written, writer));
        let mut all = String::new();
        reader.read_to_string(&mut all).expect("text");
        assert_eq!(all, "by the hold, by its owner");
    }

    #[test]
    fn memory_files_are_in_one_mount_of_their_own() {
        let [one, other] = ["a", "b"].map(|name| memfd_create(name, MemfdFlags::CLOEXEC).expect("a memory file"));
        let folder = tempfile::tempdir().expect("a folder");
        let disk = folder.path().join("disk");
        std::fs::write(&disk, "").expect("a file");
        let held = HeldFile::at(&disk).expect("a hold");
        assert_eq!(mount_id(&one).expect("a mount"), mount_id(&other).expect("a mount"));
        assert_ne!(mount_id(&one).expect("a mount"), mount_id(&held).expect("a mount"));
    }
}
