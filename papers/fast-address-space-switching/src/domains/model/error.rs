//! Why something cannot be modelled.

use thiserror::Error;

use crate::domains::{AddressSpaceError, Denied};

/// Why something could not be modelled.
#[derive(Debug, Error)]
pub enum DomainModelError {
    /// The machine is of another kind.
    #[error("{machine}: the model of domains needs {what}")]
    Machine {
        /// Its name.
        machine: String,
        /// What it lacks.
        what: &'static str,
    },
    /// The library refused it.
    #[error(transparent)]
    Refused(#[from] AddressSpaceError),
    /// An access was denied.
    #[error("access to {addr:#x}: {denied}")]
    Denied {
        /// Where.
        addr: u32,
        /// Why.
        denied: Denied,
    },
}
