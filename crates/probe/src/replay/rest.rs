//! What a program touches between two visits to a line, and no window does.

use std::collections::HashSet;
use std::hint::black_box;

use lookaside_timing::{RunVisits, VisitWindow};

use super::error::ReplayError;
use super::replay_area::{ReplayArea, SMALL};

/// More than any last cache of today's servers holds: 320 MiB (Emerald Rapids, Xeon Platinum 8592+).
const MOST_BYTES: u64 = 384 << 20;
/// Bytes of a line.
const LINE: u64 = 64;

/// Lines that are read between two passes over the windows. The windows are a part of the run, and pass after pass
/// their lines would stay in a cache that the program's own memory does not fit into.
pub struct RestOfMemory {
    area: Option<ReplayArea>,
    lines: u64,
    /// Each line is read so many times more.
    again: u64,
}

impl RestOfMemory {
    /// As many lines as the run's pages have beyond those of these windows, as far as there is room for them in so many
    /// bytes; each to be read `again` times more, as the program's are.
    pub fn new(run: &RunVisits, windows: &[&VisitWindow], bytes: u64, again: f64) -> Result<Self, ReplayError> {
        let lines = lines_beyond(run, windows).min(bytes.min(MOST_BYTES) / LINE);
        if lines == 0 {
            return Ok(Self { area: None, lines: 0, again: 0 });
        }
        let area = ReplayArea::new(lines * LINE)?;
        area.advise(0, lines * LINE, libc::MADV_NOHUGEPAGE);
        (0..lines).step_by((SMALL / LINE) as usize).for_each(|line| area.touch(line as u32));
        Ok(Self { area: Some(area), lines, again: again.round() as u64 })
    }

    /// Reads them all.
    pub fn read(&self) {
        let Some(area) = &self.area else { return };
        let mut sum = 0;
        for line in 0..self.lines {
            // SAFETY: a line of the area, which nobody writes to.
            let word = unsafe { ((area.base() + line * LINE) as *const u64).read_volatile() };
            sum |= word;
            for _ in 0..self.again {
                // SAFETY: as above.
                sum |= unsafe { ((area.base() + line * LINE) as *const u64).read_volatile() };
            }
        }
        black_box(sum);
    }
}

/// Lines of the pages that the run touched, less those that a window visits.
fn lines_beyond(run: &RunVisits, windows: &[&VisitWindow]) -> u64 {
    let lines = windows
        .iter()
        .flat_map(|window| window.visits.iter().map(|visit| visit.line).chain(window.others.iter().copied()));
    let visited: HashSet<_> = lines.collect();
    (run.touched.len() as u64 * (SMALL / LINE)).saturating_sub(visited.len() as u64)
}

#[cfg(test)]
mod tests {
    use lookaside_timing::{PageVisit, VisitLine};

    use super::*;

    #[test]
    fn as_many_lines_as_no_window_visits() {
        let line = |addr| VisitLine::new(0, addr, false);
        let touched = (0..10).map(|page| line(page << 12)).collect();
        let run = RunVisits { windows: Vec::new(), touched };
        let visit = PageVisit { line: line(0x2040), others: 2, accesses: 3, store: false };
        let window =
            VisitWindow { visits: vec![visit; 2], others: vec![line(0x2040), line(0x2080)], ..VisitWindow::default() };
        assert_eq!(lines_beyond(&run, &[&window, &window]), 638);
        let rest = |bytes| RestOfMemory::new(&run, &[&window], bytes, 1.6).unwrap();
        assert_eq!((rest(u64::MAX).lines, rest(u64::MAX).again, rest(6400).lines, rest(0).lines), (638, 2, 100, 0));
        rest(6400).read();
        rest(0).read();
    }
}
