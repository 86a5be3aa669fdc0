//! The word that TOML has for a value.

/// The word that the TOML has for a value of an enumeration.
pub(crate) fn word<T: serde::Serialize>(value: &T) -> String {
    toml::Value::try_from(value).ok().and_then(|v| v.as_str().map(str::to_string)).unwrap_or_default()
}
