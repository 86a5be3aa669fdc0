//! A range of addresses.

/// A range of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AddressRange {
    /// Its first byte.
    pub start: u64,
    /// The byte after its last.
    pub end: u64,
}
