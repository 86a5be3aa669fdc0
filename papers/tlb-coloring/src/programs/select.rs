//! The nth largest of an array, by quickselect (Hoare 1961, FIND).

use std::io;

use lookaside_stats::SplitMix64;
use lookaside_workloads::kernel::{fold, AccessObserver, Chunked, Kernel, Unseen, WorkloadMemory};
use lookaside_workloads::WorkloadSpec;

use super::sizes::{elements, pages};

/// Finds a random rank, counted from the largest, which is 0. A step is one partition.
pub(super) struct NthLargest {
    room: WorkloadMemory,
    numbers: Chunked<u32>,
    random: SplitMix64,
    rank: u64,
    /// Where the number of this rank is: first and last place.
    first: u64,
    last: u64,
    rounds_left: u64,
    partitioned: u64,
    sum: u64,
}

impl NthLargest {
    pub(super) fn new(mut room: WorkloadMemory, spec: &WorkloadSpec) -> io::Result<Self> {
        let numbers = room.chunked("numbers", elements::<u32>(pages(spec)), true)?;
        let mut select = Self {
            room,
            numbers,
            random: SplitMix64::new(spec.seed),
            rank: 0,
            first: 0,
            last: 0,
            rounds_left: spec.rounds,
            partitioned: 0,
            sum: 0,
        };
        select.refill(&mut Unseen);
        Ok(select)
    }

    fn refill(&mut self, observer: &mut impl AccessObserver) {
        let random = &mut self.random;
        self.numbers.fill_with(|| random.next_u64() as u32, observer);
        let len = self.numbers.len() as u64;
        (self.rank, self.first, self.last) = (random.below(len), 0, len - 1);
    }

    /// Greater numbers to the front, by the last one (Lomuto's scheme): the place where that one comes to stand.
    #[inline(always)]
    fn partition(&mut self, observer: &mut impl AccessObserver) -> u64 {
        let numbers = &mut self.numbers;
        let pivot = numbers.load(self.last, observer);
        let mut place = self.first;
        for i in self.first..self.last {
            let number = numbers.load(i, observer);
            if number > pivot {
                let other = numbers.load(place, observer);
                numbers.store(place, number, observer);
                numbers.store(i, other, observer);
                place += 1;
            }
        }
        let other = numbers.load(place, observer);
        numbers.store(place, pivot, observer);
        numbers.store(self.last, other, observer);
        place
    }
}

impl Kernel for NthLargest {
    const NAME: &'static str = "nth-largest";
    const OPERATION: &'static str = "number partitioned";

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("numbers", self.numbers.len() as u64)]
    }

    fn room(&self) -> &WorkloadMemory {
        &self.room
    }

    fn operations(&self) -> u64 {
        self.partitioned
    }

    fn checksum(&self) -> u64 {
        self.sum
    }

    #[inline]
    fn step(&mut self, observer: &mut impl AccessObserver) -> bool {
        if self.rounds_left == 0 {
            return false;
        }
        let place = self.partition(observer);
        self.partitioned += self.last - self.first + 1;
        if place > self.rank {
            self.last = place - 1;
            return true;
        }
        if place < self.rank {
            self.first = place + 1;
            return true;
        }
        let found = self.numbers.get(place, observer);
        self.sum = fold(fold(self.sum, self.rank), found.into());
        self.rounds_left -= 1;
        if self.rounds_left > 0 {
            self.refill(observer);
        }
        self.rounds_left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lookaside_workloads::Pages;

    #[test]
    fn it_is_the_sorted_arrays_number() {
        for seed in 0..20 {
            let mut select =
                NthLargest::new(WorkloadMemory::new(Pages::Base), &WorkloadSpec { seed, ..WorkloadSpec::new(4096) })
                    .expect("memory");
            // Many that are equal, too.
            if seed % 2 == 1 {
                let mut numbers = select.numbers.to_vec().into_iter();
                select.numbers.fill_with(|| numbers.next().expect("as many") % 7, &mut Unseen);
            }
            let mut sorted = select.numbers.to_vec();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            while select.step(&mut Unseen) {}
            assert_eq!(select.sum, fold(fold(0, select.rank), sorted[select.rank as usize].into()));
            let mut left = select.numbers.to_vec();
            left.sort_unstable_by(|a, b| b.cmp(a));
            assert_eq!(left, sorted, "nothing is lost");
        }
    }
}
