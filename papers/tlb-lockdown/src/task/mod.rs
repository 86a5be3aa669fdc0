//! A real-time task with locked pages beside other programs, on one core or several: the experiment of Song, Park, Kim
//! (2022), section V, in the model, fast enough for hundreds of runs.
//!
//! A run of the whole model goes through every access of every program. But what the micro TLBs do depends on no seed
//! and no lock: where each side has one fully associative FIFO array, hits change nothing there. So a program is
//! recorded once ([`record`]), what of it comes to the main TLB is worked out from that ([`stream`]), and only this,
//! with the lines that its first-level data caches had not in the recording, goes through the engine ([`cores`]).
//!
//! Exact: lookups and walks in the main TLB, and the order of its victims. Not exact: data caches see the lines that
//! missed when the program was recorded, alone and with one seed, so that a walk may be served a level nearer or
//! farther than in a whole run.

pub(crate) mod cores;
mod fifo;
mod record;
mod stream;
#[cfg(test)]
mod tests;

use lookaside_machine::{Machine, PageSize, Replacement, Serves, Tlb, Ways};

pub(crate) use record::{record, TaskRecording};
pub(crate) use stream::{stream, Interruption, Item, ItemKind};

use lookaside_techniques::plan::PlanError;

/// What the kernel maps by sections of 1 MiB: all but the page of its vectors (Linux on ARM).
pub(crate) const SECTIONS: std::ops::Range<u64> = 0xc000_0000..0xffe0_0000;

/// Entries of a machine's micro TLBs: data, fetches.
///
/// # Errors
/// The first level is not one fully associative FIFO array each for data and fetches, of which a hit changes nothing.
pub(crate) fn micro_entries(machine: &Machine) -> Result<[usize; 2], PlanError> {
    let first = |kinds: &[Serves]| {
        let of_side = |tlb: &&Tlb| tlb.level == 1 && tlb.serves.iter().any(|kind| kinds.contains(kind));
        let all: Vec<&Tlb> = machine.tlbs.iter().filter(of_side).collect();
        match all[..] {
            [tlb]
                if tlb.serves.len() == kinds.len()
                    && matches!(tlb.ways, Ways::Full(_))
                    && tlb.replacement == Replacement::Fifo
                    && [PageSize::K4, PageSize::M1].iter().all(|size| tlb.page_sizes.contains(size)) =>
            {
                Ok(tlb.entries as usize)
            }
            _ => Err(PlanError::Impossible(format!(
                "{}: the first TLB level is not one fully associative FIFO array a side, for pages of 4K and 1M",
                machine.name
            ))),
        }
    };
    Ok([first(&[Serves::Load, Serves::Store])?, first(&[Serves::Fetch])?])
}
