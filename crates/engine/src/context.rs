//! One access as its steps see it: the access, the process and hardware thread that make it, the walk that it needs.

use std::sync::Arc;

use lookaside_trace::Block;

use crate::plan::EnginePlan;
use crate::routing::Routing;

/// Index of the kernel's space.
pub(crate) const KERNEL: usize = 0;

/// Who makes a run of accesses: what stays the same for all of them.
pub(crate) struct AccessContext {
    pub(crate) space: usize,
    pub(crate) process: u32,
    pub(crate) id: u64,
    pub(crate) hw: usize,
    pub(crate) thread: usize,
    pub(crate) plan: Arc<EnginePlan>,
    pub(crate) routing: Arc<Routing>,
}

/// One access.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    pub(crate) addr: u64,
    pub(crate) kind: usize,
    pub(crate) ip: u64,
    pub(crate) repeat: u64,
}

impl Access {
    /// The access at a position of a block.
    pub(crate) fn of(block: &Block, i: usize) -> Self {
        Self {
            addr: block.addr[i],
            kind: block.kind[i] as usize,
            ip: block.ip.get(i).copied().unwrap_or(0),
            repeat: u64::from(block.repeat.get(i).copied().unwrap_or(0)),
        }
    }
}

/// What one walk read and cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WalkCost {
    pub(crate) references: u64,
    pub(crate) references_memory: u64,
    pub(crate) units: u64,
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
