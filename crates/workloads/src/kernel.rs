//! What a workload is written with: arrays whose accesses can be seen, and the trait that makes of one algorithm a native
//! run and a stream.

pub use crate::chunked::Chunked;
pub use crate::kernels::fold;
pub use crate::memory::{Array, Observer, Plain, Room, Unseen};
pub use crate::workload::Kernel;
