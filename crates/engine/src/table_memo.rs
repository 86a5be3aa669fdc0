//! Remembers where page tables lie, and which guest tables were ever read.

use lookaside_machine::{Stage, TableLevel};

use crate::counts::EngineCounts;
use crate::fasthash::{spread, FastSet};
use crate::os::{table_prefix, PhysicalMemory};

/// Remembers where tables lie, and which guest tables were ever read.
#[derive(Debug)]
pub(crate) struct TableMemo {
    /// Key and base of the table seen last in each slot; none before the first.
    memo: Vec<(TableKey, u64)>,
    read: FastSet<TableKey>,
}

/// Space, level and stage, prefix.
type TableKey = (u64, u32, u64);

/// Tables remembered: enough for 16 GiB of leaf tables, in 256 KiB.
const MEMO_LEN: usize = 1 << 13;

impl TableMemo {
    pub(crate) fn new() -> Self {
        Self { memo: Vec::new(), read: FastSet::default() }
    }

    /// Address of the entry for `va` at a level.
    #[inline]
    pub(crate) fn entry(
        &mut self,
        memory: &PhysicalMemory,
        space: u64,
        level: &TableLevel,
        va: u64,
        stage: Stage,
        counts: &mut EngineCounts,
    ) -> u64 {
        let key = (space, level.level << 1 | stage as u32, table_prefix(level, va));
        let hash = spread(key.0 ^ u64::from(key.1) << 56 ^ key.2.rotate_left(20));
        if self.memo.is_empty() {
            self.memo = vec![((u64::MAX, 0, 0), 0); MEMO_LEN];
        }
        let memo = &mut self.memo[(hash >> (64 - MEMO_LEN.trailing_zeros())) as usize];
        if memo.0 != key {
            *memo = (key, memory.table_base(space, level, va));
            if stage == Stage::Guest && self.read.insert(key) {
                counts.table_bytes += u64::from(level.entry_bytes) << level.index_bits;
            }
        }
        let index = va >> level.index_low_bit & ((1 << level.index_bits) - 1);
        memo.1 + index * u64::from(level.entry_bytes)
    }
}
