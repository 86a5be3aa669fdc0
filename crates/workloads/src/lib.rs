//! Kernels that the papers run, native and as access streams, and small synthetic streams for tests and benches.
//!
//! A stream is a [`PatternStream`] over a [`Pattern`]: a [`lookaside_trace::Source`] that is the same to the bit for
//! the
//! same parameters and seed. Each begins with the `Map` event of the memory it walks over.
//!
//! ```
//! use lookaside_trace::{Block, Source};
//! use lookaside_workloads::{PatternStream, UniformPages};
//!
//! let mut source = PatternStream::new(UniformPages::new(1024, 1), 100_000);
//! let (mut block, mut accesses) = (Block::default(), 0);
//! while source.next_block(&mut block)? {
//!     accesses += block.accesses();
//! }
//! assert_eq!(accesses, 100_000);
//! # Ok::<(), lookaside_trace::TraceError>(())
//! ```
//!
//! The papers' programs are [`workload`]s: each is one algorithm that runs natively, on arrays in mappings of their
//! own, or as a [`WorkloadStream`] of the same accesses. [`kernel`] is what a workload of one's own is written with.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! let mut gups = lookaside_workloads::workload("gups", &lookaside_workloads::WorkloadSpec::new(1 << 20))?;
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
pub use kernels::{names, workload, BuildableWorkload, ALL as WORKLOADS};
pub use mapping::Pages;
pub use memory::{ArrayMemory, ArraySection};
pub use observer::FlowBlock;
pub use patterns::{Gups, PointerChase, Strided, UniformPages, ZipfPages};
pub use stream::{Pattern, PatternStream, BASE, PAGE_BYTES};
pub use tlb_thrash::TlbThrash;
pub use workload::{Workload, WorkloadError, WorkloadSpec, WorkloadStream, LEAST_BYTES, MOST_BYTES};
pub use zipf::Zipf;
