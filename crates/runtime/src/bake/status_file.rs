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

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux, include/uapi/linux/fcntl.h.
    const F_SEAL_EXEC: i32 = 0x20;

    /// In a thread of its own, which leaves the program's files.
    #[test]
    fn a_line_is_written_when_it_is_due_or_at_once() {
        let told = std::thread::spawn(|| {
            let Some(mut file) = HelperStatusFile::open() else { return Vec::new() };
            let counters = HelperCounters::default();
            let mut write = |at_once, now_nanos| {
                assert!(file.write(at_once, "scan", BakeBackend::Scan, &counters, now_nanos));
                let mut bytes = [0; 1024];
                let read = file.file.read_at(&mut bytes, 0).expect("its own file");
                let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
                // The moment that the first line tells.
                let rest = text.lines().next().and_then(|line| line.split_once("\"elapsed_nanos\":"));
                rest.and_then(|(_, rest)| rest.split(',').next()).and_then(|nanos| nanos.parse::<u64>().ok())
            };
            // At first; not before its time; then; at once, from which on it is counted.
            let moments = [(false, 5), (false, 200_000_004), (false, 200_000_005), (true, 200_000_010)];
            let later = [(false, 400_000_009), (false, 400_000_010)];
            moments.into_iter().chain(later).map(|(at_once, now)| write(at_once, now)).collect()
        });
        let told = told.join().expect("it ends");
        if told.is_empty() {
            return eprintln!("LEFT OUT: no memory file, or no table of files of one's own");
        }
        let expected = [5, 5, 200_000_005, 200_000_010, 200_000_010, 400_000_010];
        assert_eq!(told, expected.map(Some));
    }

    /// As systems with `vm.memfd_noexec` want it.
    #[test]
    fn nobody_inherits_or_executes_a_status_file() {
        use rustix::io::{fcntl_getfd, FdFlags};
        let told = std::thread::spawn(|| {
            let opened = HelperStatusFile::open()?;
            // SAFETY: asks for the seals of a file of this thread's own.
            let seals = unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&opened.file), libc::F_GET_SEALS) };
            Some((
                fcntl_getfd(&opened.file).expect("its own file"),
                seals,
                opened.file.metadata().expect("its own file"),
            ))
        });
        let Some((flags, seals, metadata)) = told.join().expect("it ends") else {
            return eprintln!("LEFT OUT: no memory file, or no table of files of one's own");
        };
        assert_eq!(flags, FdFlags::CLOEXEC);
        if seals & F_SEAL_EXEC == 0 {
            return eprintln!("LEFT OUT: before Linux 6.3 nothing is said of that");
        }
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111, 0);
    }

    #[test]
    fn the_programs_files_stay_open_when_a_thread_leaves_them() {
        let ours = tempfile::tempfile().expect("a file");
        let left = std::thread::spawn(|| leave_files().map(|()| std::fs::File::open("/dev/null").map(|_| ()).is_ok()));
        match left.join().expect("it ends") {
            Ok(opens) => assert!(opens, "it may open others"),
            Err(error) => eprintln!("LEFT OUT: no table of files of one's own: {error}"),
        }
        ours.metadata().expect("it is open");
    }
}
