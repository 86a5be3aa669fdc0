//! Kernels that the papers run, native and as access streams, and small synthetic streams for tests and benches.
//!
//! A stream is a [`Stream`] over a [`Pattern`]: a [`lookaside_trace::Source`] that is the same to the bit for the
//! same parameters and seed. Each begins with the `Map` event of the memory it walks over.
//!
//! ```
//! use lookaside_trace::{Block, Source};
//! use lookaside_workloads::{Stream, UniformPages};
//!
//! let mut source = Stream::new(UniformPages::new(1024, 1), 100_000);
//! let (mut block, mut accesses) = (Block::default(), 0);
//! while source.next_block(&mut block)? {
//!     accesses += block.accesses();
//! }
//! assert_eq!(accesses, 100_000);
//! # Ok::<(), lookaside_trace::TraceError>(())
//! ```
//!
//! The papers' programs are [`workload`]s: each is one algorithm that runs natively, on arrays in mappings of their own, or
//! as a [`WorkloadStream`] of the same accesses. [`kernel`] is what a workload of one's own is written with.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! let mut gups = lookaside_workloads::workload("gups", &lookaside_workloads::Spec::new(1 << 20))?;
//! assert!(gups.run(&AtomicBool::new(false)));
//! assert_eq!(gups.operations(), (1 << 20) / 8 / 16);
//! # Ok::<(), lookaside_workloads::WorkloadError>(())
//! ```

mod at_once;
mod checksum;
mod chunked;
mod follow;
pub mod kernel;
mod kernels;
mod mapping;
mod memory;
mod observer;
mod patterns;
mod rmat;
mod shuffle;
mod stream;
mod tlb_thrash;
mod workload;
mod zipf;

pub use chunked::Chunks;
pub use follow::{Followed, Follower, Next, Touched, LOOK};
pub use kernels::{names, workload, Kind as WorkloadKind, ALL as WORKLOADS};
pub use mapping::Pages;
pub use memory::{Region, Section};
pub use patterns::{Gups, PointerChase, Strided, UniformPages, ZipfPages};
pub use stream::{Pattern, Stream, BASE, PAGE_BYTES};
pub use tlb_thrash::TlbThrash;
pub use workload::{Spec, Workload, WorkloadError, WorkloadStream, LEAST_BYTES, MOST_BYTES};
pub use zipf::Zipf;
