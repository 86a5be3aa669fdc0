//! TLB coloring (Panchamukhi 2014): real-time tasks whose pages lie in TLB sets of their own.
//!
//! [`tasks`] is what a set of tasks needs. [`schedule`] says who runs when, [`work`] what a job touches, and [`model`] what that
//! comes to in the engine.

pub mod model;
pub mod schedule;
pub mod tasks;
pub mod work;
