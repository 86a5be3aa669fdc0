//! A machine at which nothing is measured, for tests of what goes on around measurements.

use lookaside_machine::PageSize;

use super::{Chain, Metal, MetalError};

/// It has no pages.
pub(crate) struct Still;

impl Metal for Still {
    fn page_bits(&self, _: PageSize) -> u32 {
        0
    }

    fn max_pages(&self, _: PageSize) -> usize {
        0
    }

    fn chase(&mut self, _: &Chain<'_>, _: u32, _: usize) -> Result<Vec<f64>, MetalError> {
        Ok(Vec::new())
    }

    fn cycles_per_tick(&self) -> f64 {
        1.0
    }
}
