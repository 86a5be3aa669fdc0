//! One thing to change, and what it is made from.

use lookaside_engine::{Outcome, Setup};

use crate::{Namer, RemedyKind};

/// One thing to change.
#[derive(Clone, Debug, PartialEq)]
pub struct RemedyVariant {
    /// What kind of change.
    pub kind: RemedyKind,
    /// What, in words.
    pub what: String,
    /// The changed run.
    pub setup: Setup,
    /// How to get it; empty = not by a setting.
    pub how: String,
    /// What the row does not say.
    pub caveat: String,
    /// Bytes that it adds to the resident memory; `None` = none, or not known.
    pub bloat_bytes: Option<u64>,
}

/// What the variants are made from, beside the base run's setup.
#[derive(Clone, Copy)]
pub struct RemedyContext<'a> {
    /// The base run's outcome.
    pub outcome: &'a Outcome,
    /// Names who made a mapping.
    pub namer: &'a dyn Namer,
    /// Also what nobody can do on the machine at hand: other hardware.
    pub what_if: bool,
}
