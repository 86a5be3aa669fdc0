//! An instruction, by file and offset.

use serde::{Deserialize, Serialize};

/// An instruction of a program, the same in each of its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CodePlace {
    /// Path of the file that it is mapped from; empty: code in no file, which has no offset either.
    pub file: String,
    /// Offset in that file, in bytes.
    pub offset: u64,
}
