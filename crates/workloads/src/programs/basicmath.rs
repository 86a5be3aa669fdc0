//! Mathematics that processors may have no instruction for: real roots of cubics, integer square roots, angles.

use std::f64::consts::PI;
use std::io;

use lookaside_trace::Event;

use super::process::{Frames, Function, Process};
use super::stdio::Output;
use super::{Input, ProgramSpec};
use crate::memory::{Array, Observer, Room};
use crate::random::Random;
use crate::workload::Kernel;

/// Decimals printed, and their factor.
const DECIMALS: u32 = 6;
const MICRO: f64 = 1e6;

const MAIN: Function = Function::new(0x00, 9);
const CUBIC: Function = Function::new(0x01, 4);
const SQUARE_ROOT: Function = Function::new(0x01, 2);
const ACOS: Function = Function::new(0x08, 3);
const COS: Function = Function::new(0x0a, 3);
const CUBE_ROOT: Function = Function::new(0x0d, 2);

/// Values from `first` on, `step` apart.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: f64,
    step: f64,
    count: u64,
}

impl Range {
    fn at(&self, i: u64) -> f64 {
        self.first + i as f64 * self.step
    }
}

const fn range(first: f64, step: f64, count: u64) -> Range {
    Range { first, step, count }
}

/// What a round goes through: the ranges of the coefficients, of the numbers whose roots are taken, and of both kinds of angles.
struct Ranges {
    cubics: [Range; 4],
    squares: Range,
    degrees: Range,
    radians: Range,
}

const SMALL: Ranges = Ranges {
    cubics: [range(1.0, 1.0, 9), range(10.0, -1.0, 10), range(5.0, 0.5, 20), range(-1.0, -1.0, 10)],
    squares: range(0.0, 1.0, 1001),
    degrees: range(0.0, 1.0, 361),
    radians: range(0.0, PI / 180.0, 361),
};
const LARGE: Ranges = Ranges {
    cubics: [range(1.0, 1.0, 9), range(10.0, -0.25, 40), range(5.0, 0.61, 17), range(-1.0, -0.451, 23)],
    squares: range(0.0, 2.0, 50_000),
    degrees: range(0.0, 0.001, 360_001),
    radians: range(0.0, PI / 5760.0, 11_521),
};

/// The part of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Cubics,
    SquareRoots,
    Radians,
    Degrees,
}

/// The program.
pub(super) struct BasicMath {
    process: Process,
    /// Of the cubic at hand.
    roots: Array<f64>,
    frames: Frames,
    output: Output,
    ranges: Ranges,
    part: Part,
    at: u64,
    rounds_left: u64,
    done: u64,
}

impl BasicMath {
    /// The seed moves the beginnings of the coefficients' ranges, by less than 0.01.
    pub(super) fn new(spec: &ProgramSpec) -> io::Result<Self> {
        let mut process = Process::new("basicmath", spec.pages);
        let mut math = Self {
            roots: process.local("roots", 3)?,
            output: Output::new(&mut process)?,
            frames: process.frames(3)?,
            process,
            ranges: match spec.input {
                Input::Small => SMALL,
                Input::Large => LARGE,
            },
            part: Part::Cubics,
            at: 0,
            rounds_left: spec.rounds,
            done: 0,
        };
        let mut random = Random::new(spec.seed);
        for range in &mut math.ranges.cubics {
            range.first += random.unit() / 100.0;
        }
        Ok(math)
    }

    /// The coefficients of a cubic, the last one changing first.
    fn coefficients(&self, mut number: u64) -> [f64; 4] {
        let mut all = [0.0; 4];
        for (coefficient, range) in all.iter_mut().zip(&self.ranges.cubics).rev() {
            *coefficient = range.at(number % range.count);
            number /= range.count;
        }
        all
    }

    /// Solves and prints one cubic.
    fn cubic(&mut self, number: u64, observer: &mut impl Observer) {
        MAIN.execute(16, observer);
        let count = self.solve(self.coefficients(number), observer);
        for root in 0..count {
            let value = self.roots.load(root, observer);
            self.print(value, observer);
        }
        self.output.put(b'\n', observer);
    }

    /// The real roots, into `roots`: by a cosine where there are three, by a cube root where there is one (Viète; Cardano).
    fn solve(&mut self, [a, b, c, d]: [f64; 4], observer: &mut impl Observer) -> u64 {
        self.frames.enter(CUBIC, 0, 120, observer);
        let (b, c, d) = (b / a, c / a, d / a);
        // x = t - b/3 gives t³ - 3qt + 2r = 0.
        let q = (b * b - 3.0 * c) / 9.0;
        let r = (2.0 * b * b * b - 9.0 * b * c + 27.0 * d) / 54.0;
        let discriminant = r * r - q * q * q;
        let count = if discriminant <= 0.0 {
            let angle = self.function(ACOS, 81, observer, || (r / (q * q * q).sqrt()).clamp(-1.0, 1.0).acos());
            CUBIC.execute(40, observer);
            for k in 0..3 {
                let part = (angle + 2.0 * PI * k as f64) / 3.0;
                let cosine = self.function(COS, 111, observer, || part.cos());
                self.roots.store(k, -2.0 * q.sqrt() * cosine - b / 3.0, observer);
            }
            3
        } else {
            let t = self.function(CUBE_ROOT, 161, observer, || (r.abs() + discriminant.sqrt()).cbrt());
            self.roots.store(0, -(t + q / t).copysign(r) - b / 3.0, observer);
            1
        };
        self.frames.leave(CUBIC, 0, observer);
        count
    }

    /// A call of the mathematical library.
    #[inline(always)]
    fn function(
        &mut self,
        function: Function,
        instructions: u64,
        observer: &mut impl Observer,
        value: impl Fn() -> f64,
    ) -> f64 {
        self.frames.enter(function, 1, instructions, observer);
        let value = value();
        self.frames.leave(function, 1, observer);
        value
    }

    fn square_root(&mut self, number: u64, observer: &mut impl Observer) {
        MAIN.execute(8, observer);
        self.frames.enter(SQUARE_ROOT, 0, 253, observer);
        let root = square_root(number as u32);
        self.frames.leave(SQUARE_ROOT, 0, observer);
        self.output.number(number as i64, 0, b' ', observer);
        self.output.number(root.into(), 0, b'\n', observer);
    }

    /// An angle, and what it is times `factor`.
    fn angle(&mut self, angle: f64, factor: f64, observer: &mut impl Observer) {
        MAIN.execute(10, observer);
        self.print(angle, observer);
        self.print(angle * factor, observer);
        self.output.put(b'\n', observer);
    }

    fn print(&mut self, value: f64, observer: &mut impl Observer) {
        self.output.number((value * MICRO).round() as i64, DECIMALS, b' ', observer);
    }
}

/// The greatest integer whose square is not greater: two bits of the number give one of the root.
fn square_root(number: u32) -> u32 {
    let (mut rest, mut root) = (0u64, 0u64);
    for place in (0..u32::BITS / 2).rev() {
        rest = rest << 2 | u64::from(number >> (2 * place) & 3);
        root <<= 1;
        let trial = 2 * root + 1;
        if rest >= trial {
            rest -= trial;
            root += 1;
        }
    }
    root as u32
}

impl Kernel for BasicMath {
    const NAME: &'static str = "basicmath";
    const OPERATION: &'static str = "equation, root or angle";
    const FETCHES: bool = true;

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let cubics = self.ranges.cubics.iter().map(|range| range.count).product();
        let angles = self.ranges.degrees.count + self.ranges.radians.count;
        vec![("cubics", cubics), ("square roots", self.ranges.squares.count), ("angles", angles)]
    }

    fn room(&self) -> &Room {
        self.process.room()
    }

    fn mappings(&self) -> Vec<Event> {
        self.process.map()
    }

    fn operations(&self) -> u64 {
        self.done
    }

    fn checksum(&self) -> u64 {
        self.output.checksum()
    }

    fn step(&mut self, observer: &mut impl Observer) -> bool {
        if self.rounds_left == 0 {
            return false;
        }
        let count = match self.part {
            Part::Cubics => {
                self.cubic(self.at, observer);
                self.ranges.cubics.iter().map(|range| range.count).product()
            }
            Part::SquareRoots => {
                self.square_root(self.ranges.squares.at(self.at) as u64, observer);
                self.ranges.squares.count
            }
            Part::Radians => {
                self.angle(self.ranges.degrees.at(self.at), PI / 180.0, observer);
                self.ranges.degrees.count
            }
            Part::Degrees => {
                self.angle(self.ranges.radians.at(self.at), 180.0 / PI, observer);
                self.ranges.radians.count
            }
        };
        self.done += 1;
        self.at += 1;
        if self.at == count {
            self.at = 0;
            self.part = match self.part {
                Part::Cubics => Part::SquareRoots,
                Part::SquareRoots => Part::Radians,
                Part::Radians => Part::Degrees,
                Part::Degrees => Part::Cubics,
            };
            if self.part == Part::Cubics {
                self.output.flush(observer);
                self.rounds_left -= 1;
            }
        }
        self.rounds_left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Unseen;
    use proptest::prelude::*;

    fn math() -> BasicMath {
        BasicMath::new(&ProgramSpec::new(Input::Small, 1)).expect("memory")
    }

    /// Roots are put into the polynomial, and changes of its sign are counted.
    #[test]
    fn roots_are_roots_and_none_is_left_out() {
        let mut math = math();
        let mut by_count = [0; 4];
        for number in (0..18_000).step_by(7) {
            let coefficients @ [a, b, c, d] = math.coefficients(number);
            let value = |x: f64| ((a * x + b) * x + c) * x + d;
            let count = math.solve(coefficients, &mut Unseen);
            for &x in &math.roots[..count as usize] {
                let scale = (a * x * x * x).abs() + (b * x * x).abs() + (c * x).abs() + d.abs();
                assert!(value(x).abs() < 1e-9 * scale, "{coefficients:?}: {x} gives {}", value(x));
            }
            // No root is beyond 1 + the largest quotient (Cauchy); two are not nearer than the step but for double ones.
            let bound = 1.0 + [b, c, d].into_iter().fold(0.0, |most: f64, x| most.max((x / a).abs()));
            let signs = (0..=20_000).map(|i| value(-bound + f64::from(i) * bound / 10_000.0) > 0.0);
            let signs: Vec<bool> = signs.collect();
            assert_eq!(signs.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64, count, "{coefficients:?}");
            by_count[count as usize] += 1;
        }
        assert!(by_count[1] > 100 && by_count[3] > 100 && by_count[0] + by_count[2] == 0, "{by_count:?}");
    }

    #[test]
    fn what_is_printed_is_what_was_computed() {
        let mut math = math();
        while math.step(&mut Unseen) {}
        assert_eq!(math.done, 18_000 + 1001 + 2 * 361);
        let text = String::from_utf8(math.output.text.clone()).expect("ASCII");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len() as u64, math.done);
        assert_eq!(lines[18_000..18_004], ["0 0", "1 1", "2 1", "3 1"]);
        assert_eq!(lines[19_000], "1000 31");
        assert_eq!([lines[19_001], lines[19_181]], ["0.000000 0.000000 ", "180.000000 3.141593 "]);
        assert_eq!([lines[19_362], lines[19_722]], ["0.000000 0.000000 ", "6.283185 360.000000 "]);
        for (number, line) in lines[..18_000].iter().enumerate().step_by(500) {
            let count = math.solve(math.coefficients(number as u64), &mut Unseen);
            let expected: String = math.roots[..count as usize].iter().map(|root| format!("{root:.6} ")).collect();
            assert_eq!(*line, expected);
        }
    }

    proptest! {
        #[test]
        fn a_square_root_is_the_greatest_that_does(number: u32) {
            let root = u64::from(square_root(number));
            prop_assert!(root * root <= number.into() && (root + 1) * (root + 1) > number.into());
        }
    }
}
