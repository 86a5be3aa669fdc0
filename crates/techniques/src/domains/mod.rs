//! Fast address-space switching (Wiggins, Tuch, Uhlig, Heiser 2003): switch address spaces without flushing, and share TLB entries.
//!
//! For a processor whose caches are indexed and tagged by virtual addresses and whose TLB knows no address spaces, but
//! 16 *domains*: each space gets a domain, programs are moved apart by PID relocation and by where mappings are placed, and
//! caches and TLBs are only flushed where two spaces come to use the same megabyte after all (section 2.3).
//!
//! [`AddressSpaces`] is the kernel's part. What it wants of the processor it asks of a [`Hardware`]; the processor in turn asks
//! [`AddressSpaces::walk`] on a TLB miss and [`AddressSpaces::fault`] on a fault. Switches and faults allocate no memory. [`model`] is a
//! machine of that kind, under kernels that flush and that do not.
//!
//! ```
//! use lookaside_techniques::domains::{relocate, AddressSpaces, Config, Hardware, Mapping, Place};
//!
//! #[derive(Default)]
//! struct Counter(u32);
//! impl Hardware for Counter {
//!     fn flush_all(&mut self) {
//!         self.0 += 1;
//!     }
//!     fn flush_tlbs(&mut self) {}
//!     fn flush_range(&mut self, _first_page: u32, _pages: u32) {}
//!     fn drop_entry(&mut self, _addr: u32) {}
//!     fn set_dacr(&mut self, _dacr: u32) {}
//!     fn set_pid(&mut self, _slot: u8) {}
//! }
//!
//! let (mut spaces, mut hardware) = (AddressSpaces::new(Config::LINUX)?, Counter::default());
//! let text = 0x8000; // of every program
//! for frame in [100, 200] {
//!     let program = spaces.create()?;
//!     spaces.map(program, Place::Fixed(text), Mapping { pages: 4, frame, writable: true }, &mut hardware)?;
//!     spaces.switch(program, &mut hardware)?;
//!     let addr = relocate(text, program.slot());
//!     assert!(spaces.walk(addr).is_none());
//!     assert!(spaces.fault(addr, true, &mut hardware).is_ok());
//!     assert_eq!(spaces.walk(addr).map(|page| page.frame), Some(frame));
//! }
//! assert_eq!(hardware.0, 0, "two programs at one address, and no flush");
//! # Ok::<(), lookaside_techniques::domains::DomainsError>(())
//! ```

mod address;
mod collide;
mod counts;
mod directory;
mod error;
mod hardware;
mod mapping;
pub mod model;
mod pool;
mod process;
mod room;
mod sharing;
mod spaces;
mod tables;

pub use address::{relocate, PAGE_BYTES, PAGE_SHIFT, SECTION_PAGES, SECTION_SHIFT, SHARED_START, SLOTS, SLOT_SHIFT};
pub use counts::{Cause, Counts};
pub use error::{Denied, DomainsError};
pub use hardware::{Hardware, Page};
pub use mapping::{Mapping, Place};
pub use pool::DOMAINS;
pub use process::ProcessId;
pub use sharing::{RegionId, REGIONS};
pub use spaces::{AddressSpaces, Config, Mark};
