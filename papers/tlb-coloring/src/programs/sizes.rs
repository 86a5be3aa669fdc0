//! Sizes of the programs' arrays.

use lookaside_workloads::{WorkloadSpec, PAGE_BYTES};

/// Whole pages of a size.
pub(super) fn pages(spec: &WorkloadSpec) -> u64 {
    spec.bytes / PAGE_BYTES
}

/// Elements in so many pages.
pub(super) fn elements<T>(pages: u64) -> u64 {
    pages * PAGE_BYTES / size_of::<T>() as u64
}
