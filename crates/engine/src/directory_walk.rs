//! A walk looks in TLB arrays for the entry of a page directory, and fills those that it read (`SEMANTICS.md` §6).

use crate::context::WalkRequest;
use crate::counts::EngineCounts;
use crate::hardware::Hardware;
use crate::plan::EnginePlan;
use crate::tags::KERNEL_ID;
use crate::tlb::{held_under, TlbKey};

/// Looks up the directory's entry in the arrays that hold such, in turn.
#[inline]
pub(crate) fn look_up_directory(
    plan: &EnginePlan,
    hardware: &mut Hardware,
    counts: &mut EngineCounts,
    request: &WalkRequest<'_>,
) -> bool {
    let directories = &plan.directories;
    if !directories.lead_to[request.class] {
        return false;
    }
    for (position, &array) in directories.arrays.iter().enumerate() {
        let key = directory_key(plan, hardware, request, array);
        let hit = hardware.tlbs[request.routing.tlbs[array]].access(&key);
        let (lookups, hits) = &mut counts.walk_caches[plan.walk_caches.len() + position][request.side];
        *lookups += 1;
        if hit {
            *hits += 1;
            return true;
        }
    }
    false
}

/// Fills the entry that was just read at this position, if it is a directory's.
#[inline]
pub(crate) fn fill_directory(
    plan: &EnginePlan,
    hardware: &mut Hardware,
    counts: &mut EngineCounts,
    request: &WalkRequest<'_>,
    position: usize,
) {
    let directories = &plan.directories;
    if position != directories.position || !directories.lead_to[request.class] {
        return;
    }
    for &array in &directories.arrays {
        let key = directory_key(plan, hardware, request, array);
        let filled = hardware.tlbs[request.routing.tlbs[array]].fill(&key, key.bit, 0);
        counts.tlbs[array].add_fill(filled);
    }
}

fn directory_key(plan: &EnginePlan, hardware: &mut Hardware, request: &WalkRequest<'_>, array: usize) -> TlbKey {
    let &WalkRequest { id, run_id, hw, va, .. } = request;
    let tlb = &plan.tlbs[array];
    let holder = tlb.holder(plan, held_under(tlb, id == KERNEL_ID, run_id), hw);
    tlb.directory_key(plan, &mut hardware.tags, holder, va)
}
