//! IMA ADPCM: 16-bit samples to 4-bit codes and back (IMA Digital Audio Focus Group, Recommended Practices for
//! Enhancing Digital Audio Compatibility, 1992).

use std::io;

use lookaside_stats::SplitMix64;
use lookaside_workloads::kernel::{fold, AccessObserver, Chunked, Kernel, Unseen, WorkloadMemory};
use lookaside_workloads::WorkloadSpec;

use super::sizes::{elements, pages};

/// Pairs of samples a step.
const STEP: u64 = 64;

/// Step sizes, each about a tenth larger than the one before.
const STEPS: [i32; 89] = [
    7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107,
    118, 130, 143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963,
    1060, 1166, 1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894,
    6484, 7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794,
    32767,
];
/// How the index moves on after a code's magnitude.
const MOVES: [i32; 8] = [-1, -1, -1, -1, 2, 4, 6, 8];

/// What both sides know: the last sample and the index of the step.
#[derive(Clone, Copy, Debug, Default)]
struct AdpcmPredictor {
    sample: i32,
    index: i32,
}

impl AdpcmPredictor {
    /// The code of the next sample; the prediction follows it.
    #[inline(always)]
    fn encode(&mut self, sample: i16) -> u8 {
        let mut left = i32::from(sample) - self.sample;
        let sign = if left < 0 { 8 } else { 0 };
        left = left.abs();
        let mut step = STEPS[self.index as usize];
        let mut code = sign;
        for bit in [4, 2, 1] {
            if left >= step {
                code |= bit;
                left -= step;
            }
            step >>= 1;
        }
        self.decode(code);
        code
    }

    /// The sample of the next code.
    #[inline(always)]
    fn decode(&mut self, code: u8) -> i16 {
        let step = STEPS[self.index as usize];
        let mut difference = step >> 3;
        for (bit, shift) in [(4, 0), (2, 1), (1, 2)] {
            if code & bit != 0 {
                difference += step >> shift;
            }
        }
        let sample = if code & 8 != 0 { self.sample - difference } else { self.sample + difference };
        self.sample = sample.clamp(i16::MIN.into(), i16::MAX.into());
        self.index = (self.index + MOVES[usize::from(code & 7)]).clamp(0, STEPS.len() as i32 - 1);
        self.sample as i16
    }
}

/// Encoder and decoder.
pub(super) struct Adpcm {
    room: WorkloadMemory,
    samples: Chunked<i16>,
    /// Two codes each, the first in the low half.
    codes: Chunked<u8>,
    predictor: AdpcmPredictor,
    decoding: bool,
    /// The next pair.
    at: u64,
    rounds_left: u64,
    done: u64,
    sum: u64,
}

impl Adpcm {
    /// A page of codes for each four pages of samples. Samples are two triangular waves and some noise.
    pub(super) fn new(mut room: WorkloadMemory, spec: &WorkloadSpec) -> io::Result<Self> {
        let of_codes = pages(spec).div_ceil(5);
        let len = elements::<i16>(pages(spec) - of_codes);
        let mut adpcm = Self {
            samples: room.chunked("samples", len, true)?,
            codes: room.chunked("codes", len / 2, false)?,
            room,
            predictor: AdpcmPredictor::default(),
            decoding: false,
            at: 0,
            rounds_left: spec.rounds,
            done: 0,
            sum: 0,
        };
        let mut random = SplitMix64::new(spec.seed);
        let wave = |i: i32, period: i32, height: i32| (2 * (i % period) - period).abs() * height / period;
        for i in 0..len as i32 {
            let noise = random.below(512) as i32;
            let sample = (wave(i, 180, 12_000) + wave(i, 47, 6_000) + noise - 9_000) as i16;
            adpcm.samples.set(i as u64, sample, &mut Unseen);
        }
        Ok(adpcm)
    }

    #[inline(always)]
    fn encode_pair(&mut self, pair: u64, observer: &mut impl AccessObserver) {
        let low = self.predictor.encode(self.samples.load(2 * pair, observer));
        let high = self.predictor.encode(self.samples.load(2 * pair + 1, observer));
        self.codes.store(pair, low | high << 4, observer);
        self.sum = fold(self.sum, (low | high << 4).into());
    }

    #[inline(always)]
    fn decode_pair(&mut self, pair: u64, observer: &mut impl AccessObserver) {
        let codes = self.codes.load(pair, observer);
        for (i, code) in [(2 * pair, codes & 15), (2 * pair + 1, codes >> 4)] {
            let sample = self.predictor.decode(code);
            self.samples.store(i, sample, observer);
            self.sum = fold(self.sum, sample as u64);
        }
    }
}

impl Kernel for Adpcm {
    const NAME: &'static str = "adpcm";
    const OPERATION: &'static str = "sample encoded or decoded";

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("samples", self.samples.len() as u64)]
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
        let pairs = self.codes.len() as u64;
        let to = (self.at + STEP).min(pairs);
        for pair in self.at..to {
            if self.decoding {
                self.decode_pair(pair, observer);
            } else {
                self.encode_pair(pair, observer);
            }
        }
        self.done += 2 * (to - self.at);
        self.at = to;
        if to == pairs {
            self.rounds_left -= u64::from(self.decoding);
            (self.at, self.decoding, self.predictor) = (0, !self.decoding, AdpcmPredictor::default());
        }
        self.rounds_left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lookaside_workloads::Pages;

    /// The magnitude of a code, by what each of the eight comes to: the greatest that is not beyond the difference.
    fn naive_code(sample: i16, predictor: AdpcmPredictor) -> u8 {
        let difference = i32::from(sample) - predictor.sample;
        let step = STEPS[predictor.index as usize];
        let worth = |m: i32| (m >> 2 & 1) * step + (m >> 1 & 1) * (step >> 1) + (m & 1) * (step >> 2);
        let magnitude = (0..8).rev().find(|&m| worth(m) <= difference.abs()).expect("0 is worth nothing");
        (if difference < 0 { 8 } else { 0 }) | magnitude as u8
    }

    #[test]
    fn codes_and_samples_are_the_naive_ones() {
        let mut adpcm = Adpcm::new(WorkloadMemory::new(Pages::Base), &WorkloadSpec::new(3 * 4096)).expect("memory");
        assert_eq!((adpcm.samples.len(), adpcm.codes.len()), (4096, 2048));
        let samples = adpcm.samples.to_vec();
        let mut predictor = AdpcmPredictor::default();
        let mut expected = Vec::new();
        for sample in &samples {
            let code = naive_code(*sample, predictor);
            // The standard's formula for what a code is worth.
            let step = STEPS[predictor.index as usize];
            let magnitude = i32::from(code & 7);
            let worth = (step >> 3)
                + (magnitude >> 2 & 1) * step
                + (magnitude >> 1 & 1) * (step >> 1)
                + (magnitude & 1) * (step >> 2);
            predictor.sample = (predictor.sample + if code & 8 == 0 { worth } else { -worth }).clamp(-32_768, 32_767);
            predictor.index = (predictor.index + [-1, -1, -1, -1, 2, 4, 6, 8][usize::from(code & 7)]).clamp(0, 88);
            expected.push((code, predictor.sample as i16));
        }
        while adpcm.step(&mut Unseen) {}
        let codes = adpcm.codes.to_vec().into_iter().flat_map(|codes| [codes & 15, codes >> 4]);
        let found: Vec<(u8, i16)> = codes.zip(adpcm.samples.to_vec()).collect();
        assert_eq!(found, expected);
        assert_eq!(adpcm.done, 2 * 4096);
        // It is a codec: what comes out is near what went in.
        let near = |(a, b): &(&i16, &i16)| i32::from(**a).abs_diff(i32::from(**b)) < 2000;
        assert!(samples.iter().zip(&adpcm.samples.to_vec()).skip(50).filter(near).count() > 3900);
    }

    #[test]
    fn the_index_and_samples_stay_in_range() {
        let mut random = SplitMix64::new(1);
        let mut predictor = AdpcmPredictor::default();
        for _ in 0..10_000 {
            let sample = if random.below(2) == 0 { i16::MAX } else { i16::MIN };
            predictor.encode(sample);
            assert!((0..89).contains(&predictor.index) && (-32_768..=32_767).contains(&predictor.sample));
        }
    }
}
