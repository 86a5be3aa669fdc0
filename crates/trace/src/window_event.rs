//! What becomes of the pages in a recorder's window.

use crate::Kind;

/// A page in the recorder's window (see [`crate::TraceInfo::filter_window`]) leaves it, or is touched there. There are
/// about as many of these as of accesses, so they are kept apart from other events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowEvent {
    /// It comes before the access of this number in its block, and before other events there.
    pub at: u32,
    /// `Load`, `Store` or `Fetch`: the first kind that the window is of.
    pub kind: Kind,
    /// What becomes of the page.
    pub change: WindowChange,
    /// Address of the page.
    pub addr: u64,
    /// When it leaves: its 64-byte lines, a bit each, that were touched while it was in the window, but for the line of
    /// the recorded access. Else 0.
    pub lines: u64,
}

/// What becomes of a page in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowChange {
    /// The page leaves: of the window's pages it is the one whose last access, maybe a left-out one, lies furthest back. It
    /// came in by the last recorded access to it of the event's kind, or of a kind that is filtered together with that.
    Leave {
        /// Pages that stay in the window.
        others: u8,
    },
    /// The page was accessed by left-out accesses, and is of all pages of its class
    /// ([`crate::TraceInfo::filter_log2_classes`]) the one used last. It comes before another page of the class comes in,
    /// after those used earlier; and before the page leaves. Only where there are several classes.
    Touch,
}

impl WindowEvent {
    /// The page of `addr` leaves before the access `at`.
    pub fn leave(at: u32, addr: u64, kind: Kind, others: u8, lines: u64) -> Self {
        Self { at, kind, change: WindowChange::Leave { others }, addr, lines }
    }

    /// The page of `addr` is touched before the access `at`.
    pub fn touch(at: u32, addr: u64, kind: Kind) -> Self {
        Self { at, kind, change: WindowChange::Touch, addr, lines: 0 }
    }

    /// Of a page that leaves: how many stay.
    pub fn others(&self) -> Option<u8> {
        match self.change {
            WindowChange::Leave { others } => Some(others),
            WindowChange::Touch => None,
        }
    }
}
