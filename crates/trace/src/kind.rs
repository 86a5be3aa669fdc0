//! What an access does.

use serde::{Deserialize, Serialize};

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Kind {
    /// Data load. A read-modify-write is a `Load` and then a `Store`.
    Load = 0,
    /// Data store.
    Store = 1,
    /// Instruction fetch.
    Fetch = 2,
}
