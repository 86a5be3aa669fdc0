//! The fast Fourier transform of Cooley and Tukey (1965): radix 2, decimation in time, in place.

use std::f64::consts::{FRAC_1_SQRT_2, PI};
use std::io;

use lookaside_stats::SplitMix64;
use lookaside_workloads::kernel::{fold, AccessObserver, Chunked, Kernel, Unseen, WorkloadMemory};
use lookaside_workloads::WorkloadSpec;

use super::sizes::{elements, pages};

/// Butterflies (or places in the permutation) a step.
const STEP: u64 = 32;

/// A transform of 2^n complex numbers. Each butterfly is divided by √2, so that any number of rounds neither grows nor
/// shrinks the numbers.
pub(super) struct Fft {
    room: WorkloadMemory,
    re: Chunked<f64>,
    im: Chunked<f64>,
    /// Sines of the first half of the circle.
    sines: Chunked<f64>,
    log2_len: u32,
    /// 0: numbers change places; from 1: butterflies over blocks of 2^stage.
    stage: u32,
    at: u64,
    rounds_left: u64,
    done: u64,
}

impl Fft {
    /// The largest power of two whose numbers and half as many sines fit into the pages.
    pub(super) fn new(mut room: WorkloadMemory, spec: &WorkloadSpec) -> io::Result<Self> {
        let page = elements::<f64>(1);
        let fits = |len: &u64| 2 * len.div_ceil(page) + (len / 2).div_ceil(page) <= pages(spec);
        // The least size has a page for each array.
        let len = (0..63).map(|bit| page << bit).take_while(fits).last().unwrap_or(page);
        let mut fft = Self {
            re: room.chunked("re", len, true)?,
            im: room.chunked("im", len, false)?,
            sines: room.chunked("sines", len / 2, false)?,
            room,
            log2_len: len.trailing_zeros(),
            stage: 0,
            at: 0,
            rounds_left: spec.rounds,
            done: 0,
        };
        let mut random = SplitMix64::new(spec.seed);
        fft.re.fill_with(|| random.unit() - 0.5, &mut Unseen);
        fft.im.fill_with(|| random.unit() - 0.5, &mut Unseen);
        for k in 0..len / 2 {
            fft.sines.set(k, (2.0 * PI * k as f64 / len as f64).sin(), &mut Unseen);
        }
        Ok(fft)
    }

    /// e^(-2πi k / len), k below half of the numbers: cosines are sines a quarter further.
    #[inline(always)]
    fn twiddle(&self, k: u64, observer: &mut impl AccessObserver) -> (f64, f64) {
        let quarter = self.re.len() as u64 / 4;
        let sine = self.sines.load(k, observer);
        let cosine = match k.checked_sub(quarter) {
            None => self.sines.load(k + quarter, observer),
            Some(k) => -self.sines.load(k, observer),
        };
        (cosine, -sine)
    }

    #[inline(always)]
    fn swap(&mut self, i: u64, j: u64, observer: &mut impl AccessObserver) {
        for array in [&mut self.re, &mut self.im] {
            let (a, b) = (array.load(i, observer), array.load(j, observer));
            array.store(i, b, observer);
            array.store(j, a, observer);
        }
    }

    #[inline(always)]
    fn butterfly(&mut self, number: u64, observer: &mut impl AccessObserver) {
        let half = 1u64 << (self.stage - 1);
        let (block, within) = (number / half, number % half);
        let (i, j) = (block * 2 * half + within, block * 2 * half + within + half);
        let (cosine, sine) = self.twiddle(within << (self.log2_len - self.stage), observer);
        let (re, im) = (self.re.load(j, observer), self.im.load(j, observer));
        let (re, im) = (re * cosine - im * sine, re * sine + im * cosine);
        let (a, b) = (self.re.load(i, observer), self.im.load(i, observer));
        self.re.store(i, (a + re) * FRAC_1_SQRT_2, observer);
        self.im.store(i, (b + im) * FRAC_1_SQRT_2, observer);
        self.re.store(j, (a - re) * FRAC_1_SQRT_2, observer);
        self.im.store(j, (b - im) * FRAC_1_SQRT_2, observer);
    }
}

impl Kernel for Fft {
    const NAME: &'static str = "fft";
    const OPERATION: &'static str = "butterfly";

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("numbers", self.re.len() as u64)]
    }

    fn room(&self) -> &WorkloadMemory {
        &self.room
    }

    fn operations(&self) -> u64 {
        self.done
    }

    fn checksum(&self) -> u64 {
        let both = [&self.re, &self.im];
        both.iter().fold(0, |sum, array| array.values(&mut Unseen).fold(sum, |sum, value| fold(sum, value.to_bits())))
    }

    #[inline]
    fn step(&mut self, observer: &mut impl AccessObserver) -> bool {
        if self.rounds_left == 0 {
            return false;
        }
        let len = self.re.len() as u64;
        let end = if self.stage == 0 { len } else { len / 2 };
        let to = (self.at + STEP).min(end);
        for i in self.at..to {
            if self.stage == 0 {
                let j = i.reverse_bits() >> (u64::BITS - self.log2_len);
                if i < j {
                    self.swap(i, j, observer);
                }
            } else {
                self.butterfly(i, observer);
                self.done += 1;
            }
        }
        self.at = to;
        if to == end {
            (self.at, self.stage) = (0, self.stage + 1);
        }
        if self.stage > self.log2_len {
            self.stage = 0;
            self.rounds_left -= 1;
        }
        self.rounds_left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lookaside_workloads::Pages;

    /// By the definition.
    #[test]
    fn it_is_the_discrete_transform() {
        for (bytes, len) in [(3 * 4096, 512), (4 * 4096, 512), (10 * 4096, 2048)] {
            let mut fft = Fft::new(WorkloadMemory::new(Pages::Base), &WorkloadSpec::new(bytes)).expect("memory");
            assert_eq!((fft.re.len(), fft.im.len(), fft.sines.len()), (len, len, len / 2));
            let (re, im) = (fft.re.to_vec(), fft.im.to_vec());
            while fft.step(&mut Unseen) {}
            assert_eq!(fft.done, (len / 2) as u64 * u64::from(len.ilog2()));
            let found = [fft.re.to_vec(), fft.im.to_vec()];
            // Every 37th of the result: of odd and even numbers.
            for k in (0..len).step_by(37) {
                let (mut a, mut b) = (0.0, 0.0);
                for n in 0..len {
                    let angle = -2.0 * PI * ((k * n) % len) as f64 / len as f64;
                    a += re[n] * angle.cos() - im[n] * angle.sin();
                    b += re[n] * angle.sin() + im[n] * angle.cos();
                }
                let root = (len as f64).sqrt();
                let near = (found[0][k] - a / root).abs() < 1e-9 && (found[1][k] - b / root).abs() < 1e-9;
                assert!(near, "{k}: {} {} and {} {}", found[0][k], found[1][k], a / root, b / root);
            }
        }
    }

    #[test]
    fn four_rounds_give_back_the_numbers() {
        let mut fft =
            Fft::new(WorkloadMemory::new(Pages::Base), &WorkloadSpec { rounds: 4, ..WorkloadSpec::new(3 * 4096) })
                .expect("memory");
        let (re, im) = (fft.re.to_vec(), fft.im.to_vec());
        while fft.step(&mut Unseen) {}
        let near = |x: &[f64], y: &[f64]| x.iter().zip(y).all(|(x, y)| (x - y).abs() < 1e-12);
        assert!(near(&re, &fft.re.to_vec()) && near(&im, &fft.im.to_vec()));
    }
}
