//! From code and registers to the address of an access, by decoding x86-64.

mod backward;
mod code;
mod expression;
mod forward;
mod stalled_access;

pub(super) use code::DecodedCode;
pub(super) use stalled_access::StalledAccess;
