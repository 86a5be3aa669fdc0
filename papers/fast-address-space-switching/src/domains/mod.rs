//! Fast address-space switching (Wiggins, Tuch, Uhlig, Heiser 2003): switch address spaces without flushing, and share
//! TLB entries.
//!
//! For a processor whose caches are indexed and tagged by virtual addresses and whose TLB knows no address spaces, but
//! 16 *domains*: each space gets a domain, programs are moved apart by PID relocation and by where mappings are placed,
//! and caches and TLBs are only flushed where two spaces come to use the same megabyte after all (section 2.3).
//!
//! [`AddressSpaces`] is the kernel's part. What it wants of the processor it asks of a [`DomainHardware`]; the
//! processor in turn asks [`AddressSpaces::walk`] on a TLB miss and [`AddressSpaces::fault`] on a fault. Switches and
//! faults allocate no memory. [`model`] is a machine of that kind, under kernels that flush and that do not.

mod address;
mod collide;
mod counts;
mod directory;
mod error;
mod free_sections;
mod hardware;
mod mapping;
pub mod model;
mod page_span;
mod pool;
mod process;
mod region;
mod sharing;
mod spaces;
mod tables;

pub use address::{
    relocate, PAGE_BYTES, PAGE_SHIFT, REGIONS, SECTION_PAGES, SECTION_SHIFT, SHARED_START, SLOTS, SLOT_SHIFT,
};
pub use counts::{DomainCounts, FlushCause};
pub use error::{AddressSpaceError, Denied};
pub use hardware::{DomainHardware, WalkedPage};
pub use mapping::{MappingAddress, PageMapping};
pub use pool::DOMAINS;
pub use process::ProcessId;
pub use region::RegionId;
pub use spaces::{AddressSpaces, Config, FlushMark};
