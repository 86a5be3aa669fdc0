//! Why a machine cannot be.

/// What cannot be: the key's path and the reason.
#[derive(Debug)]
pub(crate) struct Violation {
    pub at: String,
    pub reason: String,
}

/// Good, or why not.
pub(crate) type CheckResult<T = ()> = Result<T, Violation>;

/// Nothing but this.
pub(crate) fn fault<T>(at: impl Into<String>, reason: impl Into<String>) -> CheckResult<T> {
    Err(Violation { at: at.into(), reason: reason.into() })
}
