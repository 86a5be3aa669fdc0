//! What helpers look at of the program that they are in: whether to go on.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cpus::number;
use crate::sys::{self, Errno};

/// Helpers that this process has.
static HELPERS: AtomicU64 = AtomicU64::new(0);

/// A helper more is about to begin.
pub(crate) fn one_more() {
    HELPERS.fetch_add(1, Ordering::Relaxed);
}

/// It could not begin, or is about to end.
pub(crate) fn one_less() {
    HELPERS.fetch_sub(1, Ordering::Relaxed);
}

/// In a forked child there is none.
pub(crate) fn none_yet() {
    HELPERS.store(0, Ordering::Relaxed);
}

/// The last thing that a helper does.
pub(crate) fn leave() -> ! {
    one_less();
    sys::exit_thread()
}

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

    /// The program gave up its user (a helper would keep the old one), or helpers are all that is left of it.
    pub(crate) fn is_over(&self, text: &mut [u8]) -> Result<bool, Errno> {
        if sys::owner(self.folder)? != self.owner {
            return Ok(true);
        }
        let stat = self.read(c"stat", text)?;
        // After the name, which may hold anything: the state is the first field, the number of threads the 18th.
        let after = stat.iter().rposition(|&byte| byte == b')').map_or(0, |at| at.saturating_add(2));
        let mut fields = stat.get(after..).unwrap_or_default().split(|&byte| byte == b' ');
        let (state, threads) = (fields.next(), fields.nth(16).and_then(number));
        let without_them = threads.map(|threads| threads.saturating_sub(HELPERS.load(Ordering::Relaxed)));
        // Its first thread, which has ended, counts until all have.
        Ok(state == Some(b"Z") && without_them.is_some_and(|threads| threads <= 1))
    }
}
