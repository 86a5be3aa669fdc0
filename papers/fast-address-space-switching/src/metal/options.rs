//! What is asked for.

use std::time::Duration;

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchOptions {
    /// Participants of the rings of lat_ctx.
    pub participants: Vec<usize>,
    /// KiB that each of them reads in its turn.
    pub kib: Vec<u64>,
    /// Participants of the rings of extreme.
    pub children: Vec<usize>,
    /// Pages of 4 KiB that each of them reads a word of in its turn.
    pub page_counts: Vec<u64>,
    /// Rounds; each measures everything once, in an order drawn anew, with memory, processes and threads of its own.
    pub rounds: u32,
    /// What a measurement takes, after half of it to all of it that does not count.
    pub window: Duration,
    /// No measurement is begun, and none finished, after so long.
    pub time: Duration,
    /// The CPU of the participants; `None`: the last that this thread may run on.
    pub cpu: Option<usize>,
    /// Of orders, of the pages' order, and of resamples.
    pub seed: u64,
}

impl Default for SwitchOptions {
    /// The paper's sweeps, in about two minutes.
    fn default() -> Self {
        Self {
            participants: vec![2, 4, 8, 16, 32, 64],
            kib: vec![0, 4, 16, 64, 256],
            children: vec![2, 4, 16],
            page_counts: vec![1, 4, 16, 32, 64, 128, 256, 512, 1024, 1536],
            rounds: 12,
            window: Duration::from_millis(12),
            time: Duration::from_secs(300),
            cpu: None,
            seed: 1,
        }
    }
}

impl SwitchOptions {
    /// Little of everything, in a few seconds: to see that it works.
    pub fn quick() -> Self {
        Self {
            participants: vec![2, 8],
            kib: vec![0, 16],
            children: vec![2],
            page_counts: vec![1, 64],
            rounds: 5,
            window: Duration::from_millis(1),
            ..Self::default()
        }
    }
}
