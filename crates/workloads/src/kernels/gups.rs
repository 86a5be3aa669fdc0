//! GUPS: random updates of a table, in the order of HPCC's RandomAccess.

use std::io;

use crate::checksum::fold;
use crate::memory::{Array, WorkloadMemory};
use crate::observer::AccessObserver;
use crate::patterns::{hpcc_next, hpcc_start};
use crate::workload::{Kernel, WorkloadSpec};

/// Updates a step.
const STEP: u64 = 256;

/// `table[x & (words - 1)] ^= x` along HPCC's sequence. No address depends on what is read.
pub(super) struct GupsTable {
    room: WorkloadMemory,
    table: Array<u64>,
    x: u64,
    done: u64,
    updates: u64,
}

impl GupsTable {
    /// The table's words are the largest power of two that fits.
    pub(super) fn new(spec: &WorkloadSpec) -> io::Result<Self> {
        let words = 1 << (spec.bytes / 8).ilog2();
        let mut room = WorkloadMemory::new(spec.pages);
        let mut table: Array<u64> = room.array("table", words, true)?;
        for (i, word) in table.as_mut().iter_mut().enumerate() {
            *word = i as u64;
        }
        Ok(Self { room, table, x: hpcc_start(spec.seed), done: 0, updates: spec.rounds.saturating_mul(words / 16) })
    }
}

impl Kernel for GupsTable {
    const NAME: &'static str = "gups";
    const OPERATION: &'static str = "update";

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("words", self.table.len() as u64)]
    }

    fn room(&self) -> &WorkloadMemory {
        &self.room
    }

    fn operations(&self) -> u64 {
        self.done
    }

    fn checksum(&self) -> u64 {
        self.table.iter().fold(0, |sum, &word| fold(sum, word))
    }

    #[inline]
    fn step(&mut self, observer: &mut impl AccessObserver) -> bool {
        let (mask, mut x) = (self.table.len() as u64 - 1, self.x);
        let updates = STEP.min(self.updates - self.done);
        for _ in 0..updates {
            x = hpcc_next(x);
            let word = self.table.load(x & mask, observer);
            self.table.store(x & mask, word ^ x, observer);
        }
        self.x = x;
        self.done += updates;
        self.done < self.updates
    }
}

#[cfg(test)]
mod tests;
