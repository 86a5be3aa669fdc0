//! Any way, by a generator.

use lookaside_stats::SplitMix64;

use super::set_policy::SetPolicy;

/// One generator for all sets.
#[derive(Clone, Debug)]
pub(crate) struct RandomWays {
    ways: u32,
    rng: SplitMix64,
}

impl RandomWays {
    pub(super) fn new(ways: u32, rng: SplitMix64) -> Self {
        Self { ways, rng }
    }
}

impl SetPolicy for RandomWays {
    #[inline(always)]
    fn touch(&mut self, _: usize, _: u32) {}

    #[inline(always)]
    fn replace(&mut self, _: usize, invalid: impl FnOnce() -> Option<u32>) -> u32 {
        invalid().unwrap_or_else(|| self.rng.below_u32(self.ways))
    }
}
