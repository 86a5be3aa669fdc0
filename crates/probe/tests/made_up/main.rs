//! The inference, against machines that are made up and thus known. Nothing here touches the real machine.

mod claims;
mod counters;
mod effects;
mod engine;
mod evidence;
mod few_bits;
mod gigantic;
mod hierarchy;
mod large;
mod model;
mod neighbour;
mod odd;
mod policy;
mod recover;
mod shared_core;
mod sharing;
#[path = "../sim/mod.rs"]
mod sim;
#[path = "../sim/hierarchy.rs"]
mod sim_hierarchy;
mod stores;
mod storm;
mod timing;
mod walk_caches;
mod ways;
