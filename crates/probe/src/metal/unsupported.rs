//! The machine where the instruction set or the system is not supported: there is none.

use lookaside_machine::PageSize;

use crate::metal::{Metal, MetalError, PageChain};

/// No machine: this instruction set has no timer and barriers written for it yet.
#[derive(Debug)]
pub enum HostMachine {}

impl HostMachine {
    /// Always an error here.
    ///
    /// # Errors
    /// Always.
    pub fn new(_: u64) -> Result<Self, MetalError> {
        Err(MetalError::Unsupported(format!("not supported on {}", std::env::consts::ARCH)))
    }

    /// Always an error here.
    ///
    /// # Errors
    /// Always.
    pub fn on_idlest_cpu(max_bytes: u64) -> Result<Self, MetalError> {
        Self::new(max_bytes)
    }

    /// Always an error here.
    ///
    /// # Errors
    /// Always.
    pub fn idlest_cpu() -> Result<usize, MetalError> {
        Err(MetalError::Unsupported(format!("not supported on {}", std::env::consts::ARCH)))
    }

    /// There is none whose memory could be bounded.
    #[must_use]
    pub fn with_sequence_bytes(self, _: u64) -> Self {
        self
    }

    /// The CPU measured.
    pub fn cpu(&self) -> usize {
        match *self {}
    }

    /// Ticks of the timer in a second.
    pub fn ticks_per_second(&self) -> f64 {
        match *self {}
    }
}

impl Metal for HostMachine {
    fn page_bits(&self, _: PageSize) -> u32 {
        match *self {}
    }
    fn max_pages(&self, _: PageSize) -> usize {
        match *self {}
    }
    fn chase(&mut self, _: &PageChain<'_>, _: u32, _: usize) -> Result<Vec<f64>, MetalError> {
        match *self {}
    }
    fn cycles_per_tick(&self) -> f64 {
        match *self {}
    }
}
