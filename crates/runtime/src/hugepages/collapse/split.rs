//! Huge pages made small again, and whether this kernel can do that.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use lookaside_host::Mapping;
use serde::Serialize;

use super::super::error::HugePageError;
use super::super::pages;
use super::super::remote_collapse::SPLIT;
use super::super::windows::WINDOW_BYTES;
use super::{advise, CollapseHandle, Collapser, LEAST_PAUSE};
use crate::bake::PAGE_BYTES;

/// A page that somebody holds for the moment (a device, a forked child that is about to end) is tried again so often,
/// after such pauses.
const TRIES: u32 = 10;
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// What became of a huge page that was to be taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum SplitResult {
    /// Small pages map the window, or nothing does: nothing of a huge page is left there.
    Split {
        /// How long the call took.
        nanos: u64,
    },
    /// A huge page still maps it.
    Refused {
        /// How long the call took.
        nanos: u64,
        /// Why, and what to do.
        why: String,
    },
}

impl SplitResult {
    /// No huge page is left.
    pub fn is_split(&self) -> bool {
        matches!(self, Self::Split { .. })
    }

    /// How long the call took.
    pub fn nanos(&self) -> u64 {
        match self {
            Self::Split { nanos } | Self::Refused { nanos, .. } => *nanos,
        }
    }
}

impl CollapseHandle {
    /// Whether a huge page maps the window; `false` where that can't be told.
    pub fn is_huge(&self, start: u64) -> bool {
        pages::is_huge(self.pid, start).unwrap_or(false)
    }

    /// As [`CollapseHandle::split`], again where the kernel did not, for half a second at most.
    pub fn split_patiently(&self, start: u64) -> SplitResult {
        let mut longest = 0;
        for _ in 1..TRIES {
            match self.split(start) {
                SplitResult::Refused { nanos, .. } => longest = longest.max(nanos),
                SplitResult::Split { nanos } => return SplitResult::Split { nanos: nanos.max(longest) },
            }
            std::thread::sleep(TRY_AGAIN);
        }
        self.split(start)
    }

    /// Splits the huge page of a window into small ones, which hold what it held. Pages of it that nobody ever wrote are
    /// given back (Linux 6.12 and later). Nothing else of the process's memory or its policy changes, but that the
    /// window's first page counts as not used lately.
    ///
    /// The kernel splits a huge page when advice concerns a part of it (mm/madvise.c,
    /// `madvise_cold_or_pageout_pte_range`). It gives no reason where it does not, so the result is looked at.
    pub fn split(&self, start: u64) -> SplitResult {
        if !self.is_same() {
            return SplitResult::Split { nanos: 0 }; // its memory went with it
        }
        let (done, took) = match &self.maker {
            Collapser::Outside(process) => {
                let began = Instant::now();
                let done = advise(process.as_fd(), Some((start, PAGE_BYTES)), libc::MADV_COLD);
                let took = began.elapsed();
                std::thread::sleep(took.max(LEAST_PAUSE));
                (done, took)
            }
            Collapser::Inside(orders) => orders.make(start | SPLIT),
        };
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        match pages::is_huge(self.pid, start) {
            Ok(false) => SplitResult::Split { nanos },
            // Whoever has ended meanwhile has no memory.
            Err(_) if !self.is_same() => SplitResult::Split { nanos },
            Err(e) => SplitResult::Refused { nanos, why: e.to_string() },
            Ok(true) => SplitResult::Refused { nanos, why: self.why_not_split(done, start) },
        }
    }

    fn why_not_split(&self, done: Result<(), i32>, start: u64) -> String {
        match done {
            Err(errno) => self.why(errno, start),
            Ok(()) => {
                "the kernel did not split it: a forked child shares it, or a device or another call holds it; try \
                       again"
                    .into()
            }
        }
    }
}

/// Finds out whether this kernel takes a huge page back, by one of this process's own memory, before one is made in
/// another's.
///
/// # Errors
/// In a line: it does not split what it makes, or none can be made to find out.
pub fn check_way_back() -> Result<(), HugePageError> {
    let bad = |why: &str| HugePageError::Bad(format!("huge pages could not be taken back here: {why}"));
    let memory = Mapping::new(2 * WINDOW_BYTES as usize).map_err(|e| bad(&e.to_string()))?;
    let start = memory.address().next_multiple_of(WINDOW_BYTES);
    let advise = |bytes: u64, advice| {
        // SAFETY: within the mapping; no advice given here changes contents.
        match unsafe { libc::madvise(start as *mut libc::c_void, bytes as usize, advice) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: within the mapping.
    unsafe { (start as *mut u8).write_volatile(1) };
    let made = advise(WINDOW_BYTES, libc::MADV_COLLAPSE);
    made.map_err(|e| bad(&format!("making one to find out failed: MADV_COLLAPSE: {e}")))?;
    advise(PAGE_BYTES, libc::MADV_COLD).map_err(|e| bad(&format!("MADV_COLD: {e}")))?;
    match pages::is_huge(std::process::id(), start)? {
        false => Ok(()),
        true => Err(bad("this kernel does not split one when advice concerns a part of it (MADV_COLD)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window of this process that was made huge, and the memory that holds it; `None` where there are none here.
    fn made(touched: usize) -> Option<(Mapping, CollapseHandle, u64)> {
        let handle = CollapseHandle::open(std::process::id()).ok()?;
        let memory = Mapping::new(2 * WINDOW_BYTES as usize).expect("memory");
        let start = memory.address().next_multiple_of(WINDOW_BYTES);
        for page in 0..touched as u64 {
            // SAFETY: within the mapping.
            unsafe { ((start + page * PAGE_BYTES) as *mut u64).write_volatile(page + 1) };
        }
        handle.collapse(start).is_collapsed().then_some((memory, handle, start))
    }

    #[test]
    fn a_huge_page_is_split_and_holds_what_it_held() {
        let Some((memory, handle, start)) = made(3) else { return eprintln!("LEFT OUT: no huge pages here") };
        assert!(handle.is_huge(start));
        assert!(handle.split_patiently(start).is_split() && !handle.is_huge(start));
        let read = |page: u64| {
            // SAFETY: within the mapping.
            unsafe { ((start + page * PAGE_BYTES) as *const u64).read_volatile() }
        };
        assert_eq!([0, 1, 2, 3, 511].map(read), [1, 2, 3, 0, 0]);
        // Again, and where nothing is.
        assert!(handle.split(start).is_split() && handle.split(memory.address() + 4 * WINDOW_BYTES).is_split());
    }

    /// Pages that were never written are no longer in memory (since Linux 6.12).
    #[test]
    fn what_a_huge_page_added_is_given_back() {
        let Some((_memory, handle, start)) = made(3) else { return eprintln!("LEFT OUT: no huge pages here") };
        assert!(handle.split_patiently(start).is_split());
        if lookaside_host::kernel_version().is_some_and(|version| version >= (6, 12)) {
            let memory = super::super::super::pages::ProcessMemory::of(std::process::id()).expect("our own");
            let window = memory.window(start).expect("three pages of it");
            assert_eq!((window.small_pages, window.huge_pages), (3, 0));
        }
    }

    /// What a forked child shares is not split, and it is said why; once the child has ended, it is.
    #[test]
    fn a_page_that_a_forked_child_shares_is_not_split_until_it_has_ended() {
        let Some((_memory, handle, start)) = made(3) else { return eprintln!("LEFT OUT: no huge pages here") };
        // SAFETY: the child makes one system call that is allowed after a fork, and is killed.
        let child = unsafe { libc::fork() };
        if child == 0 {
            loop {
                // SAFETY: waits for a signal.
                unsafe { libc::pause() };
            }
        }
        let shared = handle.split(start);
        // SAFETY: numbers only; the child is ours and has not been waited for.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        match shared {
            SplitResult::Refused { why, .. } => assert!(why.contains("a forked child shares it"), "{why}"),
            SplitResult::Split { .. } => eprintln!("this kernel splits shared pages, too"),
        }
        assert!(handle.split_patiently(start).is_split());
    }

    #[test]
    fn this_kernel_splits_what_it_makes_or_it_is_said_why_not() {
        if let Err(e) = check_way_back() {
            assert!(e.to_string().contains("could not be taken back here") || e.to_string().contains("PAGEMAP_SCAN"));
        }
    }

    #[test]
    fn who_has_ended_has_no_huge_pages() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is everywhere");
        let handle = CollapseHandle::open(child.id());
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let Ok(handle) = handle else { return eprintln!("LEFT OUT: no right to") };
        assert_eq!(handle.split(1 << 30), SplitResult::Split { nanos: 0 });
        assert!(!handle.is_huge(1 << 30));
    }
}
