//! Byte sizes with a unit, as the TOML writes them.

/// Reads `"4K"`, `"2M"`, `"1G"`, `"512"` into bytes (binary units).
///
/// # Errors
/// A reason in words when the text has no such form or overflows.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let t = text.trim();
    let (digits, shift) = match t.char_indices().last() {
        Some((i, 'K')) => (&t[..i], 10),
        Some((i, 'M')) => (&t[..i], 20),
        Some((i, 'G')) => (&t[..i], 30),
        _ => (t, 0),
    };
    let n: u64 = Some(digits)
        .filter(|digits| digits.bytes().all(|b| b.is_ascii_digit())) // `parse` takes a leading plus too
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| format!("{text:?} is not a size; write a whole number with K, M, G or nothing, as \"32K\""))?;
    n.checked_mul(1 << shift).ok_or_else(|| format!("{text:?} is more than 64 bits hold"))
}

/// Writes bytes in the largest whole unit: 4096 is `4K`.
pub fn format_bytes(bytes: u64) -> String {
    match bytes {
        0 => "0".into(),
        b if b % (1 << 30) == 0 => format!("{}G", b >> 30),
        b if b % (1 << 20) == 0 => format!("{}M", b >> 20),
        b if b % (1 << 10) == 0 => format!("{}K", b >> 10),
        b => b.to_string(),
    }
}

/// Serde adapter for a byte count written as a string with a unit.
pub mod bytes {
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes the size with its unit.
    ///
    /// # Errors
    /// The serializer's own.
    pub fn serialize<S: Serializer>(bytes: &u64, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&super::format_bytes(*bytes))
    }

    /// Reads the size.
    ///
    /// # Errors
    /// A text that is no size.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
        let text = String::deserialize(d)?;
        super::parse_bytes(&text).map_err(serde::de::Error::custom)
    }
}
