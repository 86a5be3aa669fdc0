//! The papers' experiments, simulated and on machines that are made up.

mod metal;
mod reproduce;
mod samples;
// Shared with the probe's tests, which use more of it.
#[allow(dead_code, unused_imports)]
#[path = "../../../probe/tests/sim/mod.rs"]
mod sim;
