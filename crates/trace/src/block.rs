//! The unit in which accesses travel: columns, one thread, events in between.

use crate::{Event, Kind, WindowEvent};

/// A run of accesses of **one thread of one process**, as columns of equal length, in program order.
///
/// `ip`, `size` and `repeat` are either empty (not recorded; all zero) or as long as `addr`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Process id, as the system numbered it.
    pub process: u32,
    /// Thread id, as the system numbered it.
    pub thread: u32,
    /// Virtual addresses in bytes; low bits are zero below the trace's granularity.
    pub addr: Vec<u64>,
    /// What each access does.
    pub kind: Vec<Kind>,
    /// Bytes touched by each access; 0 = not known.
    pub size: Vec<u8>,
    /// Address of the accessing instruction; 0 = not known.
    pub ip: Vec<u64>,
    /// Further accesses to the same 4 KiB page, right after this one as far as its TLB set is
    /// concerned, that the recorder counted and left out: each hits the first TLB level and
    /// changes no state. Behind a window ([`crate::TraceInfo::filter_window`]): while the page was in it.
    pub repeat: Vec<u32>,
    /// Events, each before the access of that position (`addr.len()` = after the last),
    /// positions not descending.
    pub events: Vec<(u32, Event)>,
    /// What becomes of pages in the recorder's window, positions not descending.
    pub window_events: Vec<WindowEvent>,
}

/// Most pages in the windows of a thread: 64 in each of three, for loads, stores and fetches.
pub const WINDOW_PAGES: usize = 192;

impl Block {
    /// Accesses in the columns, repeats not counted.
    pub fn len(&self) -> usize {
        self.addr.len()
    }

    /// Neither accesses nor events.
    pub fn is_empty(&self) -> bool {
        self.addr.is_empty() && self.events.is_empty() && self.window_events.is_empty()
    }

    /// Empties all columns, keeping their memory.
    pub fn clear(&mut self) {
        self.addr.clear();
        self.kind.clear();
        self.size.clear();
        self.ip.clear();
        self.repeat.clear();
        self.events.clear();
        self.window_events.clear();
    }

    /// In a stream with windows ([`crate::TraceInfo::filter_window`]): whether they were at work here. A block of more
    /// accesses than they have room for, from which no page leaves, has every visit to a page.
    pub fn is_windowed(&self) -> bool {
        self.len() <= WINDOW_PAGES || self.window_events.iter().any(|event| event.others().is_some())
    }

    /// Appends one access without size, instruction or repeat. Only for blocks that leave those columns empty.
    #[inline]
    pub fn push(&mut self, kind: Kind, addr: u64) {
        self.addr.push(addr);
        self.kind.push(kind);
    }

    /// Appends an event after the accesses so far.
    pub fn push_event(&mut self, event: Event) {
        self.events.push((self.addr.len() as u32, event));
    }

    /// After the accesses so far, a page leaves the recorder's window ([`crate::WindowChange::Leave`]).
    #[inline]
    pub fn push_leave(&mut self, addr: u64, kind: Kind, others: u8, lines: u64) {
        self.window_events.push(WindowEvent::leave(self.addr.len() as u32, addr, kind, others, lines));
    }

    /// After the accesses so far, a page in the recorder's window is touched ([`crate::WindowChange::Touch`]).
    #[inline]
    pub fn push_touch(&mut self, addr: u64, kind: Kind) {
        self.window_events.push(WindowEvent::touch(self.addr.len() as u32, addr, kind));
    }

    /// Accesses with the left-out repeats counted (`Event::Repeats` not counted).
    pub fn accesses(&self) -> u64 {
        self.addr.len() as u64 + self.repeat.iter().map(|&n| u64::from(n)).sum::<u64>()
    }
}
