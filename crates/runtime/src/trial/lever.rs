//! What a trial switches.

use serde::Serialize;

use super::error::TrialError;
use super::journal::JournalProcess;

/// What is applied and taken back.
pub(super) trait Lever {
    /// Applies it, or takes it back. What of it was refused is found in [`Lever::state`].
    ///
    /// # Errors
    /// It can't be switched at all any more, or a call took longer than is allowed.
    fn switch(&mut self, on: bool, stop: &dyn Fn() -> bool) -> Result<(), TrialError>;

    /// How much of it is applied now.
    fn state(&self) -> LeverState;

    /// The calls so far.
    fn calls(&self) -> LeverCalls;

    /// What has to be taken back should this command be killed.
    fn to_undo(&self) -> Vec<JournalProcess>;

    /// Whether what is applied stays when this command has ended.
    fn stays(&self) -> bool;

    /// How a user gets it for good.
    fn advice(&self) -> String;
}

/// How much of something is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LeverState {
    /// Parts (huge pages; processes that are baked) that are there.
    pub applied: usize,
    /// Parts that could be and are not.
    pub not_applied: usize,
}

impl LeverState {
    /// Share of the parts that are applied; 0 where there are none.
    pub fn share(self) -> f64 {
        match self.applied + self.not_applied {
            0 => 0.0,
            all => self.applied as f64 / all as f64,
        }
    }
}

/// Calls by which something was applied and taken back. Page faults and `mmap` calls of the program may have waited as
/// long as the longest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct LeverCalls {
    /// How many.
    pub calls: u64,
    /// What all of them took, in nanoseconds.
    pub nanos: u64,
    /// The longest that applied, in nanoseconds.
    pub longest_apply_nanos: u64,
    /// The longest that took back, in nanoseconds.
    pub longest_take_back_nanos: u64,
    /// Calls that were refused, by why.
    pub refused: std::collections::BTreeMap<String, u64>,
}

impl LeverCalls {
    /// The longest of all.
    pub fn longest_nanos(&self) -> u64 {
        self.longest_apply_nanos.max(self.longest_take_back_nanos)
    }
}
