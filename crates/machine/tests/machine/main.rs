//! Machine descriptions: read, checked, written and told apart.

mod cache_order;
mod common;
mod cpu;
mod errors;
mod formats;
mod limits;
mod overrides;
mod presets;
mod properties;
mod random;
