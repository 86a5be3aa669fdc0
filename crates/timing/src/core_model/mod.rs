//! What waiting costs a core that does several things at once (`RULES.md`, "A core").
//!
//! A load whose address comes from the load before it waits for that one; one whose address is at hand doesn't, as far
//! as the core's window, walkers and miss buffers reach.
//!
//! ```
//! use lookaside_timing::{AddressFlow, CoreParameters, FlowRegister, MemoryTimes, TimedAccess, TimedCore};
//!
//! const NEXT: FlowRegister = FlowRegister::new(1);
//! let walk = |page: u64, flow| TimedAccess {
//!     address: page << 12,
//!     flow,
//!     instructions: 4,
//!     hit_cycles: 4.0,
//!     translation_cycles: 60.0,
//!     walks: true,
//!     ..TimedAccess::default()
//! };
//! let mut list = TimedCore::new(CoreParameters::ZEN3, MemoryTimes::default());
//! let mut probes = list.clone();
//! for page in 0..1000 {
//!     list.access(&walk(page, AddressFlow { from: NEXT, into: NEXT }));
//!     probes.access(&walk(page, AddressFlow::FREE));
//! }
//! assert_eq!(list.cycles(), 64_000.0);
//! // Six walkers: a sixth of the walks' cycles.
//! assert!((10_000.0..10_100.0).contains(&probes.cycles()));
//! ```

mod address_flow;
mod core_parameters;
mod dispatch;
mod in_flight;
mod memory_channel;
mod slots;
mod timed_core;

pub use address_flow::{AddressFlow, FlowRegister};
pub use core_parameters::CoreParameters;
pub use memory_channel::MemoryTimes;
pub use timed_core::{TimedAccess, TimedCore};
