//! Hardware counters, where there are some: each has to prove itself on chains whose misses are known.

pub(crate) mod events;
pub(crate) mod proven_events;

pub use events::{CountedMisses, PmuEvent, EVENTS};
pub use proven_events::{try_events, usable_events, CountProof, CountedSet, TriedEvent};
