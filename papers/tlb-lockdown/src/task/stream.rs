//! What of a recorded program comes to the main TLB, and to the data caches beyond the first level.

use lookaside_trace::Kind;

use super::fifo::{page, section, Fifo};
use super::record::{unpacked, TaskRecording};
use super::SECTIONS;

/// Something that befalls a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Interruption {
    /// The micro TLBs are emptied: an ASID is set, or some core does a TLB maintenance operation (TRM, section 6.2.1
    /// \[recalled\]).
    Flush,
    /// The kernel runs, and touches these addresses.
    Kernel(&'static [(Kind, u64)]),
}

/// What the main TLB or the caches see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemKind {
    /// An access that missed its micro TLB.
    Missed,
    /// A line that missed the first-level data cache.
    Line,
}

/// One of these.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Item {
    /// When, in the program's own time.
    pub at_cycles: f64,
    /// Where: for a line its first byte.
    pub addr: u32,
    /// Which kind of access.
    pub kind: Kind,
    /// What it is.
    pub what: ItemKind,
}

/// The items of a program that is interrupted before these rows (ascending), which begins with empty micro TLBs of so
/// many entries (data, fetches).
pub(crate) fn stream(
    recording: &TaskRecording,
    entries: [usize; 2],
    interruptions: &[(u32, Interruption)],
) -> Vec<Item> {
    let mut micro = entries.map(Fifo::new);
    let mut items = Vec::new();
    let mut lines = recording.lines.iter().copied().peekable();
    let end = recording.rows.len() as u32;
    let mut interruptions = interruptions.iter().peekable();
    let mut row = 0;
    loop {
        while let Some((_, what)) = interruptions.next_if(|(before, _)| *before <= row) {
            interrupt(what, recording.at(row), &mut micro, &mut items);
        }
        if row >= end {
            return items;
        }
        // No interruption and no line before this row.
        let stop = [interruptions.peek().map(|next| next.0), lines.peek().map(|line| line + 1), Some(end)];
        let stop = stop.into_iter().flatten().min().unwrap_or(end).clamp(row + 1, end);
        for (row, packed) in (row..stop).zip(&recording.rows[row as usize..stop as usize]) {
            // A page is 128 lines; two bits are the kind.
            let (key, side) = ((packed >> 9) as usize, usize::from(packed % 4 == Kind::Fetch as u32));
            if !micro[side].holds(key) {
                micro[side].fill(key);
                let (kind, addr) = unpacked(*packed);
                items.push(Item { at_cycles: recording.at(row), addr: addr as u32, kind, what: ItemKind::Missed });
            }
        }
        row = stop;
        if lines.next_if(|line| line + 1 == row).is_some() {
            let (kind, addr) = unpacked(recording.rows[row as usize - 1]);
            items.push(Item { at_cycles: recording.at(row - 1), addr: addr as u32, kind, what: ItemKind::Line });
        }
    }
}

fn interrupt(what: &Interruption, at_cycles: f64, micro: &mut [Fifo; 2], items: &mut Vec<Item>) {
    match what {
        Interruption::Flush => micro.iter_mut().for_each(Fifo::flush),
        Interruption::Kernel(accesses) => {
            for &(kind, addr) in *accesses {
                let key = if SECTIONS.contains(&addr) { section(addr) } else { page(addr) };
                let side = &mut micro[usize::from(kind == Kind::Fetch)];
                if !side.holds(key) {
                    side.fill(key);
                    items.push(Item { at_cycles, addr: addr as u32, kind, what: ItemKind::Missed });
                }
                items.push(Item { at_cycles, addr: addr as u32, kind, what: ItemKind::Line });
            }
        }
    }
}
