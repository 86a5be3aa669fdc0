//! How often an interval executes each block, and which of them tells how fast the program goes.

use std::ops::Range;

/// A landmark that comes so many instructions apart, some hundreds of microseconds, is best: to count it costs the
/// program little, and it comes often enough.
const BEST_DISTANCE: f64 = 1e6;
/// Nearer to each other, their exceptions take as long as the program does.
const LEAST_DISTANCE: f64 = 5e4;
/// It comes so often in an interval at least: between the first time and the last, the distance is known.
const LEAST_TIMES: u64 = 2;

/// An instruction that a program comes to again and again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Landmark {
    pub(super) address: u64,
    /// Instructions from one time to the next, on average.
    pub(super) distance: f64,
}

/// How often an interval has executed each block so far.
#[derive(Debug, Default)]
pub(super) struct BlockTimes {
    /// By the block's number.
    blocks: Vec<BlockUse>,
    instructions: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct BlockUse {
    times: u64,
    /// Instructions of the interval before the first and before the last time.
    first: u64,
    last: u64,
}

impl BlockTimes {
    /// The interval has executed this block.
    pub(super) fn executed(&mut self, number: usize, instructions: u32) {
        if self.blocks.len() <= number {
            self.blocks.resize(number + 1, BlockUse::default());
        }
        let block = &mut self.blocks[number];
        if block.times == 0 {
            block.first = self.instructions;
        }
        block.times += 1;
        block.last = self.instructions;
        self.instructions += u64::from(instructions);
    }

    /// The best landmark. `code`: the addresses of a block's code.
    pub(super) fn landmark(&self, code: &dyn Fn(usize) -> Option<Range<u64>>) -> Option<Landmark> {
        let half = self.instructions / 2;
        let used = || self.blocks.iter().enumerate().filter(|(_, block)| block.times > 0);
        // Both halves have it: it is none of a phase that is over.
        let lasts = |block: &BlockUse| block.first <= half && block.last >= half;
        let mut candidates: Vec<(usize, f64)> = used()
            .filter(|(_, block)| block.times >= LEAST_TIMES && lasts(block))
            .map(|(number, block)| (number, (block.last - block.first) as f64 / (block.times - 1) as f64))
            .filter(|&(_, distance)| distance >= LEAST_DISTANCE)
            .collect();
        let from_best = |distance: f64| (distance / BEST_DISTANCE).ln().abs();
        candidates.sort_by(|(_, a), (_, b)| from_best(*a).total_cmp(&from_best(*b)));
        // What is in two blocks is executed more often than either.
        let is_alone = |number: usize, address: u64| {
            !used().any(|(other, _)| other != number && code(other).is_some_and(|code| code.contains(&address)))
        };
        candidates.into_iter().find_map(|(number, distance)| {
            let address = code(number)?.start;
            is_alone(number, address).then_some(Landmark { address, distance })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred bytes each, one behind the other.
    fn code(number: usize) -> Option<Range<u64>> {
        let start = number as u64 * 100;
        Some(start..start + 100)
    }

    #[test]
    fn a_landmark_is_rare_and_comes_all_the_time() {
        let mut times = BlockTimes::default();
        times.executed(0, 10);
        for round in 0..10_000 {
            times.executed(1, 1_000);
            if round % 500 == 50 {
                times.executed(2, 10);
            }
            // As rare as is best, but its phase is over.
            if round < 4_000 && round % 1_000 == 0 {
                times.executed(3, 10);
            }
            if round % 100 == 0 {
                times.executed(4, 10);
            }
        }
        let landmark = times.landmark(&code).expect("block 2");
        // Five times block 4, too.
        assert!(landmark.address == 200 && (500_060.0..500_063.0).contains(&landmark.distance), "{landmark:?}");
        // The program comes to block 2 in the midst of block 1 too, or of none.
        let overlapping = |number| if number == 1 { Some(100..250) } else { code(number) };
        assert_eq!(times.landmark(&overlapping).map(|landmark| landmark.address), Some(400));
        assert_eq!(times.landmark(&|_| None), None);
        assert_eq!(BlockTimes::default().landmark(&code), None);
    }
}
