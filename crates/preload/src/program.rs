//! What helpers look at of the program that they are in: whether to go on.

use std::ffi::CStr;

use crate::cpus::number;
use crate::sys::{self, Errno};

/// The last thing that a helper does. Where helpers are all that is left, the process ends as the last thread does (Linux
/// 5.17 and later; before, as the first thread): with the first thread's code, or by the signal that ended that thread
/// alone, as a seccomp filter does.
pub(crate) fn leave() -> ! {
    let mut text = [0; STAT_BYTES];
    // Never among the program's files: where a table of its own was refused, Linux is older than 5.9, and asks for no
    // code.
    let program = sys::leave_files().and_then(|()| PreloadedProcess::open());
    let status = program.and_then(|program| program.first_threads_status(&mut text)).unwrap_or_default();
    if status & 0x7f != 0 {
        sys::die_of(status & 0x7f);
    }
    sys::exit_thread(status >> 8 & 0xff)
}

/// More than `stat` has: 52 numbers and a name.
const STAT_BYTES: usize = 1536;

/// The process, through `/proc`.
pub(crate) struct PreloadedProcess {
    folder: i32,
    owner: u32,
}

impl PreloadedProcess {
    pub(crate) fn open() -> Result<Self, Errno> {
        let folder = sys::open(libc::AT_FDCWD, c"/proc/self", libc::O_DIRECTORY | libc::O_PATH)?;
        Ok(Self { folder, owner: sys::owner(folder)? })
    }

    /// Opens one of its files.
    pub(crate) fn file(&self, name: &CStr) -> Result<i32, Errno> {
        sys::open(self.folder, name, libc::O_RDONLY)
    }

    /// One of its files, as much of it as there is room for.
    pub(crate) fn read<'a>(&self, name: &CStr, text: &'a mut [u8]) -> Result<&'a [u8], Errno> {
        sys::read_file(self.folder, name, text)
    }

    /// The program gave up its user (a helper would keep the old one), or its first thread has ended: if the others do,
    /// the process's exit code is that of the last one, which must be none of the helpers.
    pub(crate) fn is_over(&self, text: &mut [u8]) -> Result<bool, Errno> {
        if sys::owner(self.folder)? != self.owner {
            return Ok(true);
        }
        Ok(fields_of(self.read(c"stat", text)?).next() == Some(b"Z"))
    }

    /// How the first thread ended, as wait(2) has it, if it has; else 0.
    fn first_threads_status(&self, text: &mut [u8]) -> Result<i32, Errno> {
        Ok(status_if_ended(self.read(c"stat", text)?))
    }
}

/// The fields of a `stat` after the name, which may hold anything.
fn fields_of(stat: &[u8]) -> impl Iterator<Item = &[u8]> {
    let after = stat.iter().rposition(|&byte| byte == b')').map_or(0, |at| at.saturating_add(2));
    stat.get(after..).unwrap_or_default().split(|&byte| byte == b' ' || byte == b'\n')
}

/// The status is the 50th field (proc(5): the 52nd of all), as wait(2) has it: the code in the second byte, or a signal
/// in the lowest seven bits.
fn status_if_ended(stat: &[u8]) -> i32 {
    let mut fields = fields_of(stat);
    let status = fields.next().filter(|&state| state == b"Z").and_then(|_| fields.nth(48)).and_then(number);
    status.map_or(0, |status| (status & 0xffff) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_threads_code_is_found_behind_any_name() {
        let stat = |state: &str, status: &str| {
            let between = "1 ".repeat(48);
            format!("77 (a) Z 9 (b) {state} {between}{status}\n").into_bytes()
        };
        assert_eq!(status_if_ended(&stat("Z", "1792")), 7 << 8);
        assert_eq!(status_if_ended(&stat("Z", "65280")), 255 << 8);
        assert_eq!((status_if_ended(&stat("Z", "9")), status_if_ended(&stat("Z", "139"))), (9, 139));
        assert_eq!(
            (status_if_ended(&stat("S", "1792")), status_if_ended(&stat("Z", "")), status_if_ended(b"")),
            (0, 0, 0)
        );
    }
}
