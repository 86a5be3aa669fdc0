//! What runs inside or beside a real program and changes what translation costs it.
//!
//! - [`bake`] is PT-Baker (Chatzopoulos 2024): a helper that keeps the page-table entries of a program's data in the
//!   caches.
//! - [`color`] is a heap that owns its TLB sets (Panchamukhi 2014).
//! - [`domains`] is compartments by protection keys (after Wiggins et al. 2003).
//! - [`hugepages`] makes huge pages of a program's hottest windows, from outside or, without the right to, from inside.
//! - [`trial`] does and undoes such help in a process that runs, and measures whether it helps.
//! - [`compare`] runs a program with and without such help, in turns, and says whether it helped.
//!
//! Nothing here simulates anything: the engine models what a technique would gain, this crate applies it, and what it
//! gains is measured.
//!
//! Memory in pages of one colour, which a baker keeps warm:
//!
//! ```
//! use lookaside_machine::{preset, PageSize};
//! use lookaside_runtime::bake::{BakedRegion, Baker};
//! use lookaside_runtime::color::{ColoredHeap, HeapOptions};
//!
//! let levels = preset("xeon-e5-2650")?.color_levels(PageSize::K4)[..1].to_vec();
//! let mut heap = ColoredHeap::new(&HeapOptions::paper(PageSize::K4, levels, 4)?)?;
//! let bytes = heap.malloc(1000, 0);
//!
//! let page = BakedRegion { start: bytes as u64, len: 1000 };
//! let baker = Baker::start(&"prefetch:t0,sleep=100us".parse()?, &[page])?;
//! // ... the program's work ...
//! let stats = baker.stop();
//! assert_eq!(stats.failed_calls, 0);
//!
//! // SAFETY: it came from there and is not used any more.
//! unsafe { heap.free(bytes) }?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bake;
pub mod color;
pub mod compare;
pub mod domains;
mod ffi;
pub mod hugepages;
#[cfg(test)]
mod rights;
pub mod trial;
