//! Stretches of a program's page visits, to be replayed.

/// What is replayed of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunVisits {
    /// Stretches of its visits.
    pub windows: Vec<VisitWindow>,
    /// Each page that the run touched, by one of its lines, in the order of their first touches: the frames of the
    /// replay's pages are handed out in that order, too.
    pub touched: Vec<VisitLine>,
}

/// A stretch of consecutive page visits, behind those that fill the caches and TLBs as they were when it began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VisitWindow {
    /// Each brings a page in.
    pub visits: Vec<PageVisit>,
    /// Their other lines, in the order of the visits.
    pub others: Vec<VisitLine>,
    /// The visits before this one are not timed.
    pub first_timed: usize,
    /// What is measured in it counts so many times for the run.
    pub weight: f64,
    /// Its timed visits' share of the run's modelled translation cycles, 0 to 1.
    pub cost_share: f64,
    /// The thread that made most of the timed visits: its process's number, as in [`VisitLine::new`], and its own.
    pub thread: (u32, u32),
    /// Instructions that the program executed while it made the timed visits; 0 where they were not recorded.
    pub instructions: f64,
}

/// An access that brings a page in, and what is accessed there until the page leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageVisit {
    /// The line that it goes to.
    pub line: VisitLine,
    /// Other lines that were touched before the page left.
    pub others: u8,
    /// Accesses until then, to all of these lines, this one counted; as many as a number of 32 bits holds.
    pub accesses: u32,
    /// It is a store.
    pub store: bool,
}

/// A 64-byte line of a program's memory, and whether a huge page could hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VisitLine(u64);

/// Bits of a line's number: of addresses of 57 bits.
const LINE_BITS: u32 = 51;
/// Processes are told apart by so many bits; those beyond share numbers.
const PROCESS_MASK: u64 = 0xfff;

impl VisitLine {
    /// The line at `addr` of the program's process number `process` (0, 1, … in order of appearance).
    pub fn new(process: u32, addr: u64, huge: bool) -> Self {
        let line = addr >> 6 & ((1 << LINE_BITS) - 1);
        Self(line | (u64::from(process) & PROCESS_MASK) << LINE_BITS | u64::from(huge) << 63)
    }

    /// A huge page could hold it.
    pub fn huge(self) -> bool {
        self.0 >> 63 != 0
    }

    /// Another line of its 4 KiB page: number 0 to 63.
    pub fn beside(self, number: u32) -> Self {
        Self(self.0 & !63 | u64::from(number & 63))
    }

    /// The 2 MiB window that it lies in, of its process; huge and small ones never share a number.
    pub fn window(self) -> u64 {
        self.0 >> 15
    }

    /// Its 4 KiB page, of its process.
    pub fn page(self) -> u64 {
        self.0 >> 6
    }

    /// Its offset in that window, in lines of 64 bytes: 0 to 32,767.
    pub fn offset(self) -> u32 {
        (self.0 & 0x7fff) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_knows_its_window_and_place() {
        let line = VisitLine::new(3, 0x7f12_3456_7890, true);
        assert!(line.huge());
        assert_eq!(u64::from(line.offset()), (0x7f12_3456_7890 & 0x1f_ffff) >> 6);
        assert_eq!(line.window(), VisitLine::new(3, 0x7f12_3440_0000, true).window());
        for other in [VisitLine::new(4, 0x7f12_3456_7890, true), VisitLine::new(3, 0x7f12_3456_7890, false)] {
            assert_ne!(line.window(), other.window());
        }
    }
}
