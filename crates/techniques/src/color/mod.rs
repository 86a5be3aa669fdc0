//! TLB coloring (Panchamukhi 2014): real-time tasks whose pages lie in TLB sets of their own.
//!
//! [`tasks`] is what a set of tasks needs.

pub mod tasks;
