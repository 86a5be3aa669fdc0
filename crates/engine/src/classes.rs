//! The small numbers that counts and routes are indexed by: size classes of pages, kinds of access, sides of the
//! machine.

/// Size classes of guest leaves: the base page and the huge page.
pub(crate) const CLASSES: usize = 2;

/// Class of base pages.
pub(crate) const BASE: usize = 0;

/// Class of huge pages.
pub(crate) const HUGE: usize = 1;

/// Kinds of access: load, store, fetch.
pub(crate) const KINDS: usize = 3;

/// log2 of the smallest page of every format (4 KiB).
pub(crate) const BASE_SHIFT: u32 = 12;

/// Sides of the machine: data, fetch.
pub(crate) const SIDES: usize = 2;

/// Side of a kind of access.
pub(crate) const SIDE_OF: [usize; KINDS] = [0, 0, 1];
