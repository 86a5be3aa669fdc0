//! Workloads and streams.

mod streams;
mod whole;
