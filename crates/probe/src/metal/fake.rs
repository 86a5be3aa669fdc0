//! A [`Metal`] without pages, for tests of the code around the measurements.

use lookaside_machine::PageSize;

use crate::metal::{Metal, MetalError, PageChain};

/// It has no pages.
pub(crate) struct FakeMetal;

impl Metal for FakeMetal {
    fn page_bits(&self, _: PageSize) -> u32 {
        0
    }

    fn max_pages(&self, _: PageSize) -> usize {
        0
    }

    fn chase(&mut self, _: &PageChain<'_>, _: u32, _: usize) -> Result<Vec<f64>, MetalError> {
        Ok(Vec::new())
    }

    fn cycles_per_tick(&self) -> f64 {
        1.0
    }
}
