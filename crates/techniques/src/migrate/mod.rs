//! TLB migration (Landsberg 2018): a thread takes its translations along to the next core.
//!
//! Here are the interfaces to the TLB that the paper reads and writes them by, bit for bit. The Cortex-A7 lets its main TLB be read: an
//! entry is a [`Descriptor`], asked for by a [`ReadOperation`]. Four modified interfaces, of the simulated TLB, also take entries: an
//! [`Entry`] has bits in each, and a [`Port`] is the registers in front of a TLB ([`Slots`]).
//!
//! [`model`] is the paper's two machines, its benchmarks on them, and a Linux that takes entries along.
//!
//! The bits are those of [`tables`], from which encoders, decoders and the diagrams in docs/migrate.md come.
//!
//! ```
//! use lookaside_techniques::migrate::{Descriptor, ReadOperation};
//!
//! // The page of the address in the paper's section 2.1, in way 1.
//! let (va, index) = Descriptor::va_and_index(0xffc0_0248);
//! let at = ReadOperation::new(1, index)?;
//! assert_eq!(at.encode(), 0x8000_0000);
//! let registers = Descriptor { valid: true, va, ..Descriptor::default() }.encode()?;
//! assert_eq!(registers, [0x0003_ff01, 0, 0]);
//! assert_eq!(Descriptor::decode(registers)?.virtual_address(at)?, 0xffc0_0000);
//! # Ok::<(), lookaside_techniques::migrate::InterfaceError>(())
//! ```

mod descriptor;
mod entry;
mod error;
pub mod layout;
pub mod model;
mod packed;
mod port;
pub mod tables;

pub use descriptor::{Descriptor, ReadOperation, A7_SETS, A7_WAYS};
pub use entry::{Entry, PageSize};
pub use error::InterfaceError;
pub use packed::{pack, packed_diagram, packed_pairs, unpack, Pair, PACKED_BYTES};
pub use port::{Port, Register, Slot, Slots, Version, AGES, COMMIT};
