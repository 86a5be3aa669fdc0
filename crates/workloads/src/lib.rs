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

mod patterns;
mod random;
mod stream;
mod tlb_thrash;
mod zipf;

pub use patterns::{Gups, PointerChase, Strided, UniformPages, ZipfPages};
pub use random::Random;
pub use stream::{Pattern, Stream, BASE, PAGE_BYTES};
pub use tlb_thrash::{NativeRun, TlbThrash};
pub use zipf::Zipf;
