//! A stream: a thread on another CPU that reads memory in a row, as fast as it can, for what a loaded memory costs
//! here.

use lookaside_machine::PageSize;

use crate::metal::{Metal, MetalError, NeighbourWalk};

/// Bytes that it goes through, again and again: more than most last-level caches hold.
const BYTES: u64 = 64 << 20;

/// The CPU for it: no thread of the core measured, if there is a choice. `None` = there is no other CPU.
pub(crate) fn stream_cpu(metal: &mut dyn Metal) -> Option<usize> {
    let mut cpus = metal.cpus();
    cpus.sort_by_key(|cpu| cpu.sibling == Some(true)); // stable
    cpus.first().map(|cpu| cpu.number)
}

/// Starts it there. [`Metal::neighbour`] without a walk ends it.
///
/// # Errors
/// It cannot be put there.
pub(crate) fn start_stream(metal: &mut dyn Metal, cpu: usize) -> Result<(), MetalError> {
    let pages = (BYTES / PageSize::K4.bytes()) as usize;
    metal.neighbour(Some(NeighbourWalk { cpu, pages, first: None, most_pages: pages, all_lines: true }))
}
