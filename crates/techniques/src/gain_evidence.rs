//! What a prediction for huge pages is made from.

use lookaside_engine::Outcome;
use lookaside_machine::Machine;
use lookaside_timing::{FaultBill, NativeClock, SavedSeconds};

use crate::remedy::Remedy;

/// What a prediction is made from.
#[derive(Clone, Copy, Debug)]
pub struct GainEvidence<'a> {
    /// The model's rows.
    pub remedies: &'a [Remedy],
    /// Its counts without huge pages.
    pub outcome: &'a Outcome,
    /// The machine it is of.
    pub machine: &'a Machine,
    /// The native run, if there was one.
    pub native: Option<&'a NativeClock>,
    /// What the native run would save by the replay; the reason why that is not known.
    pub saved: Result<SavedSeconds, &'a str>,
    /// The bill of its page faults.
    pub faults: Option<FaultBill>,
}
