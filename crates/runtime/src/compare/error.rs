//! Why nothing can be compared.

/// Why there is no comparison.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// Bad input, or something that is missing: what, and what to do.
    #[error("{0}")]
    Bad(String),
    /// The program could not be started.
    #[error("{program}: {why}")]
    Start {
        /// Its name.
        program: String,
        /// Why.
        why: String,
        /// Exit code that a shell would give: 127 not found, 126 else.
        code: u8,
    },
}
