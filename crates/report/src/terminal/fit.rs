//! How many lines tables, plots and notes get, so that a document fits on one screen.

use crate::chart::Chart;
use crate::line::Line;
use crate::table::Table;

/// Lines of one screen, at 100 columns and more.
const SCREEN_LINES: usize = 45;

/// Lines of dots of a plot, where there is room and where the screen is full.
const PLOT: (usize, usize) = (8, 2);

/// Lines of notes.
const NOTES: (usize, usize) = (8, 1);

/// Sizes of what can give way, in the order in which it is drawn.
pub struct Sizes {
    /// So many rows of each table that says how many it wants.
    top: Option<usize>,
    /// What each has been given, and the least that it may have.
    given: Vec<(usize, usize)>,
    /// The one that is drawn next.
    next: usize,
    /// Everything has what it wants; nothing is written down.
    free: bool,
}

impl Sizes {
    /// All as it is wanted, or so many rows of each table.
    pub fn as_wanted(top: Option<usize>) -> Self {
        Self { top, given: Vec::new(), next: 0, free: true }
    }

    /// So many rows of each table.
    pub fn of_rows(rows: usize) -> Self {
        Self::as_wanted(Some(rows))
    }

    /// Rows of a table.
    pub fn rows(&mut self, table: &Table) -> usize {
        match (table.shown, self.top) {
            (None, _) => usize::MAX,
            (Some(_), Some(top)) => top,
            (Some(shown), None) => self.take(shown.most.min(table.row_count()), shown.least),
        }
    }

    /// Lines of dots of a plot.
    pub fn plot(&mut self, _: &Chart) -> usize {
        self.take(PLOT.0, PLOT.1)
    }

    /// Lines of notes; all of them where the rest has what it wants.
    pub fn notes(&mut self) -> usize {
        match self.free {
            true => usize::MAX,
            false => self.take(NOTES.0, NOTES.1),
        }
    }

    fn take(&mut self, wanted: usize, least: usize) -> usize {
        if self.free {
            return wanted;
        }
        if self.next == self.given.len() {
            self.given.push((wanted, least));
        }
        self.next += 1;
        self.given[self.next - 1].0
    }

    /// Takes a line from the largest that can spare one, the last of several; `false` when none can.
    fn shrink(&mut self) -> bool {
        let spare = self.given.iter_mut().filter(|(given, least)| given > least).max_by_key(|(given, _)| *given);
        spare.map(|(given, _)| *given -= 1).is_some()
    }
}

/// Draws with ever smaller sizes until all fits on a screen, or nothing can give way any more.
pub fn on_one_screen(draw: impl Fn(&mut Sizes) -> Vec<Line>) -> Vec<Line> {
    let mut sizes = Sizes { top: None, given: Vec::new(), next: 0, free: false };
    loop {
        sizes.next = 0;
        let lines = draw(&mut sizes);
        if lines.len() <= SCREEN_LINES || !sizes.shrink() {
            return lines;
        }
    }
}
