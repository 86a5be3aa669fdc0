//! Hash join: an outer table's keys looked up in a hash table of the inner table's rows, chained where they meet (the
//! program that PT-Baker and Mitosis run; the join without partitions of Blanas et al. 2011).

use std::io;

use lookaside_stats::SplitMix64;
use lookaside_timing::FlowRegister;

use crate::checksum::fold;
use crate::memory::{Array, WorkloadMemory};
use crate::observer::{AccessObserver, Plain};
use crate::workload::{Kernel, WorkloadSpec};

/// Outer rows a step.
const STEP: u64 = 64;
/// Inner rows for each outer row.
const INNER_PER_OUTER: u64 = 4;

/// The outer row's key.
const KEY: FlowRegister = FlowRegister::new(1);
/// The chain's next row.
const NEXT: FlowRegister = FlowRegister::new(2);

/// A row of the inner table, in the chain of its bucket.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct BuildRow {
    key: u64,
    payload: u64,
    /// The chain's next row, counted from 1; 0 = none.
    next: u64,
    /// Half a line a row, so that none lies across two.
    room: u64,
}

// SAFETY: numbers.
unsafe impl Plain for BuildRow {}

/// The join. Building the hash table is part of the input, looking up of the main task.
pub(super) struct HashJoin {
    room: WorkloadMemory,
    /// First row of each bucket's chain, counted from 1; 0 = none. A power of two of them.
    buckets: Array<u64>,
    rows: Array<BuildRow>,
    outer: Array<u64>,
    /// Outer rows looked up so far, over all rounds, and how many are to be.
    done: u64,
    lookups: u64,
    matches: u64,
    sum: u64,
}

impl HashJoin {
    /// At least one inner row a bucket, 2.24 at most. Keys of both tables are drawn evenly from as many as there are
    /// inner rows: on average an outer row matches one inner row.
    pub(super) fn new(spec: &WorkloadSpec) -> io::Result<Self> {
        let (row, word) = (size_of::<BuildRow>() as u64, size_of::<u64>() as u64);
        // At one row a bucket: what a bucket, its row and its share of an outer row take.
        let buckets = 1u64 << (spec.bytes / (word + row + word / INNER_PER_OUTER)).ilog2();
        let inner = (spec.bytes - buckets * word) / (row + word / INNER_PER_OUTER);
        let mut room = WorkloadMemory::new(spec.pages);
        let mut join = Self {
            buckets: room.array("buckets", buckets, false)?,
            rows: room.array("rows", inner, true)?,
            outer: room.array("outer", inner / INNER_PER_OUTER, false)?,
            room,
            done: 0,
            lookups: (inner / INNER_PER_OUTER).saturating_mul(spec.rounds),
            matches: 0,
            sum: 0,
        };
        let mut random = SplitMix64::new(spec.seed);
        for i in 0..inner as usize {
            let (key, payload) = (random.below(inner), random.next_u64());
            let bucket = bucket(key, buckets) as usize;
            join.rows.as_mut()[i] = BuildRow { key, payload, next: join.buckets[bucket], room: 0 };
            join.buckets.as_mut()[bucket] = i as u64 + 1;
        }
        join.outer.as_mut().fill_with(|| random.below(inner));
        Ok(join)
    }
}

/// The bucket of a key: the high bits of a product (Knuth 6.4, multiplicative hashing), of a power of two of buckets.
#[inline(always)]
fn bucket(key: u64, buckets: u64) -> u64 {
    // Two shifts, as one of 64 for a single bucket can't be.
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 1 >> (63 - buckets.trailing_zeros())
}

impl Kernel for HashJoin {
    const NAME: &'static str = "hashjoin";
    const OPERATION: &'static str = "lookup";

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let lengths = [self.buckets.len(), self.rows.len(), self.outer.len()];
        ["buckets", "inner_rows", "outer_rows"].into_iter().zip(lengths.map(|len| len as u64)).collect()
    }

    fn room(&self) -> &WorkloadMemory {
        &self.room
    }

    fn operations(&self) -> u64 {
        self.done
    }

    fn checksum(&self) -> u64 {
        fold(self.matches, self.sum)
    }

    #[inline]
    fn step(&mut self, observer: &mut impl AccessObserver) -> bool {
        let (outer, buckets) = (self.outer.len() as u64, self.buckets.len() as u64);
        let first = self.done % outer;
        let rows = STEP.min(outer - first).min(self.lookups - self.done);
        for i in first..first + rows {
            let key = self.outer.load(i, observer.to(KEY));
            let mut at = self.buckets.load(bucket(key, buckets), observer.by(KEY).to(NEXT));
            while at != 0 {
                let row = self.rows.load(at - 1, observer.by(NEXT).to(NEXT));
                if row.key == key {
                    self.matches += 1;
                    self.sum = self.sum.wrapping_add(row.payload);
                }
                at = row.next;
            }
        }
        self.done += rows;
        self.done < self.lookups
    }
}

#[cfg(test)]
mod tests;
