//! The TLB levels and data caches that were found before, on which the measurements of walks rest.

use crate::report::caches::CacheReports;
use crate::tlb::geometry::Geometry;

/// What is known of the machine before.
#[derive(Clone, Copy, Debug)]
pub struct KnownLevels<'a> {
    /// First-level TLB.
    pub first: &'a Geometry,
    /// Second-level TLB.
    pub second: &'a Geometry,
    /// Data caches.
    pub caches: &'a CacheReports,
}
