//! What a model's first TLB level had not of a block: all that models see of it that have this level in common.

use lookaside_trace::{Block, Event};

use crate::batch::Batch;
use crate::stages::StageOrder;

/// Of the block that was run last.
#[derive(Clone, Debug, Default)]
pub(crate) struct PassedRows {
    /// Accesses that the first level had not, or for which there is none.
    rows: Vec<u32>,
    /// Of the stretches between events, in order: were any accesses made?
    pub(crate) stretches: Vec<bool>,
}

impl PassedRows {
    /// Nothing yet.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.stretches.clear();
    }

    /// Adds those of a batch that has asked the TLBs.
    pub(crate) fn add(&mut self, batch: &Batch, order: &StageOrder) {
        for item in 0..batch.len {
            let first = order.first[usize::from(batch.route[item])];
            if batch.next[item] != first || first == order.end() {
                self.rows.push(batch.first_of(item) as u32);
            }
        }
    }

    /// The block of them, with the events that change what later levels hold; of its stretches, in which any accesses were
    /// made.
    pub(crate) fn of(&self, block: &Block, passed: &mut Block) -> Vec<bool> {
        passed.clear();
        (passed.process, passed.thread) = (block.process, block.thread);
        for &row in &self.rows {
            passed.push(block.kind[row as usize], block.addr[row as usize]);
        }
        let mut stretches = Vec::new();
        let (mut is_any, mut reached) = (false, 0);
        let mut all = self.stretches.iter();
        for (position, event) in &block.events {
            is_any |= all.next().is_some_and(|&any| any);
            // Where positions descend, events come no earlier than those before them.
            reached = reached.max(*position);
            if changes_later_levels(event) {
                let before = self.rows.partition_point(|&row| row < reached);
                passed.events.push((before as u32, event.clone()));
                stretches.push(std::mem::take(&mut is_any));
            }
        }
        stretches.push(all.any(|&any| any) || is_any);
        stretches
    }
}

/// Others only count, or say whose something is.
fn changes_later_levels(event: &Event) -> bool {
    !matches!(
        event,
        Event::Site { .. }
            | Event::Marker { .. }
            | Event::Totals { .. }
            | Event::Waits { .. }
            | Event::ThreadStart { .. }
            | Event::ThreadExit { .. }
            | Event::Repeats { .. }
            | Event::Alloc { .. }
            | Event::Free { .. }
    )
}
