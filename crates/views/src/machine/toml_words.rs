//! A machine's kinds, as its TOML spells them.

use serde::Serialize;

/// The words that the machine's TOML uses.
pub(super) fn words<T: Serialize>(values: &[T]) -> String {
    values.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// The word that the machine's TOML uses.
pub(super) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
