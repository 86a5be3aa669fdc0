//! What a workload is written with: arrays whose accesses can be seen, and the trait that makes of one algorithm a
//! native run and a stream.

pub use crate::checksum::fold;
pub use crate::chunked::Chunked;
pub use crate::memory::{Array, WorkloadMemory};
pub use crate::observer::{AccessObserver, Plain, Unseen};
pub use crate::workload::Kernel;
pub use lookaside_timing::FlowRegister;
