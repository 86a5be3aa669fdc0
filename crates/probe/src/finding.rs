//! A value that two independent measurements agree on, or the reason why there is none.

use serde::Serialize;

/// A value, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
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
        /// `false`: nobody asked for it in particular, and no one misses it.
        asked: bool,
    },
}

impl<T> Finding<T> {
    /// A confirmed value.
    pub fn confirmed(value: T, evidence: Vec<String>) -> Self {
        Self::Confirmed { value, evidence }
    }

    /// No value.
    pub fn not_determined(reason: impl Into<String>) -> Self {
        Self::NotDetermined { reason: reason.into(), evidence: Vec::new(), asked: true }
    }

    /// No value, and none was looked for.
    pub fn not_asked() -> Self {
        Self::NotDetermined { reason: "not asked for".into(), evidence: Vec::new(), asked: false }
    }

    /// The same, but where there is no value nobody misses it.
    #[must_use]
    pub fn unasked(mut self) -> Self {
        if let Self::NotDetermined { asked, .. } = &mut self {
            *asked = false;
        }
        self
    }

    /// The same, with more that was seen.
    pub(crate) fn with_evidence(mut self, more: Vec<String>) -> Self {
        let (Self::Confirmed { evidence, .. } | Self::NotDetermined { evidence, .. }) = &mut self;
        evidence.extend(more);
        self
    }

    /// What it is about, and why there is no value, if it was looked for in vain.
    pub fn lacks(&self, what: &str) -> Option<(String, String)> {
        self.is_missing().then(|| (what.to_string(), self.reason().unwrap_or_default().to_string()))
    }

    /// The value, if there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Confirmed { value, .. } => Some(value),
            Self::NotDetermined { .. } => None,
        }
    }

    /// Whether it was looked for in vain.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::NotDetermined { asked: true, .. })
    }

    /// Whether nobody asked for it in particular.
    pub fn is_unasked(&self) -> bool {
        matches!(self, Self::NotDetermined { asked: false, .. })
    }

    /// Why there is none.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Confirmed { .. } => None,
            Self::NotDetermined { reason, .. } => Some(reason),
        }
    }
}

impl<T> Default for Finding<T> {
    fn default() -> Self {
        Self::not_asked()
    }
}
