//! Mathematics that processors may have no instruction for: real roots of cubics, integer square roots, angles; all
//! printed.

use std::f64::consts::PI;
use std::io;

use lookaside_stats::SplitMix64;
use lookaside_trace::Event;
use lookaside_workloads::kernel::{AccessObserver, Array, Kernel, WorkloadMemory};

use super::libm::Mathematics;
use super::loader::{Calls, Loader};
use super::printf::{Argument, Printer};
use super::process::{ArmProcess, Function, StackFrames};
use super::spec::{ProgramInput, ProgramSpec};

/// What is printed, as in MiBench's: a line an operation.
const FORMATS: [&str; 8] = [
    "Roots:",
    " %f",
    "sqrt(%3d) = %2d\n",
    "%3.0f degrees = %.12f radians\n",
    "%.12f radians = %3.0f degrees\n",
    "CUBICS\n",
    "SQUARE ROOTS\n",
    "ANGLES\n",
];
const ROOTS: usize = 0;
const ROOT: usize = 1;
const SQUARE: usize = 2;
const RADIANS: usize = 3;
const DEGREES: usize = 4;
/// The headings are the last formats: of cubics, of square roots, of both kinds of angles.
const HEADINGS: usize = 5;

/// Where the places of called functions lie.
const PRINTF_CALL: u64 = 0;
const ACOS_CALL: u64 = 1;
const COS_CALL: u64 = 2;
const POW_CALL: u64 = 3;
const BYTE_CALL: u64 = 4;

const MAIN: Function = Function::new(0x00, 9);
const CUBIC: Function = Function::new(0x00, 4);
const SQUARE_ROOT: Function = Function::new(0x00, 2);

/// Values from `first` on, `step` apart.
#[derive(Clone, Copy, Debug)]
struct ValueRange {
    first: f64,
    step: f64,
    count: u64,
}

impl ValueRange {
    fn at(&self, i: u64) -> f64 {
        self.first + i as f64 * self.step
    }
}

const fn range(first: f64, step: f64, count: u64) -> ValueRange {
    ValueRange { first, step, count }
}

/// What a round goes through: the ranges of the coefficients, of the numbers whose roots are taken, and of both kinds
/// of angles.
struct RoundRanges {
    cubics: [ValueRange; 4],
    squares: ValueRange,
    degrees: ValueRange,
    radians: ValueRange,
}

const SMALL: RoundRanges = RoundRanges {
    cubics: [range(1.0, 1.0, 9), range(10.0, -1.0, 10), range(5.0, 0.5, 20), range(-1.0, -1.0, 10)],
    squares: range(0.0, 1.0, 1001),
    degrees: range(0.0, 1.0, 361),
    radians: range(0.0, PI / 180.0, 361),
};
/// Every fifth value of the third coefficient.
const PAPER: RoundRanges =
    RoundRanges { cubics: [SMALL.cubics[0], SMALL.cubics[1], range(5.0, 2.5, 4), SMALL.cubics[3]], ..SMALL };
const LARGE: RoundRanges = RoundRanges {
    cubics: [range(1.0, 1.0, 9), range(10.0, -0.25, 40), range(5.0, 0.61, 17), range(-1.0, -0.451, 23)],
    squares: range(0.0, 2.0, 50_000),
    degrees: range(0.0, 0.001, 360_001),
    radians: range(0.0, PI / 5760.0, 11_521),
};

/// The part of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundPart {
    Start,
    Cubics,
    SquareRoots,
    Radians,
    Degrees,
}

/// The program.
pub(super) struct BasicMath {
    process: ArmProcess,
    loader: Loader,
    calls: Calls,
    math: Mathematics,
    /// Of the cubic at hand.
    roots: Array<f64>,
    frames: StackFrames,
    printer: Printer,
    ranges: RoundRanges,
    part: RoundPart,
    at: u64,
    rounds_left: u64,
    done: u64,
}

impl BasicMath {
    /// The seed moves the beginnings of the coefficients' ranges, by less than 0.01.
    pub(super) fn new(spec: &ProgramSpec) -> io::Result<Self> {
        let mut process = ArmProcess::new("basicmath", spec.pages);
        let (loader, calls) = Loader::new(&mut process)?;
        let mut math = Self {
            loader,
            calls,
            math: Mathematics::new(&mut process)?,
            roots: process.local("roots", 3)?,
            frames: process.frames(3)?,
            printer: Printer::new(&mut process, &FORMATS)?,
            process,
            ranges: match spec.input {
                ProgramInput::Small => SMALL,
                ProgramInput::Large => LARGE,
                ProgramInput::Paper => PAPER,
            },
            part: RoundPart::Start,
            at: 0,
            rounds_left: spec.rounds,
            done: 0,
        };
        let mut random = SplitMix64::new(spec.seed);
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
    fn cubic(&mut self, number: u64, observer: &mut impl AccessObserver) {
        MAIN.execute(16, observer);
        let count = self.solve(self.coefficients(number), observer);
        self.print(ROOTS, &[], observer);
        for root in 0..count {
            let value = self.roots.load(root, observer);
            self.print(ROOT, &[Argument::Real(value)], observer);
        }
        self.calls.jump(BYTE_CALL, observer);
        self.printer.output.put(b'\n', observer);
    }

    /// The real roots, into `roots`: by a cosine where there are three, by a power where there is one (Viète; Cardano).
    fn solve(&mut self, [a, b, c, d]: [f64; 4], observer: &mut impl AccessObserver) -> u64 {
        self.frames.enter(CUBIC, 0, 120, observer);
        let (b, c, d) = (b / a, c / a, d / a);
        // x = t - b/3 gives t³ - 3qt + 2r = 0.
        let q = (b * b - 3.0 * c) / 9.0;
        let r = (2.0 * b * b * b - 9.0 * b * c + 27.0 * d) / 54.0;
        let discriminant = r * r - q * q * q;
        let count = if discriminant <= 0.0 {
            let angle = {
                self.calls.jump(ACOS_CALL, observer);
                let cosine = (r / (q * q * q).sqrt()).clamp(-1.0, 1.0);
                self.math.acos(cosine, (&mut self.frames, 1), observer)
            };
            CUBIC.execute(40, observer);
            for k in 0..3 {
                let part = (angle + 2.0 * PI * k as f64) / 3.0;
                self.calls.jump(COS_CALL, observer);
                let cosine = self.math.cos(part, (&mut self.frames, 1), observer);
                self.roots.store(k, -2.0 * q.sqrt() * cosine - b / 3.0, observer);
            }
            3
        } else {
            self.calls.jump(POW_CALL, observer);
            let t = self.math.pow(r.abs() + discriminant.sqrt(), 1.0 / 3.0, (&mut self.frames, 1), observer);
            self.roots.store(0, -(t + q / t).copysign(r) - b / 3.0, observer);
            1
        };
        self.frames.leave(CUBIC, 0, observer);
        count
    }

    fn square_root(&mut self, number: u64, observer: &mut impl AccessObserver) {
        MAIN.execute(8, observer);
        self.frames.enter(SQUARE_ROOT, 0, 253, observer);
        let root = square_root(number as u32);
        self.frames.leave(SQUARE_ROOT, 0, observer);
        self.print(SQUARE, &[Argument::Number(number as i64), Argument::Number(root.into())], observer);
    }

    /// An angle, and what it is times `factor`.
    fn angle(&mut self, format: usize, angle: f64, factor: f64, observer: &mut impl AccessObserver) {
        MAIN.execute(10, observer);
        self.print(format, &[Argument::Real(angle), Argument::Real(angle * factor)], observer);
    }

    fn print(&mut self, format: usize, arguments: &[Argument], observer: &mut impl AccessObserver) {
        self.calls.jump(PRINTF_CALL, observer);
        self.printer.print(format, arguments, observer);
    }

    /// The next part of a round, and what stands above its lines.
    fn begin(&mut self, observer: &mut impl AccessObserver) {
        self.at = 0;
        self.part = match self.part {
            RoundPart::Start | RoundPart::Degrees => RoundPart::Cubics,
            RoundPart::Cubics => RoundPart::SquareRoots,
            RoundPart::SquareRoots => RoundPart::Radians,
            RoundPart::Radians => RoundPart::Degrees,
        };
        let heading = match self.part {
            RoundPart::Cubics => 0,
            RoundPart::SquareRoots => 1,
            _ => 2,
        };
        self.print(HEADINGS + heading, &[], observer);
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

    fn room(&self) -> &WorkloadMemory {
        self.process.room()
    }

    fn mappings(&self) -> Vec<Event> {
        self.process.map()
    }

    fn operations(&self) -> u64 {
        self.done
    }

    fn checksum(&self) -> u64 {
        self.printer.output.checksum()
    }

    fn step(&mut self, observer: &mut impl AccessObserver) -> bool {
        if self.rounds_left == 0 {
            return false;
        }
        let count = match self.part {
            RoundPart::Start => {
                if !self.loader.step(&mut self.calls, observer) {
                    self.begin(observer);
                }
                return true;
            }
            RoundPart::Cubics => {
                self.cubic(self.at, observer);
                self.ranges.cubics.iter().map(|range| range.count).product()
            }
            RoundPart::SquareRoots => {
                self.square_root(self.ranges.squares.at(self.at) as u64, observer);
                self.ranges.squares.count
            }
            RoundPart::Radians => {
                self.angle(RADIANS, self.ranges.degrees.at(self.at), PI / 180.0, observer);
                self.ranges.degrees.count
            }
            RoundPart::Degrees => {
                self.angle(DEGREES, self.ranges.radians.at(self.at), 180.0 / PI, observer);
                self.ranges.radians.count
            }
        };
        self.done += 1;
        self.at += 1;
        if self.at == count {
            if self.part == RoundPart::Degrees {
                self.printer.output.flush(observer);
                self.rounds_left -= 1;
                if self.rounds_left == 0 {
                    return false;
                }
            }
            self.begin(observer);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lookaside_workloads::kernel::Unseen;
    use proptest::prelude::*;

    fn math() -> BasicMath {
        BasicMath::new(&ProgramSpec::new(ProgramInput::Paper, 1)).expect("memory")
    }

    /// Roots are put into the polynomial, and changes of its sign are counted.
    #[test]
    fn roots_are_roots_and_none_is_left_out() {
        let mut math = math();
        let cubics: u64 = math.ranges.cubics.iter().map(|range| range.count).product();
        let mut by_count = [0; 4];
        for number in (0..cubics).step_by(2) {
            let coefficients @ [a, b, c, d] = math.coefficients(number);
            let value = |x: f64| ((a * x + b) * x + c) * x + d;
            let count = math.solve(coefficients, &mut Unseen);
            for &x in &math.roots[..count as usize] {
                let scale = (a * x * x * x).abs() + (b * x * x).abs() + (c * x).abs() + d.abs();
                assert!(value(x).abs() < 1e-9 * scale, "{coefficients:?}: {x} gives {}", value(x));
            }
            // No root is beyond 1 + the largest quotient (Cauchy); two are not nearer than the step but for double
            // ones.
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
        let cubics: u64 = math.ranges.cubics.iter().map(|range| range.count).product();
        while math.step(&mut Unseen) {}
        assert_eq!(math.done, cubics + 1001 + 2 * 361);
        let text = String::from_utf8(math.printer.output.text.clone()).expect("ASCII");
        let headings = ["CUBICS", "SQUARE ROOTS", "ANGLES"];
        let lines: Vec<&str> = text.lines().filter(|line| !headings.contains(line)).collect();
        assert_eq!((lines.len() as u64, text.lines().count() as u64), (math.done, math.done + 4));
        let after = &lines[cubics as usize..];
        assert_eq!(after[..4], ["sqrt(  0) =  0", "sqrt(  1) =  1", "sqrt(  2) =  1", "sqrt(  3) =  1"]);
        assert_eq!(after[1000], "sqrt(1000) = 31");
        assert_eq!(after[1001], "  0 degrees = 0.000000000000 radians");
        assert_eq!(after[1181], "180 degrees = 3.141592653590 radians");
        assert_eq!(after[1362], "0.000000000000 radians =   0 degrees");
        assert_eq!(after[1722], "6.283185307180 radians = 360 degrees");
        for (number, line) in lines[..cubics as usize].iter().enumerate().step_by(500) {
            let count = math.solve(math.coefficients(number as u64), &mut Unseen);
            let roots: String = math.roots[..count as usize].iter().map(|root| format!(" {root:.6}")).collect();
            assert_eq!(*line, format!("Roots:{roots}"));
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
