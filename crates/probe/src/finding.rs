//! What is said about one thing: a value that two independent looks agree on, or why there is none.

use serde::Serialize;

/// A value, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Finding<T> {
    /// Proposed by one look, confirmed by another with fresh pages.
    Confirmed {
        /// The value.
        value: T,
        /// What it rests on.
        evidence: Vec<String>,
    },
    /// Not determined.
    NotDetermined {
        /// Why.
        reason: String,
        /// What was seen.
        evidence: Vec<String>,
    },
}

impl<T> Finding<T> {
    /// A confirmed value.
    pub fn confirmed(value: T, evidence: Vec<String>) -> Self {
        Self::Confirmed { value, evidence }
    }

    /// No value.
    pub fn not_determined(reason: impl Into<String>) -> Self {
        Self::NotDetermined { reason: reason.into(), evidence: Vec::new() }
    }

    /// The value, if there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Confirmed { value, .. } => Some(value),
            Self::NotDetermined { .. } => None,
        }
    }

    /// Why there is none.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Confirmed { .. } => None,
            Self::NotDetermined { reason, .. } => Some(reason),
        }
    }
}
