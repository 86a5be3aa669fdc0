//! Main memory of the Cortex-A7: a latency, one line at a time, and refresh.

/// Cycles at 900 MHz from one refresh of LPDDR2 to the next (JESD209-2: tREFI 3.9 µs from 2 Gbit a die on), and of one
/// (tRFCab 130 ns).
const REFRESH_EVERY: u64 = 3510;
const REFRESH_TAKES: u64 = 117;

#[derive(Clone, Debug)]
pub(super) struct Dram {
    latency: u64,
    interval: u64,
    /// Cycles since the last refresh, at cycle 0. None: no refresh.
    phase: Option<u64>,
    /// When the last line came.
    pub(super) last: u64,
    pub(super) lines: u64,
}

impl Dram {
    /// `latency` cycles to a line asked for while nothing else is, and at least `interval` from one line to the next.
    pub(super) fn new(latency: u64, interval: u64) -> Self {
        Self { latency, interval, phase: None, last: 0, lines: 0 }
    }

    /// Refreshes from now on, so many cycles after the last at cycle 0.
    pub(super) fn refresh(&mut self, phase: u64) {
        self.phase = Some(phase % REFRESH_EVERY);
    }

    /// When a line comes that is asked for now.
    pub(super) fn request(&mut self, now: u64) -> u64 {
        let since = self.phase.map_or(REFRESH_TAKES, |phase| (now + phase) % REFRESH_EVERY);
        let start = now + REFRESH_TAKES.saturating_sub(since);
        self.last = (start + self.latency).max(self.last + self.interval);
        self.lines += 1;
        self.last
    }
}
