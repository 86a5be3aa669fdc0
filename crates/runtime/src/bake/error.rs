//! Why a baker cannot do what is asked.

/// Why the baker cannot do what is asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BakeError {
    /// A setting that is none, or out of range: which, and what is possible.
    #[error("{0}")]
    Setting(String),
    /// The system lacks something: what, and what to do.
    #[error("{0}")]
    Unsupported(String),
    /// A region is not what a region can be.
    #[error("region {start:#x}, {len} bytes: {why}")]
    Region {
        /// Its first byte.
        start: u64,
        /// Its bytes.
        len: u64,
        /// What is wrong with it.
        why: &'static str,
    },
}
