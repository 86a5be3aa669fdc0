//! Workloads and streams.

mod flows;
mod streams;
mod whole;
