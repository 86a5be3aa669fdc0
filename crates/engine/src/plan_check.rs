//! Checks the parts of a setup beside the machine: huge page, frames, walk model, locks.

use lookaside_machine::PageSize;

use crate::plan::{LockedEntry, TlbPlan, WalkPlan};
use crate::{FrameLayout, Setup, SetupError, WalkModel};

fn error(at: impl Into<String>, reason: impl Into<String>) -> SetupError {
    SetupError::Setup { at: at.into(), reason: reason.into() }
}

/// The huge page that the OS model uses.
pub(crate) fn huge_page(setup: &Setup) -> Result<PageSize, SetupError> {
    let sizes = setup.machine.page_table.format.page_sizes();
    match setup.os.huge_page {
        Some(size) if size > sizes[0] && sizes.contains(&size) => Ok(size),
        Some(size) => {
            let known: Vec<String> = sizes[1..].iter().map(ToString::to_string).collect();
            Err(error("os.huge_page", format!("{size} is no huge page of this format; it has {}", known.join(", "))))
        }
        // Every format has a leaf of 1 MiB or more.
        None => Ok(sizes.iter().copied().find(|size| *size >= PageSize::M1).unwrap_or(sizes[0])),
    }
}

/// Most pages of a run: 1 GiB of 4 KiB pages.
const MAX_RUN_PAGES: u64 = 1 << 18;

/// Are the frames laid out in a way that can be?
pub(crate) fn frames(frames: FrameLayout) -> Result<(), SetupError> {
    match frames {
        FrameLayout::Fragmented { run_pages } if !run_pages.is_power_of_two() || run_pages > MAX_RUN_PAGES => {
            Err(error(
                "os.frames.run_pages",
                format!("{run_pages} is not possible; a power of two from 1 to {MAX_RUN_PAGES}"),
            ))
        }
        _ => Ok(()),
    }
}

/// What a walk does.
pub(crate) fn walk_plan(setup: &Setup) -> Result<WalkPlan, SetupError> {
    let caches = &setup.machine.caches;
    match &setup.walks {
        WalkModel::Full => Ok(WalkPlan::Full),
        WalkModel::CountOnly => Ok(WalkPlan::CountOnly),
        WalkModel::AlwaysAt(name) => match caches.iter().position(|cache| cache.name == *name) {
            Some(number) => Ok(WalkPlan::AlwaysAt(number)),
            None => {
                let names: Vec<&str> = caches.iter().map(|cache| cache.name.as_str()).collect();
                let reason = format!("no cache is named {name:?}; the machine has: {}", names.join(", "));
                Err(error("walks", reason))
            }
        },
    }
}

/// Puts the locked pages to their arrays.
pub(crate) fn locks(setup: &Setup, tlbs: &mut [TlbPlan]) -> Result<(), SetupError> {
    let format = setup.machine.page_table.format;
    for (i, lock) in setup.locks.iter().enumerate() {
        let at = format!("locks[{i}]");
        let Some(number) = setup.machine.tlbs.iter().position(|tlb| tlb.name == lock.tlb) else {
            return Err(error(at, format!("no TLB is named {:?}", lock.tlb)));
        };
        let most = setup.machine.tlbs[number].lockable_entries;
        if tlbs[number].locks.len() >= most as usize {
            return Err(error(at, format!("TLB {:?} has {most} lockable entries, which are taken already", lock.tlb)));
        }
        tlbs[number].locks.push(LockedEntry {
            process: lock.process,
            global: crate::os::is_global(format, lock.addr),
            va: crate::os::translated(format, lock.addr),
        });
    }
    Ok(())
}
