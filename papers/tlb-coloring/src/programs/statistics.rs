//! Means, variances and correlation of two arrays: one walk over an array after the other, the last over both at once.

use std::io;

use lookaside_stats::SplitMix64;
use lookaside_workloads::kernel::{fold, AccessObserver, Chunked, Kernel, Unseen, WorkloadMemory};
use lookaside_workloads::WorkloadSpec;

use super::sizes::{elements, pages};

/// Elements a step.
const STEP: u64 = 128;
/// Walks of a round: sum of `a`, its squares around the mean, the same of `b`, the products around both means.
const WALKS: usize = 5;

/// The figures of two arrays.
pub(super) struct Statistics {
    room: WorkloadMemory,
    a: Chunked<f64>,
    b: Chunked<f64>,
    walk: usize,
    at: u64,
    /// What each walk of the round has summed up.
    sums: [f64; WALKS],
    rounds_left: u64,
    done: u64,
    sum: u64,
}

impl Statistics {
    /// Two arrays of half of the pages each; half of what is in `b` is `a`'s.
    pub(super) fn new(mut room: WorkloadMemory, spec: &WorkloadSpec) -> io::Result<Self> {
        let len = elements::<f64>(pages(spec) / 2);
        let (a, b) = (room.chunked("a", len, true)?, room.chunked("b", len, false)?);
        let mut statistics =
            Self { room, a, b, walk: 0, at: 0, sums: [0.0; WALKS], rounds_left: spec.rounds, done: 0, sum: 0 };
        let mut random = SplitMix64::new(spec.seed);
        for i in 0..len {
            let a = random.unit();
            statistics.a.set(i, a, &mut Unseen);
            statistics.b.set(i, a + random.unit(), &mut Unseen);
        }
        Ok(statistics)
    }

    /// Mean of `a`, variance of `a`, mean of `b`, variance of `b`, correlation, of a round that is over.
    fn figures(&self) -> [f64; WALKS] {
        let len = self.a.len() as f64;
        let [a, aa, b, bb, ab] = self.sums;
        [a / len, aa / len, b / len, bb / len, ab / (aa * bb).sqrt()]
    }
}

impl Kernel for Statistics {
    const NAME: &'static str = "statistics";
    const OPERATION: &'static str = "element of a walk";

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("elements", self.a.len() as u64)]
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
        if (self.walk, self.at) == (0, 0) {
            self.sums = [0.0; WALKS];
        }
        let len = self.a.len() as u64;
        let (mean_a, mean_b) = (self.sums[0] / len as f64, self.sums[2] / len as f64);
        let to = (self.at + STEP).min(len);
        let (a, b) = (&self.a, &self.b);
        let mut sum = self.sums[self.walk];
        let square = |x: f64| x * x;
        for i in self.at..to {
            sum += match self.walk {
                0 => a.load(i, observer),
                1 => square(a.load(i, observer) - mean_a),
                2 => b.load(i, observer),
                3 => square(b.load(i, observer) - mean_b),
                _ => (a.load(i, observer) - mean_a) * (b.load(i, observer) - mean_b),
            };
        }
        self.sums[self.walk] = sum;
        self.done += to - self.at;
        self.at = to;
        if to < len {
            return true;
        }
        (self.at, self.walk) = (0, self.walk + 1);
        if self.walk < WALKS {
            return true;
        }
        self.sum = self.figures().iter().fold(self.sum, |sum, figure| fold(sum, figure.to_bits()));
        self.walk = 0;
        self.rounds_left -= 1;
        self.rounds_left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lookaside_workloads::Pages;

    /// By the textbook's other formulas: sums of squares and products, not around means.
    #[test]
    fn figures_are_those_of_the_other_formulas() {
        for (seed, pages) in [(1, 2), (2, 7), (3, 16)] {
            let mut statistics = Statistics::new(
                WorkloadMemory::new(Pages::Base),
                &WorkloadSpec { seed, ..WorkloadSpec::new(pages * 4096) },
            )
            .expect("memory");
            let (a, b) = (statistics.a.to_vec(), statistics.b.to_vec());
            assert_eq!(a.len() as u64, pages / 2 * 512);
            let len = a.len() as f64;
            let mean = |values: &[f64]| values.iter().sum::<f64>() / len;
            let product =
                |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>() / len - mean(x) * mean(y);
            let (va, vb) = (product(&a, &a), product(&b, &b));
            let expected = [mean(&a), va, mean(&b), vb, product(&a, &b) / (va.sqrt() * vb.sqrt())];
            while statistics.step(&mut Unseen) {}
            let figures = statistics.figures();
            assert!(figures.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-9), "{figures:?} {expected:?}");
            assert!((0.6..0.8).contains(&figures[4]), "half of b is a: {}", figures[4]);
        }
    }
}
