//! The cycles in which instructions are dispatched.

/// So many a cycle, in order.
#[derive(Clone, Debug)]
pub(super) struct Dispatch {
    width: u64,
    /// The cycle in which the last one was dispatched, or from which on the next can be.
    cycle: f64,
    /// Dispatched in it, at most `width`.
    used: u64,
}

impl Dispatch {
    pub(super) fn new(width: u32) -> Self {
        Self { width: width.max(1).into(), cycle: 0.0, used: 0 }
    }

    /// Dispatches so many: the cycle of the last.
    pub(super) fn advance(&mut self, instructions: u64) -> f64 {
        self.used += instructions;
        if self.used > self.width {
            let cycles = (self.used - 1) / self.width;
            self.cycle += cycles as f64;
            self.used -= cycles * self.width;
        }
        self.cycle
    }

    /// Nothing more before this time.
    pub(super) fn wait_until(&mut self, time: f64) {
        if time > self.cycle {
            (self.cycle, self.used) = (time, 0);
        }
    }
}
