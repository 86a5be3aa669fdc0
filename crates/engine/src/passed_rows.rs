//! What a model's first TLB level had not of a block, and pages whose sizes it decided: all that models see of it that have
//! this level in common.

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
    /// Addresses whose pages' sizes may have been decided, with the stretch. Later levels may not see the access.
    sized: Vec<(usize, u64)>,
}

/// What others do between two events.
#[derive(Clone, Debug, Default)]
pub(crate) struct PassedStretch {
    /// Accesses were made: they may switch from one process to another.
    pub(crate) is_any: bool,
    /// Addresses whose pages' sizes are decided now, if they are not.
    pub(crate) sized: Vec<u64>,
}

impl PassedRows {
    /// Nothing yet.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.stretches.clear();
        self.sized.clear();
    }

    /// The size of the page at this address may have been decided.
    pub(crate) fn add_sized(&mut self, addr: u64) {
        self.sized.push((self.stretches.len() - 1, addr));
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

    /// The block of them, with the events that change what later levels hold; and its stretches.
    pub(crate) fn of(&self, block: &Block, passed: &mut Block) -> Vec<PassedStretch> {
        passed.clear();
        (passed.process, passed.thread) = (block.process, block.thread);
        for &row in &self.rows {
            passed.push(block.kind[row as usize], block.addr[row as usize]);
        }
        let mut stretches = Vec::new();
        let (mut stretch, mut reached) = (PassedStretch::default(), 0);
        let mut sized = self.sized.iter().peekable();
        let mut add = |stretch: &mut PassedStretch, number: usize| {
            stretch.is_any |= self.stretches.get(number).is_some_and(|&any| any);
            while let Some((_, addr)) = sized.next_if(|(of, _)| *of <= number) {
                stretch.sized.push(*addr);
            }
        };
        for (number, (position, event)) in block.events.iter().enumerate() {
            add(&mut stretch, number);
            // Where positions descend, events come no earlier than those before them.
            reached = reached.max(*position);
            if changes_later_levels(event) {
                let before = self.rows.partition_point(|&row| row < reached);
                passed.events.push((before as u32, event.clone()));
                stretches.push(std::mem::take(&mut stretch));
            }
        }
        add(&mut stretch, block.events.len());
        stretches.push(stretch);
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
