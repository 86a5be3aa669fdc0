//! Mathematical functions by tables, as a C library computes them: a value near, and a short polynomial for the rest.
//!
//! Algorithms and tables are ours, of about the sizes of glibc's; which page of the library a table lies on is assumed.

use std::f64::consts::{FRAC_PI_2, LN_2, PI};
use std::io;

use lookaside_workloads::kernel::{AccessObserver, Array};

use super::process::{ArmProcess, Function, StackFrames, LIBM};

/// Parts of 1 in the tables of sine and cosine, of the arc and of the logarithm and its inverse.
const SINE_PARTS: f64 = 128.0;
const ARC_PARTS: f64 = 256.0;
const LOG_PARTS: u64 = 128;
/// Up to a quarter of pi.
const SINES: u64 = 102;
/// Up to a half, with so many coefficients each.
const ARCS: u64 = 129;
const ARC_TERMS: u64 = 8;
/// Two parts of pi/2: the first in few enough bits that small multiples are exact.
const HALF_PI: [f64; 2] = [1.570_796_326_734_125_6, 6.077_100_506_506_192e-11];

const ACOS: Function = Function::of(&LIBM, 0x08, 3);
const COS: Function = Function::of(&LIBM, 0x14, 3);
const POW: Function = Function::of(&LIBM, 0x10, 4);

/// The library.
#[derive(Debug)]
pub(super) struct Mathematics {
    /// Sine and cosine of each part.
    sines: Array<f64>,
    /// Taylor's coefficients of the arc sine at each part.
    arcs: Array<f64>,
    /// Reciprocal and logarithm of the middle of each part of 1 to 2.
    logs: Array<f64>,
    /// 2 to the power of each part.
    powers: Array<f64>,
}

impl Mathematics {
    pub(super) fn new(process: &mut ArmProcess) -> io::Result<Self> {
        let mut all = Self {
            sines: process.of_file("sines", 2 * SINES, LIBM.at(0x3_5400))?,
            arcs: process.of_file("arcs", ARC_TERMS * ARCS, LIBM.at(0x2_c100))?,
            logs: process.of_file("logarithms", 2 * LOG_PARTS, LIBM.at(0x3_9080))?,
            powers: process.of_file("powers of two", LOG_PARTS, LIBM.at(0x3_7800))?,
        };
        for (i, pair) in (0..).zip(all.sines.as_mut().chunks_exact_mut(2)) {
            (pair[0], pair[1]) = (f64::from(i) / SINE_PARTS).sin_cos();
        }
        for (i, terms) in (0..).zip(all.arcs.as_mut().chunks_exact_mut(ARC_TERMS as usize)) {
            let at = f64::from(i) / ARC_PARTS;
            (terms[0], terms[1]) = (at.asin(), 1.0 / (1.0 - at * at).sqrt());
            // (1 - x²) y'' = x y', by powers of the distance.
            for n in 0..ARC_TERMS as usize - 2 {
                let k = n as f64;
                let sum = at * (k + 1.0) * (2.0 * k + 1.0) * terms[n + 1] + k * k * terms[n];
                terms[n + 2] = sum / ((1.0 - at * at) * (k + 2.0) * (k + 1.0));
            }
        }
        for (i, pair) in (0..).zip(all.logs.as_mut().chunks_exact_mut(2)) {
            let middle = 1.0 + (f64::from(i) + 0.5) / LOG_PARTS as f64;
            (pair[0], pair[1]) = (1.0 / middle, middle.ln());
        }
        for (i, power) in (0..).zip(all.powers.as_mut()) {
            *power = (f64::from(i) / LOG_PARTS as f64).exp2();
        }
        Ok(all)
    }

    /// Of a number from -1 to 1.
    pub(super) fn acos(
        &self,
        x: f64,
        (frames, depth): (&mut StackFrames, u64),
        observer: &mut impl AccessObserver,
    ) -> f64 {
        frames.enter(ACOS, depth, 81, observer);
        // Beyond a half, the arc of the half angle.
        let arc = if x.abs() <= 0.5 {
            FRAC_PI_2 - self.asin(x, observer)
        } else {
            let half = 2.0 * self.asin(((1.0 - x.abs()) / 2.0).sqrt(), observer);
            if x > 0.0 {
                half
            } else {
                PI - half
            }
        };
        frames.leave(ACOS, depth, observer);
        arc
    }

    /// Of a number from -1/2 to 1/2.
    fn asin(&self, x: f64, observer: &mut impl AccessObserver) -> f64 {
        let part = (x.abs() * ARC_PARTS).round();
        let rest = x.abs() - part / ARC_PARTS;
        let terms = self.arcs.load_span(ARC_TERMS * part as u64, ARC_TERMS, 1, observer);
        terms.iter().rev().fold(0.0, |sum, term| sum * rest + term).copysign(x)
    }

    /// Of an angle that is not large: below some hundred.
    pub(super) fn cos(
        &self,
        x: f64,
        (frames, depth): (&mut StackFrames, u64),
        observer: &mut impl AccessObserver,
    ) -> f64 {
        frames.enter(COS, depth, 111, observer);
        let quarter = (x / FRAC_PI_2).round();
        let rest = (x - quarter * HALF_PI[0]) - quarter * HALF_PI[1];
        let part = (rest.abs() * SINE_PARTS).round();
        let h = rest.abs() - part / SINE_PARTS;
        let (part, hh) = (part as u64, h * h);
        let [sine, cosine] = [0, 1].map(|of| self.sines.load(2 * part + of, observer));
        let sine_of_rest = h * (1.0 - hh / 6.0 * (1.0 - hh / 20.0));
        let cosine_less_1 = -hh / 2.0 * (1.0 - hh / 12.0 * (1.0 - hh / 30.0));
        let value = if (quarter as i64).rem_euclid(2) == 0 {
            cosine + (cosine * cosine_less_1 - sine * sine_of_rest)
        } else {
            (sine + (sine * cosine_less_1 + cosine * sine_of_rest)).copysign(rest)
        };
        frames.leave(COS, depth, observer);
        // Cosine, less sine, less cosine, sine.
        match (quarter as i64).rem_euclid(4) {
            0 | 3 => value,
            _ => -value,
        }
    }

    /// A positive number to a power, both neither great nor small.
    pub(super) fn pow(
        &self,
        x: f64,
        y: f64,
        (frames, depth): (&mut StackFrames, u64),
        observer: &mut impl AccessObserver,
    ) -> f64 {
        frames.enter(POW, depth, 160, observer);
        const BITS: u32 = f64::MANTISSA_DIGITS - 1;
        let bits = x.to_bits();
        let exponent = (bits >> BITS) as i64 - 1023;
        let mantissa = f64::from_bits(bits & ((1 << BITS) - 1) | 1023 << BITS);
        let part = bits >> (BITS - LOG_PARTS.ilog2()) & (LOG_PARTS - 1);
        let [reciprocal, log] = [0, 1].map(|of| self.logs.load(2 * part + of, observer));
        let r = mantissa.mul_add(reciprocal, -1.0);
        // ln(1 + r).
        let rest = (2..8).rev().fold(0.0, |sum, n| (1.0 / f64::from(n) - sum) * r);
        let product = y * (exponent as f64 * LN_2 + (log + (r - r * rest)));

        let parts = (product / LN_2 * LOG_PARTS as f64).round();
        let r = product - parts * (LN_2 / LOG_PARTS as f64);
        let power = self.powers.load((parts as i64).rem_euclid(LOG_PARTS as i64) as u64, observer);
        // e^r - 1.
        let rest = (1..6).rev().fold(0.0, |sum, n| (1.0 + sum) * r / f64::from(n));
        let value = (power + power * rest) * 2f64.powi((parts as i64).div_euclid(LOG_PARTS as i64) as i32);
        frames.leave(POW, depth, observer);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lookaside_workloads::kernel::Unseen;
    use lookaside_workloads::Pages;
    use proptest::prelude::*;

    fn all() -> (Mathematics, StackFrames) {
        let mut process = ArmProcess::new("a", Pages::Base);
        (Mathematics::new(&mut process).expect("memory"), process.frames(1).expect("memory"))
    }

    #[test]
    fn ends_and_middles_are_met() {
        let (math, mut frames) = all();
        for x in [-1.0, -0.5, 0.0, 0.5, 1.0] {
            assert!((math.acos(x, (&mut frames, 0), &mut Unseen) - f64::acos(x)).abs() < 1e-15, "{x}");
        }
        for i in -40..40 {
            let x = f64::from(i) * PI / 8.0;
            assert!((math.cos(x, (&mut frames, 0), &mut Unseen) - x.cos()).abs() < 1e-15, "{i}");
        }
    }

    proptest! {
        #[test]
        fn functions_are_those_of_rust(x in -1.0f64..1.0, angle in -100.0f64..100.0, base in 1e-9f64..1e9, y in -2.0f64..2.0) {
            let (math, mut frames) = all();
            let acos = math.acos(x, (&mut frames, 0), &mut Unseen);
            prop_assert!((acos - x.acos()).abs() < 1e-15, "acos {x}: {acos}");
            let cos = math.cos(angle, (&mut frames, 0), &mut Unseen);
            prop_assert!((cos - angle.cos()).abs() < 1e-14, "cos {angle}: {cos}");
            let pow = math.pow(base, y, (&mut frames, 0), &mut Unseen);
            prop_assert!((pow / base.powf(y) - 1.0).abs() < 1e-13, "{base} to {y}: {pow}");
        }
    }
}
