//! A heap whose pages only ever use chosen TLB sets (TLB coloring, Panchamukhi 2014).
//!
//! A *colour* is a [`Partition`](lookaside_machine::Partition) of the TLB: sets, level by level, and how many entries
//! of each. All that is allocated with a colour lies in pages of that colour, headers and links included; what the heap
//! knows beyond lies in pages of the *bookkeeping*, which has a partition of its own. Where the shares of all colours
//! come to no more than the ways of each set, no allocation's use, and no call of the heap, ever evicts another
//! colour's translations.
//!
//! - Every call takes a bounded number of steps, whatever was allocated before: TLSF (Masmano et al. 2004) in each
//!   colour; where its lists promise no block, at most 48 more are looked at. `realloc` that must move copies; looking
//!   up a pointer's colour takes at most 15 steps (2^15 runs of pages).
//! - **Fragmentation**: with k allocations in use, u bytes in their blocks, r runs of pages and c bytes of pages, a
//!   colour has at most k + r free blocks, so one of at least (c − 16 r − u) / (k + r) bytes; an allocation of n bytes
//!   whose class (n + 24 bytes rounded up to 16, then up by at most a sixteenth) is no larger never fails. With up to
//!   16 free blocks none fails that one of them can hold, so that an empty colour of up to 16 runs gives its longest
//!   run whole. A block is at most 39 bytes larger than what was asked for, and at least 32, at most 48 bytes for up to
//!   24.
//! - Nothing is allocated after the heap was made, and no page is touched for the first time.
//!
//! ```
//! use lookaside_machine::{preset, PageSize};
//! use lookaside_runtime::color::{ColoredHeap, HeapOptions};
//!
//! let levels = preset("xeon-e5-2650")?.color_levels(PageSize::K4)[..1].to_vec();
//! // The paper's colours: 12 of one set each, 4 of four pages in a row.
//! let mut heap = ColoredHeap::new(&HeapOptions::paper(PageSize::K4, levels.clone(), 4)?)?;
//! let red = heap.malloc(100, 0);
//! assert_eq!(levels[0].set_of(red as u64 >> 12), 4);
//! // SAFETY: it came from there and is not used any more.
//! unsafe { heap.free(red) }?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bins;
mod block;
mod colored_heap;
mod error;
mod ffi;
mod forks;
mod growing;
mod heap;
mod huge;
mod layout;
mod options;
mod pick;
mod pool;
mod reserved_pages;
mod rows;
mod runs;
mod shared;
mod spec;

pub use colored_heap::ColoredHeap;
pub use error::HeapError;
pub use growing::{GrowingHeap, Outside};
pub use options::HeapOptions;
pub use pool::{BadFree, ColorStats};
pub use shared::SharedHeap;
pub use spec::spec;
