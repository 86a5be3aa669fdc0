//! Random reads, one after the other: what a walk costs is hidden by nothing.

use std::io;

use lookaside_stats::SplitMix64;
use lookaside_timing::FlowRegister;

use crate::memory::{Array, WorkloadMemory};
use crate::observer::AccessObserver;
use crate::workload::{Kernel, WorkloadSpec};

/// Reads a step.
const STEP: u64 = 256;

/// The word read last.
const WORD: FlowRegister = FlowRegister::new(1);

/// Reads of random words; the place of each is drawn from the word read before.
pub(super) struct Reads {
    room: WorkloadMemory,
    table: Array<u64>,
    state: u64,
    done: u64,
    reads: u64,
}

impl Reads {
    pub(super) fn new(spec: &WorkloadSpec) -> io::Result<Self> {
        let words = spec.bytes / 8;
        let mut room = WorkloadMemory::new(spec.pages);
        let mut table: Array<u64> = room.array("table", words, true)?;
        let mut random = SplitMix64::new(spec.seed);
        table.as_mut().fill_with(|| random.next_u64());
        Ok(Self { room, table, state: random.next_u64(), done: 0, reads: spec.rounds.saturating_mul(words / 16) })
    }
}

impl Kernel for Reads {
    const NAME: &'static str = "reads";
    const OPERATION: &'static str = "read";

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
        self.state
    }

    #[inline]
    fn step(&mut self, observer: &mut impl AccessObserver) -> bool {
        let (words, mut state) = (self.table.len() as u64, self.state);
        let reads = STEP.min(self.reads - self.done);
        for _ in 0..reads {
            // The word alone would lead into a short circle of words soon; the state has all 64 bits.
            let mut random = SplitMix64::new(state);
            let place = random.below(words);
            state = state.rotate_left(23) ^ self.table.load(place, observer.by(WORD).to(WORD));
        }
        self.state = state;
        self.done += reads;
        self.done < self.reads
    }
}

#[cfg(test)]
mod tests;
