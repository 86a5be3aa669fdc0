//! Formatted output by the tables of a C library: what a character of a format means, powers of ten, the locale's
//! point.
//!
//! Numbers are exact and rounded half to even. The algorithms are ours: whole parts by subtracting powers of ten,
//! fractions by multiplying limbs by ten. Which page a table lies on is assumed.

use std::io;

use lookaside_workloads::kernel::{AccessObserver, Array};

use super::process::{ArmProcess, Function, StackFrames, LIBC, PROGRAM};
use super::stdio::{StandardOutput, WORD};

/// Constants of the program.
const FORMATS: u64 = 0x1200;
/// Characters with a meaning in a format: from the blank to z.
const MEANINGS: u64 = 91;
const FIRST_MEANING: u8 = b' ';
/// Where what comes next is done: for each meaning.
const JUMPS: u64 = 30;
/// 10^19 is the greatest power below 2^64.
const POWERS: u64 = 20;
/// Words of the locale's parts and of its part for numbers.
const LOCALE_WORDS: u64 = 16;
const NUMERIC_WORDS: u64 = 12;
const NUMERIC: u64 = 1;
const POINT: u64 = 8;
/// A buffer on the stack (glibc's `WORK_BUFFER_SIZE`). Digits begin here, with room for what is ahead of them.
const WORK_BYTES: u64 = 1000;
const FIRST_DIGIT: u64 = 64;
/// Bits of the smallest number's fraction in limbs.
const LIMBS: u64 = 1074u64.div_ceil(u32::BITS as u64);
/// Bits of a number behind its first one.
const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;

const PRINTF: Function = Function::of(&LIBC, 0x3a, 1);
const FORMAT: Function = Function::of(&LIBC, 0x3e, 9);
const REAL: Function = Function::of(&LIBC, 0x3b, 9);
const MULTIPLY: Function = Function::of(&LIBC, 0x39, 5);
const FIND: Function = Function::of(&LIBC, 0x6d, 0);
const PUTS: Function = Function::of(&LIBC, 0x50, 6);
const LENGTH: Function = Function::of(&LIBC, 0x6e, 0);

/// What a format is filled with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Argument {
    /// `%d`.
    Number(i64),
    /// `%f`. Beyond 2^64 the nearest that there is.
    Real(f64),
}

/// `printf`.
#[derive(Debug)]
pub(super) struct Printer {
    /// One after the other, each ended by a zero; and where each begins.
    formats: Array<u8>,
    begins: Vec<u64>,
    meanings: Array<u8>,
    jumps: Array<u32>,
    digits: Array<u8>,
    powers: Array<u64>,
    thread: Array<u32>,
    locale: Array<u32>,
    numeric: Array<u32>,
    point: Array<u8>,
    work: Array<u8>,
    limbs: Array<u32>,
    frames: StackFrames,
    pub output: StandardOutput,
}

impl Printer {
    /// With the program's formats: literals, `%d` and `%f`, with width and precision.
    pub(super) fn new(process: &mut ArmProcess, formats: &[&str]) -> io::Result<Self> {
        let text: Vec<u8> = formats.iter().flat_map(|format| format.bytes().chain([0])).collect();
        let begins = formats.iter().scan(0, |next, format| {
            let begin = *next;
            *next += format.len() as u64 + 1;
            Some(begin)
        });
        let mut printer = Self {
            begins: begins.collect(),
            formats: process.of_file("formats", text.len() as u64, PROGRAM.at(FORMATS))?,
            meanings: process.of_file("meanings of characters", MEANINGS, LIBC.at(0xf_0a40))?,
            jumps: process.of_file("jumps by meaning", JUMPS, LIBC.at(0xf_0ac0))?,
            digits: process.of_file("digits", 36, LIBC.at(0xf_1e00))?,
            powers: process.of_file("powers of ten", POWERS, LIBC.at(0xf_2000))?,
            thread: process.of_thread("thread's locale", 1, 0x1500)?,
            locale: process.of_file("locale", LOCALE_WORDS, LIBC.at(0x10_c300))?,
            numeric: process.of_file("locale's numbers", NUMERIC_WORDS, LIBC.at(0x10_be00))?,
            point: process.of_file("point", 2, LIBC.at(0xe_b100))?,
            frames: process.frames(4)?,
            work: process.local("work buffer", WORK_BYTES)?,
            limbs: process.local("limbs", LIMBS)?,
            output: StandardOutput::new(process)?,
        };
        printer.formats.as_mut().copy_from_slice(&text);
        printer.digits.as_mut().copy_from_slice(b"0123456789abcdefghijklmnopqrstuvwxyz");
        for (i, power) in printer.powers.as_mut().iter_mut().enumerate() {
            *power = 10u64.pow(i as u32);
        }
        for (i, meaning) in printer.meanings.as_mut().iter_mut().enumerate() {
            *meaning = match FIRST_MEANING + i as u8 {
                b'1'..=b'9' => 1,
                b'.' => 2,
                b'd' => 3,
                b'f' => 4,
                _ => 0,
            };
        }
        printer.point.as_mut()[0] = b'.';
        Ok(printer)
    }

    /// Prints by the format of this number.
    pub(super) fn print(&mut self, format: usize, arguments: &[Argument], observer: &mut impl AccessObserver) {
        self.frames.enter(PRINTF, 0, 15, observer);
        self.frames.enter(FORMAT, 1, 390, observer);
        let (mut at, mut arguments) = (self.begins[format], arguments.iter());
        loop {
            let begin = at;
            let byte = loop {
                let byte = self.formats.load(at, observer);
                if byte == b'%' || byte == 0 {
                    break byte;
                }
                at += 1;
            };
            FIND.execute(6 + 3 * (at - begin), observer);
            if at > begin {
                self.output.write(&self.formats, begin, at - begin, observer);
            }
            if byte == 0 {
                break;
            }
            at = self.filled(at + 1, arguments.next(), observer);
        }
        self.frames.leave(FORMAT, 1, observer);
        self.frames.leave(PRINTF, 0, observer);
    }

    /// Prints an argument as what stands here in the format says, and gives the place behind that.
    fn filled(&mut self, mut at: u64, argument: Option<&Argument>, observer: &mut impl AccessObserver) -> u64 {
        let (mut width, mut precision) = (0, None);
        loop {
            let byte = self.formats.load(at, observer);
            at += 1;
            let meaning = self.meanings.load(byte.saturating_sub(FIRST_MEANING).into(), observer);
            self.jumps.load(meaning.into(), observer);
            FORMAT.execute(9, observer);
            let digit = u64::from(byte.wrapping_sub(b'0'));
            match byte {
                b'.' => precision = Some(0),
                b'0'..=b'9' => {
                    let number = precision.as_mut().unwrap_or(&mut width);
                    *number = 10 * *number + digit;
                }
                _ => break,
            }
        }
        match argument {
            Some(&Argument::Number(value)) => self.number(value, width, observer),
            Some(&Argument::Real(value)) => {
                self.frames.enter(REAL, 2, 500, observer);
                self.real(value, width, precision.unwrap_or(6), observer);
                self.frames.leave(REAL, 2, observer);
            }
            None => {}
        }
        at
    }

    /// Prints the string that begins here, and ends the line (`puts`, by which compilers replace `printf` of a string
    /// and a line's end).
    pub(super) fn line(&mut self, text: &Array<u8>, at: u64, observer: &mut impl AccessObserver) {
        self.frames.enter(PUTS, 0, 60, observer);
        let mut len = 0;
        let is_end = |len, observer: &mut _| text.load_span(at + len, WORD, WORD, observer).contains(&0);
        while !is_end(len, observer) {
            len += WORD;
        }
        len += text[(at + len) as usize..].iter().take_while(|&&byte| byte != 0).count() as u64;
        LENGTH.execute(12 + len, observer);
        self.output.write(text, at, len, observer);
        self.output.put(b'\n', observer);
        self.frames.leave(PUTS, 0, observer);
    }

    fn number(&mut self, value: i64, width: u64, observer: &mut impl AccessObserver) {
        let (mut left, mut begin) = (value.unsigned_abs(), FIRST_DIGIT);
        while left > 0 || begin == FIRST_DIGIT {
            let digit = self.digits.load(left % 10, observer);
            begin -= 1;
            self.work.store(begin, digit, observer);
            left /= 10;
        }
        FORMAT.execute(40 + 7 * (FIRST_DIGIT - begin), observer);
        self.signed(value < 0, (begin, FIRST_DIGIT), width, observer);
    }

    fn real(&mut self, value: f64, width: u64, precision: u64, observer: &mut impl AccessObserver) {
        // The locale's point, by the thread's locale.
        self.thread.load(0, observer);
        self.locale.load(NUMERIC, observer);
        self.numeric.load(POINT, observer);
        let point = self.point.load(0, observer);
        let mut end = self.whole(value.abs() as u64, observer);
        if precision > 0 {
            self.work.store(end, point, observer);
            end += 1;
        }
        let (mut lowest, limbs) = self.fraction(value, observer);
        for _ in 0..precision {
            let mut carry = 0;
            self.frames.enter(MULTIPLY, 3, 10 + 6 * (limbs - lowest), observer);
            for limb in lowest..limbs {
                let product = 10 * u64::from(self.limbs.load(limb, observer)) + carry;
                self.limbs.store(limb, product as u32, observer);
                carry = product >> u32::BITS;
            }
            self.frames.leave(MULTIPLY, 3, observer);
            REAL.execute(34, observer);
            while lowest < limbs && self.limbs.load(lowest, observer) == 0 {
                lowest += 1;
            }
            self.work.store(end, b'0' + carry as u8, observer);
            end += 1;
        }
        let begin = self.rounded(end, (lowest, limbs), observer);
        self.signed(value.is_sign_negative(), (begin, end), width, observer);
    }

    /// The digits of a whole number; where they end.
    fn whole(&mut self, mut left: u64, observer: &mut impl AccessObserver) -> u64 {
        let (mut end, mut subtracted) = (FIRST_DIGIT, 0);
        for power in (0..POWERS).rev() {
            let value = self.powers.load(power, observer);
            let mut digit = 0;
            while left >= value {
                left -= value;
                digit += 1;
            }
            subtracted += u64::from(digit);
            if digit > 0 || end > FIRST_DIGIT || power == 0 {
                self.work.store(end, b'0' + digit, observer);
                end += 1;
            }
        }
        REAL.execute(5 * POWERS + 5 * subtracted, observer);
        end
    }

    /// The fraction's limbs, lowest first: which of them is the lowest that is not zero, and how many there are.
    fn fraction(&mut self, value: f64, observer: &mut impl AccessObserver) -> (u64, u64) {
        let bits = value.to_bits();
        let biased = (bits >> MANTISSA_BITS) as u32 & 0x7ff;
        let mantissa = bits & ((1 << MANTISSA_BITS) - 1) | u64::from(biased > 0) << MANTISSA_BITS;
        // The number is the mantissa / 2^behind.
        let behind = (1075 - i64::from(biased.max(1))).max(0) as u32;
        let fraction = if behind < u64::BITS { mantissa & ((1 << behind) - 1) } else { mantissa };
        let limbs = u64::from(behind.div_ceil(u32::BITS));
        let mut rest = u128::from(fraction) << (limbs as u32 * u32::BITS - behind);
        let mut lowest = None;
        for limb in 0..limbs {
            self.limbs.store(limb, rest as u32, observer);
            lowest = lowest.or((rest as u32 > 0).then_some(limb));
            rest >>= u32::BITS;
        }
        REAL.execute(30 + 4 * limbs, observer);
        (lowest.unwrap_or(limbs), limbs)
    }

    /// Rounds up the digits before `end` if what is left is more than a half, or a half behind an odd digit; where they
    /// begin.
    fn rounded(&mut self, end: u64, (lowest, limbs): (u64, u64), observer: &mut impl AccessObserver) -> u64 {
        const HALF: u32 = 1 << (u32::BITS - 1);
        let is_odd = self.work.load(end - 1, observer) % 2 == 1;
        let top = if lowest < limbs { self.limbs.load(limbs - 1, observer) } else { 0 };
        REAL.execute(15, observer);
        if top < HALF || (top == HALF && lowest + 1 == limbs && !is_odd) {
            return FIRST_DIGIT;
        }
        for at in (FIRST_DIGIT..end).rev() {
            let digit = self.work.load(at, observer);
            REAL.execute(5, observer);
            match digit {
                b'0'..=b'8' => {
                    self.work.store(at, digit + 1, observer);
                    return FIRST_DIGIT;
                }
                b'9' => self.work.store(at, b'0', observer),
                _ => {}
            }
        }
        self.work.store(FIRST_DIGIT - 1, b'1', observer);
        FIRST_DIGIT - 1
    }

    /// Puts the sign and blanks ahead of digits, and prints them.
    fn signed(&mut self, negative: bool, (begin, end): (u64, u64), width: u64, observer: &mut impl AccessObserver) {
        let mut from = begin;
        if negative {
            from -= 1;
            self.work.store(from, b'-', observer);
        }
        while end - from < width && from > 0 {
            from -= 1;
            self.work.store(from, b' ', observer);
        }
        FORMAT.execute(12 + 4 * (begin - from), observer);
        self.output.write(&self.work, from, end - from, observer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lookaside_workloads::kernel::Unseen;
    use lookaside_workloads::Pages;
    use proptest::prelude::*;

    const FORMATS: [&str; 4] = [" %f", "root(%3d) = %2d\n", "%3.0f degrees = %.12f radians\n", "100\n"];

    fn printed(format: usize, arguments: &[Argument]) -> String {
        let mut printer = Printer::new(&mut ArmProcess::new("a", Pages::Base), &FORMATS).expect("memory");
        printer.print(format, arguments, &mut Unseen);
        printer.output.flush(&mut Unseen);
        String::from_utf8(printer.output.text).expect("ASCII")
    }

    #[test]
    fn formats_are_filled() {
        assert_eq!(printed(1, &[Argument::Number(7), Argument::Number(-200)]), "root(  7) = -200\n");
        assert_eq!(
            printed(1, &[Argument::Number(0), Argument::Number(i64::MIN)]),
            format!("root(  0) = {}\n", i64::MIN)
        );
        assert_eq!(
            printed(2, &[Argument::Real(180.0), Argument::Real(std::f64::consts::PI)]),
            "180 degrees = 3.141592653590 radians\n"
        );
        let mut text = ArmProcess::new("a", Pages::Base).malloc("text", 20).expect("memory");
        text.as_mut()[..9].copy_from_slice(b"one\0two!\0");
        let mut printer = Printer::new(&mut ArmProcess::new("a", Pages::Base), &[]).expect("memory");
        printer.line(&text, 4, &mut Unseen);
        printer.line(&text, 8, &mut Unseen);
        printer.line(&text, 0, &mut Unseen);
        printer.output.flush(&mut Unseen);
        assert_eq!(printer.output.text, b"two!\n\none\n");
        assert_eq!(printed(3, &[]), "100\n");
    }

    /// Loads, stores and instructions of a call; the latter are data accesses and what is executed beside them.
    fn cost(format: &str, arguments: &[Argument]) -> [u64; 3] {
        use lookaside_trace::{Block, Kind};
        let mut printer = Printer::new(&mut ArmProcess::new("a", Pages::Base), &[format]).expect("memory");
        let (mut block, mut cost) = (Block::default(), [0; 3]);
        printer.print(0, arguments, &mut block);
        for (kind, repeat) in block.kind.iter().zip(&block.repeat) {
            cost[if *kind == Kind::Fetch { 2 } else { *kind as usize }] += 1 + u64::from(*repeat);
        }
        cost[2] += cost[0] + cost[1];
        cost
    }

    /// As glibc 2.36 for ARM, counted by `lookaside record --backend qemu` as the difference of 1,000 calls.
    #[test]
    fn calls_cost_about_what_glibcs_do() {
        let number = [Argument::Number(600)];
        let real = [Argument::Real(-9.460_302_123_456_789)];
        let counted: [(_, _, [u32; 3]); 5] = [
            (" %f", &real, [441, 271, 1766]),
            (" %.12f", &real, [565, 356, 2290]),
            ("%3.0f", &real, [379, 215, 1396]),
            ("%3d", &number, [176, 106, 617]),
            ("abcdef%d\n", &number, [183, 109, 712]),
        ];
        for (format, arguments, counted) in counted {
            let found = cost(format, arguments);
            let instructions = found[2] as f64 / f64::from(counted[2]);
            assert!((0.9..1.1).contains(&instructions), "{format:?}: {found:?} against {counted:?}");
            // What glibc keeps on the stack in between is an instruction here.
            assert!(found[0] < counted[0].into() && found[1] < counted[1].into(), "{format:?}: {found:?}");
        }
    }

    #[test]
    fn carries_halves_and_small_ones_are_rounded_as_they_should() {
        for value in
            [0.0, -0.0, 0.5, 1.5, 2.5, 9.5, 99.5, 999.999_999_9, 0.000_000_5, 5e-324, 1e-10, -0.1, 1e19, 2.5e-7]
        {
            assert_eq!(printed(0, &[Argument::Real(value)]), format!(" {value:.6}"));
            let whole = format!("{value:3.0} degrees = {value:.12} radians\n");
            assert_eq!(printed(2, &[Argument::Real(value), Argument::Real(value)]), whole);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_number_is_printed_exactly(bits: u64, scale in -60i32..60) {
            let value = f64::from_bits(bits);
            let value = if value.abs() < 1e19 { value } else { (bits >> 11) as f64 * 2f64.powi(scale - 50) };
            prop_assume!(value.abs() < 1.8e19);
            prop_assert_eq!(printed(0, &[Argument::Real(value)]), format!(" {:.6}", value));
            prop_assert_eq!(
                printed(2, &[Argument::Real(value), Argument::Real(-value)]),
                format!("{:3.0} degrees = {:.12} radians\n", value, -value)
            );
        }
    }
}
