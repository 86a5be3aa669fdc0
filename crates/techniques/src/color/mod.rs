//! TLB coloring (Panchamukhi 2014): real-time tasks whose pages lie in TLB sets of their own.
//!
//! [`tasks`] is what a set of tasks needs, [`plan`] who gets which sets, [`bound`] how often each job may miss.
//! [`schedule`] says who runs when, [`work`] what a job touches, and [`model`] what that comes to in the engine.

pub mod bound;
pub mod model;
pub mod noise;
pub mod plan;
pub mod response;
pub mod schedule;
pub mod tasks;
mod traced;
pub mod work;
