//! The papers' experiments on the machine at hand, each held against the model of that machine: what `probe` measures with, what `runtime`
//! applies and what `techniques` predicts, brought together.

pub mod migrate;
pub mod tasks;
