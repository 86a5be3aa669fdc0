//! Times dependent loads through a memory area, in core cycles; samples are repeated until they agree.

use lookaside_stats::{quantile_sample, SplitMix64};

use crate::bench::Halt;
use crate::budget::NoteTaker;
use crate::metal::{LineChain, MemoryArea, Metal};

/// Steps of a sample, and that a chain is warmed with at least: the timer's own cost and grain do not show, and with
/// memory at 1000 cycles a step it takes a millisecond, less than a time slice: most samples are whole though others
/// want the CPU too.
const STEPS: u64 = 4096;
/// Steps that a chain is warmed with at most: 32 MiB of lines. Larger ones are in memory anyhow, but for what linking
/// them left in caches.
const MOST_WARM: u64 = 1 << 19;
/// Samples of a measurement: at first, and at most where they do not agree.
const SAMPLES: (usize, usize) = (8, 40);
/// Samples agree where the one at the lower quartile lies within this share of the one at the median.
const AGREE: f64 = 0.02;

impl NoteTaker for LatencyBench<'_> {
    fn note(&mut self, text: &str) {
        self.metal.note(text);
    }
}

/// A machine whose areas are walked.
pub struct LatencyBench<'m> {
    metal: &'m mut dyn Metal,
    halt: &'m dyn Fn() -> Option<Halt>,
    /// Chooses orders.
    pub rng: SplitMix64,
    measurements: u64,
}

impl<'m> LatencyBench<'m> {
    /// A field. `halt` is asked before all samples.
    pub fn new(metal: &'m mut dyn Metal, seed: u64, halt: &'m dyn Fn() -> Option<Halt>) -> Self {
        Self { metal, halt, rng: SplitMix64::new(seed), measurements: 0 }
    }

    /// The machine.
    pub fn metal(&mut self) -> &mut dyn Metal {
        self.metal
    }

    /// Asked whether to go on.
    pub fn halt(&self) -> &'m dyn Fn() -> Option<Halt> {
        self.halt
    }

    /// Measurements so far.
    pub fn measurements(&self) -> u64 {
        self.measurements
    }

    /// Ends the work if it is to end.
    pub fn check(&self) -> Result<(), Halt> {
        (self.halt)().map_or(Ok(()), Err)
    }

    /// Core cycles of a step through these offsets, in this order, again and again.
    pub fn cycles(&mut self, area: MemoryArea, offsets: &[u64]) -> Result<f64, Halt> {
        self.cycles_warmed(area, offsets, 1)
    }

    /// The same after so many rounds at least: under random replacement it takes some until all that fits is in.
    pub(super) fn cycles_warmed(&mut self, area: MemoryArea, offsets: &[u64], rounds: u64) -> Result<f64, Halt> {
        self.measurements += 1;
        let warm = (rounds * offsets.len() as u64).clamp(STEPS, MOST_WARM);
        let steps = LineChain { area, offsets, warm, timed: STEPS };
        let mut cycles: Vec<f64> = Vec::new();
        loop {
            self.check()?;
            cycles.extend(self.metal.steps(&steps, SAMPLES.0)?);
            let [low, middle] = [0.25, 0.5].map(|share| quantile_sample(&cycles, share).unwrap_or_default());
            if middle - low <= AGREE * middle || cycles.len() >= SAMPLES.1 {
                return Ok(low);
            }
        }
    }
}
