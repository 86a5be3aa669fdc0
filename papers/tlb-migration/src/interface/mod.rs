//! The interfaces to the TLB that the paper reads and writes entries by, bit for bit.
//!
//! The bits are those of [`tables`], from which encoders, decoders and the diagrams in the crate's README come.

mod descriptor;
mod entry;
mod error;
pub mod layout;
mod packed;
mod port;
pub mod tables;
mod version;

pub use descriptor::{Descriptor, ReadOperation, A7_SETS, A7_WAYS};
pub use entry::{ArmPageSize, Entry};
pub use error::InterfaceError;
pub use packed::{pack, packed_diagram, packed_pairs, unpack, Pair, PACKED_BYTES};
pub use port::{Port, Register, Slot, Slots, COMMIT};
pub use version::{Version, AGES};
