//! The status file of a baker that a program started itself: the same line of JSON as the preloaded helper writes, in a
//! memory file of the same name among the helper thread's own files. `lookaside top` reads it through `/proc`.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::fs::{memfd_create, MemfdFlags};
use rustix::io::Errno;

use super::counters::HelperCounters;
use super::settings::BakeBackend;
use super::status_line::status_line;
use super::status_line::{HELPER, STATUS_NANOS};

/// A memory file. Dropping it removes it.
#[derive(Debug)]
pub(super) struct HelperStatusFile {
    file: File,
    next_nanos: u64,
}

impl HelperStatusFile {
    /// Leaves the program's table of files for one of the calling thread's own, so that the program may close, count
    /// and reuse all numbers, and has no file more. `None` where the system refuses that or a memory file: then there
    /// is none.
    ///
    /// The calling thread must have no file open, and use none of the program's from here on.
    pub(super) fn open() -> Option<Self> {
        leave_files().ok()?;
        // Systems that let nobody execute such files (`vm.memfd_noexec`) want it said; before Linux 6.3 it can't be.
        let file = match memfd_create(HELPER, MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL) {
            Err(Errno::INVAL) => memfd_create(HELPER, MemfdFlags::CLOEXEC),
            other => other,
        };
        Some(Self { file: file.ok()?.into(), next_nanos: 0 })
    }

    /// Writes the line of now if it is time to, or at once; false = it can't any more. What an earlier, longer line
    /// left behind the end of this one is no part of it.
    pub(super) fn write(
        &mut self,
        at_once: bool,
        bake: &str,
        asked: BakeBackend,
        counters: &HelperCounters,
        now_nanos: u64,
    ) -> bool {
        if !at_once && now_nanos < self.next_nanos {
            return true;
        }
        self.next_nanos = now_nanos.saturating_add(STATUS_NANOS);
        let line = status_line(std::process::id() as i32, bake, asked, counters, now_nanos);
        line.is_none_or(|line| self.file.write_all_at(line.bytes(), 0).is_ok())
    }
}

/// Gives the calling thread a table of files of its own, an empty one (Linux 5.9 and later).
fn leave_files() -> Result<(), Errno> {
    // SAFETY: the table is unshared first, so that the program's files stay open; the caller has none in this one.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, libc::CLOSE_RANGE_UNSHARE) };
    if result == 0 {
        Ok(())
    } else {
        Err(Errno::from_raw_os_error(super::kernel::errno()))
    }
}
