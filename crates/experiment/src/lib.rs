//! The papers' experiments on the machine at hand: what `probe` measures with, what `runtime` applies and what `techniques` predicts, brought
//! together. [`tasks`] holds what is measured against the model of the machine; [`switch`] and
//! [`migrate`] set what is measured side by side.

mod cpus;
pub mod migrate;
pub mod switch;
pub mod tasks;
