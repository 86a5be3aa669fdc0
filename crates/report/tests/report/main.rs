//! Documents, drawn.

mod document;
