//! A finite impulse response filter: each output is a weighted sum of the last inputs.

use std::io;

use lookaside_stats::SplitMix64;
use lookaside_workloads::kernel::{fold, AccessObserver, Chunked, Kernel, Unseen, WorkloadMemory};
use lookaside_workloads::WorkloadSpec;

use super::sizes::{elements, pages};

/// Taps, a page of them at most; Mälardalen's fir has 35.
const TAPS: u64 = 32;
/// Bits behind the point of a coefficient.
const POINT: u32 = 15;
/// Outputs a step: a few hundred accesses.
const STEP: u64 = 8;

/// The filter. Input and output have as many pages; there is an output for each input that has all taps before it.
pub(super) struct Fir {
    room: WorkloadMemory,
    coefficients: Chunked<i32>,
    input: Chunked<i32>,
    output: Chunked<i32>,
    at: u64,
    rounds_left: u64,
    done: u64,
    sum: u64,
}

impl Fir {
    pub(super) fn new(mut room: WorkloadMemory, spec: &WorkloadSpec) -> io::Result<Self> {
        let len = elements::<i32>((pages(spec) - 1) / 2);
        let mut fir = Self {
            coefficients: room.chunked("coefficients", TAPS, false)?,
            input: room.chunked("input", len, true)?,
            output: room.chunked("output", len, false)?,
            room,
            at: TAPS - 1,
            rounds_left: spec.rounds,
            done: 0,
            sum: 0,
        };
        let mut random = SplitMix64::new(spec.seed);
        // 16-bit numbers on both sides: no sum of 32 products leaves 64 bits.
        fir.coefficients.fill_with(|| (random.next_u64() as i16 >> 4).into(), &mut Unseen);
        fir.input.fill_with(|| (random.next_u64() as i16).into(), &mut Unseen);
        Ok(fir)
    }
}

impl Kernel for Fir {
    const NAME: &'static str = "fir";
    const OPERATION: &'static str = "output";

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("taps", TAPS), ("inputs", self.input.len() as u64)]
    }

    fn room(&self) -> &WorkloadMemory {
        &self.room
    }

    fn operations(&self) -> u64 {
        self.done
    }

    fn checksum(&self) -> u64 {
        self.sum
    }

    #[inline]
    fn step(&mut self, observer: &mut impl AccessObserver) -> bool {
        if self.rounds_left == 0 {
            return false;
        }
        let len = self.input.len() as u64;
        let to = (self.at + STEP).min(len);
        for i in self.at..to {
            let mut sum = 0i64;
            for tap in 0..TAPS {
                let coefficient = self.coefficients.load(tap, observer);
                sum += i64::from(coefficient) * i64::from(self.input.load(i - tap, observer));
            }
            let value = (sum >> POINT) as i32;
            self.output.store(i, value, observer);
            self.sum = fold(self.sum, value as u64);
        }
        self.done += to - self.at;
        self.at = to;
        if to == len {
            self.at = TAPS - 1;
            self.rounds_left -= 1;
        }
        self.rounds_left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lookaside_workloads::Pages;

    /// An impulse brings the coefficients out, and a sum of inputs the sum of their outputs.
    #[test]
    fn it_is_the_convolution() {
        let run = |change: &dyn Fn(&mut Chunked<i32>)| {
            let mut fir = Fir::new(WorkloadMemory::new(Pages::Base), &WorkloadSpec::new(5 * 4096)).expect("memory");
            assert_eq!((fir.input.len(), fir.output.len()), (2048, 2048));
            change(&mut fir.input);
            while fir.step(&mut Unseen) {}
            assert_eq!(fir.done, 2048 - 31);
            (fir.coefficients.to_vec(), fir.input.to_vec(), fir.output.to_vec())
        };
        let (coefficients, _, out) = run(&|input| {
            input.fill_with(|| 0, &mut Unseen);
            input.set(100, 1 << POINT, &mut Unseen);
        });
        assert_eq!(out[100..132], coefficients);
        assert!(out[..100].iter().chain(&out[132..]).all(|value| *value == 0));
        let (_, input, out) = run(&|_| {});
        for (i, found) in out.iter().enumerate().skip(31) {
            let sum: i64 = (0..32).map(|tap| i64::from(coefficients[tap] * input[i - tap])).sum();
            assert_eq!(i64::from(*found), sum.div_euclid(1 << POINT));
        }
    }
}
