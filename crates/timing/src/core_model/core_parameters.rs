//! How much a core does at once.

/// How much a core does at once. All figures are at least 1; 0 counts as 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreParameters {
    /// Instructions dispatched a cycle.
    pub width: u32,
    /// Instructions between the oldest that has not retired and the youngest that is dispatched, both included: the
    /// entries of the reorder buffer.
    pub window: u32,
    /// Page walks under way.
    pub walkers: u32,
    /// Lines under way to the first data cache.
    pub miss_buffers: u32,
    /// Stores dispatched whose line has not come yet.
    pub store_queue: u32,
}

impl CoreParameters {
    /// AMD Zen 3. \[SOG] is AMD's Software Optimization Guide for family 19h (56665 rev. 3.00), as quoted in LLVM's
    /// `X86ScheduleZnver3.td`.
    pub const ZEN3: Self = Self {
        width: 6,         // [SOG] 2.9.6: up to 6 macro ops dispatched a cycle
        window: 256,      // [SOG] 2.10.3: 256 macro ops in flight, where the other hardware thread sleeps
        walkers: 6,       // "a total of 6 table walkers": AnandTech, AMD Zen 3 Ryzen Deep Dive Review, page 4
        miss_buffers: 24, // [SOG] 2.12, recalled; clamchowder's MsrUtil counts family 19h's as full at 24
        store_queue: 64,  // [SOG] 2.12: a 64-entry store queue
    };
}

/// Zen 3, which stands in where a machine's core is not described.
impl Default for CoreParameters {
    fn default() -> Self {
        Self::ZEN3
    }
}
