//! What is asked for.

use super::page_placement::PagePlacement;

/// What to do.
#[derive(Clone, Debug)]
pub struct TaskSetOptions {
    /// Hyperperiods of the set.
    pub hyperperiods: u64,
    /// The CPU of the tasks; `None`: the one that has most of its core to itself, of those that this thread may run on.
    pub cpu: Option<usize>,
    /// Name of the TLB array whose misses are counted; `None`: the first with more than one set.
    pub level: Option<String>,
    /// Where pages lie, one run each; they take turns.
    pub placements: Vec<PagePlacement>,
    /// Times that all this is done, with pages placed and ordered anew.
    pub repeats: u64,
    /// Turns of each placement, its meters calibrated anew in each; [`TURNS`] is a good number.
    pub turns: u64,
    /// Pages that each task asks of the C library, to draw its own among them; `None`: those that it touches.
    pub pool: Option<u64>,
    /// Orders the pages of a round, and draws among a pool's.
    pub seed: u64,
}

/// Turns of a placement where nobody asks for another number: what changes meanwhile, the neighbours above all, meets
/// all placements alike.
pub const TURNS: u64 = 10;
