//! Bubble sort and insertion sort of 32-bit numbers, ascending.

use std::io;

use lookaside_stats::SplitMix64;
use lookaside_workloads::kernel::{fold, AccessObserver, Chunked, Kernel, Unseen, WorkloadMemory};
use lookaside_workloads::WorkloadSpec;

use super::sizes::{elements, pages};

/// Comparisons a step of bubble sort.
const STEP: u64 = 128;

/// The array of a sort, and what was sorted so far.
struct Sorting {
    room: WorkloadMemory,
    numbers: Chunked<u32>,
    random: SplitMix64,
    rounds_left: u64,
    sum: u64,
}

impl Sorting {
    fn new(mut room: WorkloadMemory, spec: &WorkloadSpec) -> io::Result<Self> {
        let numbers = room.chunked("numbers", elements::<u32>(pages(spec)), true)?;
        let mut sorting = Self { room, numbers, random: SplitMix64::new(spec.seed), rounds_left: spec.rounds, sum: 0 };
        sorting.refill(&mut Unseen);
        Ok(sorting)
    }

    fn refill(&mut self, observer: &mut impl AccessObserver) {
        let random = &mut self.random;
        self.numbers.fill_with(|| random.next_u64() as u32, observer);
    }

    fn len(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// An array is sorted: the next, if there is one.
    fn next_round(&mut self, observer: &mut impl AccessObserver) -> bool {
        self.sum = self.numbers.values(observer).fold(self.sum, |sum, number| fold(sum, number.into()));
        self.rounds_left -= 1;
        if self.rounds_left > 0 {
            self.refill(observer);
        }
        self.rounds_left > 0
    }
}

/// Neighbours change places where the left one is greater, pass after pass, until a pass finds none.
pub(super) struct BubbleSort {
    all: Sorting,
    /// The first neighbour of the next comparison; numbers from `end` on are in their place.
    at: u64,
    end: u64,
    swapped: bool,
    compared: u64,
}

impl BubbleSort {
    pub(super) fn new(room: WorkloadMemory, spec: &WorkloadSpec) -> io::Result<Self> {
        let all = Sorting::new(room, spec)?;
        Ok(Self { at: 0, end: all.len(), swapped: false, compared: 0, all })
    }
}

impl Kernel for BubbleSort {
    const NAME: &'static str = "bubble-sort";
    const OPERATION: &'static str = "comparison";

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("numbers", self.all.len())]
    }

    fn room(&self) -> &WorkloadMemory {
        &self.all.room
    }

    fn operations(&self) -> u64 {
        self.compared
    }

    fn checksum(&self) -> u64 {
        self.all.sum
    }

    #[inline]
    fn step(&mut self, observer: &mut impl AccessObserver) -> bool {
        if self.all.rounds_left == 0 {
            return false;
        }
        let numbers = &mut self.all.numbers;
        let to = (self.at + STEP).min(self.end - 1);
        for i in self.at..to {
            let (left, right) = (numbers.load(i, observer), numbers.load(i + 1, observer));
            if left > right {
                numbers.store(i, right, observer);
                numbers.store(i + 1, left, observer);
                self.swapped = true;
            }
        }
        self.compared += to - self.at;
        self.at = to;
        if self.at + 1 < self.end {
            return true;
        }
        // A pass is over.
        let sorted = !self.swapped;
        (self.at, self.end, self.swapped) = (0, self.end - 1, false);
        if sorted || self.end < 2 {
            self.end = self.all.len();
            return self.all.next_round(observer);
        }
        true
    }
}

/// Each number goes down into the sorted ones before it.
pub(super) struct InsertionSort {
    all: Sorting,
    /// The next number to insert.
    at: u64,
    inserted: u64,
}

impl InsertionSort {
    pub(super) fn new(room: WorkloadMemory, spec: &WorkloadSpec) -> io::Result<Self> {
        Ok(Self { all: Sorting::new(room, spec)?, at: 0, inserted: 0 })
    }
}

impl Kernel for InsertionSort {
    const NAME: &'static str = "insertion-sort";
    const OPERATION: &'static str = "insertion";

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("numbers", self.all.len())]
    }

    fn room(&self) -> &WorkloadMemory {
        &self.all.room
    }

    fn operations(&self) -> u64 {
        self.inserted
    }

    fn checksum(&self) -> u64 {
        self.all.sum
    }

    #[inline]
    fn step(&mut self, observer: &mut impl AccessObserver) -> bool {
        if self.all.rounds_left == 0 {
            return false;
        }
        let numbers = &mut self.all.numbers;
        let number = numbers.load(self.at, observer);
        let mut place = self.at;
        while place > 0 {
            let before = numbers.load(place - 1, observer);
            if before <= number {
                break;
            }
            numbers.store(place, before, observer);
            place -= 1;
        }
        numbers.store(place, number, observer);
        self.at += 1;
        self.inserted += 1;
        if self.at == self.all.len() {
            self.at = 0;
            return self.all.next_round(observer);
        }
        true
    }
}
