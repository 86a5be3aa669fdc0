//! What a description has where it says nothing, for serde.

/// Bytes of a line: what nearly every cache has today.
pub(crate) fn line_bytes() -> u32 {
    64
}

pub(crate) fn yes() -> bool {
    true
}

pub(crate) fn is_yes(is: &bool) -> bool {
    *is
}
