//! Pages that are in a recorder's window while a curve is built: used later than all others, in an order that is not
//! known.

use lookaside_trace::{Block, Kind, WindowEvent, WINDOW_PAGES};

use super::recency::Recency;

/// The pages, by their dense numbers, in the order in which they came.
#[derive(Default)]
pub(super) struct CurveWindow {
    /// Most pages that the recorder's window holds; 0 = it has none.
    pub(super) most: u32,
    of: (u32, u32),
    held: Vec<u32>,
}

impl CurveWindow {
    /// An empty window of at most so many pages.
    pub(super) fn of(most: u32) -> Self {
        Self { most, ..Self::default() }
    }

    /// A block begins: another thread's windows are empty, as are all where they are not at work.
    pub(super) fn enter_block(&mut self, block: &Block, is_windowed: bool, recency: &mut Recency) {
        let of = (block.process, block.thread);
        if self.of != of || !is_windowed {
            self.of = of;
            self.shrink(0, recency);
        }
    }

    /// A page comes in: the distinct others used since its last use, `None` if it never was used.
    pub(super) fn enter(&mut self, page: u32, recency: &mut Recency) -> Option<u32> {
        if self.position_of(page).is_some() {
            return Some(0); // loads and stores have windows of their own
        }
        if self.held.len() == WINDOW_PAGES {
            // These are no windows: a part of a block of every visit.
            self.shrink(WINDOW_PAGES - 1, recency);
        }
        let distance = recency.take(page).map(|distance| distance + self.held.len() as u32);
        self.held.push(page);
        distance
    }

    /// A page leaves, `others` stay: from here on it is the last used of those that are not in the window.
    pub(super) fn leave(&mut self, page: u32, others: u8, recency: &mut Recency) {
        if let Some(place) = self.position_of(page) {
            self.held.remove(place);
        }
        // What is here and does not stay came from a part of the trace whose end is missing.
        self.shrink(others.into(), recency);
        recency.visit(page);
    }

    /// Many at a time: a page is sought twice for each time that it is in the window.
    fn position_of(&self, page: u32) -> Option<usize> {
        let (groups, rest) = self.held.as_chunks::<16>();
        // No early end within a group: these are vectors.
        let has = |group: &&[u32; 16]| group.iter().fold(false, |found, &held| found | (held == page));
        match groups.iter().position(|group| has(&group)) {
            Some(group) => groups[group].iter().position(|&held| held == page).map(|at| 16 * group + at),
            None => rest.iter().position(|&held| held == page).map(|at| 16 * groups.len() + at),
        }
    }

    fn shrink(&mut self, to: usize, recency: &mut Recency) {
        let stale = self.held.len().saturating_sub(to);
        for page in self.held.drain(..stale) {
            recency.visit(page);
        }
    }
}

/// A page that leaves the window of data accesses.
pub(super) fn leaves(event: &WindowEvent) -> Option<(u64, u8)> {
    event.others().filter(|_| event.kind != Kind::Fetch).map(|others| (event.addr, others))
}
