//! Who makes accesses, and who walks: process, hardware thread, address space.

use std::sync::Arc;

use crate::plan::EnginePlan;
use crate::routing::Routing;

/// Index of the kernel's space.
pub(crate) const KERNEL: usize = 0;

/// Who makes a run of accesses: what stays the same for all of them.
#[derive(Debug)]
pub(crate) struct AccessContext {
    pub(crate) space: usize,
    pub(crate) process: u32,
    pub(crate) id: u64,
    pub(crate) hw: usize,
    pub(crate) thread: usize,
    pub(crate) plan: Arc<EnginePlan>,
    pub(crate) routing: Arc<Routing>,
}

/// Who walks, and for which page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkRequest<'a> {
    pub(crate) routing: &'a Routing,
    pub(crate) side: usize,
    /// The tables' space: number for `os.rs`, id in keys.
    pub(crate) space: u64,
    pub(crate) id: u64,
    /// Id of the running process's space, and the hardware thread: what TLB entries may be held under.
    pub(crate) run_id: u64,
    pub(crate) hw: usize,
    pub(crate) va: u64,
    pub(crate) class: usize,
}
