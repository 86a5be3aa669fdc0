//! The `lookaside` command.
fn main() {}
