//! Fast address-space switching (Wiggins, Tuch, Uhlig, Heiser 2003): domains in place of flushes, and shared TLB
//! entries.
//!
//! [`domains`] is the library, usable by itself: a kernel's part of switching without flushes on a processor whose TLB
//! knows no address spaces. [`benchmarks`] are the paper's, as steps; [`metal`] times what a switch takes on this
//! machine; [`view()`] is its report. [`PAPER`] sets the paper's published values beside what the model gives. What
//! programs link is `lookaside_runtime`'s `domains.h`.
//!
//! ```
//! use lookaside_fast_address_space_switching::domains::{
//!     relocate, AddressSpaces, Config, DomainHardware, MappingAddress, PageMapping,
//! };
//!
//! #[derive(Default)]
//! struct Counter(u32);
//! impl DomainHardware for Counter {
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
//!     let mapping = PageMapping { pages: 4, frame, writable: true };
//!     spaces.map(program, MappingAddress::Fixed(text), mapping, &mut hardware)?;
//!     spaces.switch(program, &mut hardware)?;
//!     let addr = relocate(text, program.slot());
//!     assert!(spaces.walk(addr).is_none());
//!     assert!(spaces.fault(addr, true, &mut hardware).is_ok());
//!     assert_eq!(spaces.walk(addr).map(|page| page.frame), Some(frame));
//! }
//! assert_eq!(hardware.0, 0, "two programs at one address, and no flush");
//! # Ok::<(), lookaside_fast_address_space_switching::domains::AddressSpaceError>(())
//! ```

pub mod benchmarks;
pub mod domains;
pub mod metal;
mod model;
mod view;

use lookaside_harness::{ModelExperiments, Paper};

pub use view::{view, SWITCH_SCHEMA};

/// The paper.
pub const PAPER: Paper = Paper {
    name: "fast-address-space-switching",
    cite: "A. Wiggins, H. Tuch, V. Uhlig, G. Heiser, Implementation of Fast Address-Space Switching and TLB Sharing on the \
           StrongARM Processor, ACSAC 2003",
    model: ModelExperiments { values: include_str!("../values/model.toml"), run: model::RUN },
    metal: None,
};
