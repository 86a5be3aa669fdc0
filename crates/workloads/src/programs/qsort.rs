//! Words sorted by a quicksort of pointers, compared byte by byte, as a C library sorts strings.
//!
//! MiBench's own keeps each word in 128 bytes and sorts these; here they are as long as they are, each a chunk of the heap.

use std::io;

use lookaside_trace::Event;

use super::process::{Frames, Function, Process};
use super::stdio::{Input, Output};
use super::ProgramSpec;
use crate::memory::{Array, Observer, Room};
use crate::random::Random;
use crate::workload::Kernel;

/// Words of MiBench's small input, and as many as its large one has points.
const SMALL: u64 = 10_000;
const LARGE: u64 = 50_000;
/// Pointers that there is room for, as in MiBench.
const MOST: u64 = 60_000;
/// Longest word with the byte that ends it: four syllables of four bytes and an ending of two.
const LONGEST: u64 = 19;
/// Parts of this many are left to a last pass of insertions (Sedgewick 1978; glibc's has 4).
const LEAST_PART: u64 = 4;
/// Ends of parts to come: the smaller part is done first, so that there are at most log2 of the words.
const MOST_PARTS: u64 = 32;
/// Comparisons or words a step: some hundred accesses.
const STEP: u64 = 16;

const MAIN: Function = Function::new(0x00, 9);
const COMPARE: Function = Function::new(0x00, 1);
const SORT: Function = Function::new(0x20, 9);
const STRING_COMPARE: Function = Function::new(0x2a, 0);
const SCAN: Function = Function::new(0x38, 9);
const MALLOC: Function = Function::new(0x43, 5);
const COPY: Function = Function::new(0x2b, 0);
const PRINT: Function = Function::new(0x31, 6);

/// What is being done.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The next word is read.
    Read,
    /// The part from `low` to `high` is being parted around the word of `pivot`.
    Part { low: u64, high: u64, up: u64, down: u64, pivot: u32 },
    /// The pointer at this place goes to where it belongs among those before.
    Insert(u64),
    /// The word at this place is printed.
    Print(u64),
}

/// The program.
pub(super) struct Qsort {
    process: Process,
    /// One after the other, each ended by a zero, where `malloc` puts them.
    words: Array<u8>,
    /// Offsets in `words`.
    pointers: Array<u32>,
    line: Array<u8>,
    /// Ends of the parts to come, in pairs.
    parts: Array<u32>,
    frames: Frames,
    input: Input,
    output: Output,
    phase: Phase,
    /// Pairs in `parts`.
    waiting: u64,
    /// Words read in this round, and bytes of their chunks.
    read: u64,
    taken: u64,
    rounds_left: u64,
    done: u64,
}

impl Qsort {
    pub(super) fn new(spec: &ProgramSpec) -> io::Result<Self> {
        let count = match spec.input {
            super::Input::Small => SMALL,
            super::Input::Large => LARGE,
        };
        Self::of(spec, &text(spec.seed, count))
    }

    /// Of words with a line each.
    fn of(spec: &ProgramSpec, text: &[u8]) -> io::Result<Self> {
        let mut process = Process::new("qsort", spec.pages);
        let lens = text.split_inclusive(|&byte| byte == b'\n').map(|line| line.len() as u64);
        let bytes = lens.map(chunk_bytes).sum();
        Ok(Self {
            input: Input::new(&mut process, text.to_vec())?,
            output: Output::new(&mut process)?,
            words: process.malloc_many("words", bytes)?,
            pointers: process.bss("pointers", MOST)?,
            line: process.local("line", LONGEST)?,
            parts: process.local("parts", 2 * MOST_PARTS)?,
            frames: process.frames(3)?,
            process,
            phase: Phase::Read,
            waiting: 0,
            read: 0,
            taken: 0,
            rounds_left: spec.rounds,
            done: 0,
        })
    }

    /// Reads the next word into a chunk of its own. `false` = there is none.
    fn read_word(&mut self, observer: &mut impl Observer) -> bool {
        self.frames.enter(SCAN, 0, 16, observer);
        let mut len = 0;
        let more = loop {
            match self.input.get(observer) {
                None => break false,
                Some(b'\n') => break true,
                Some(byte) => self.line.store(len, byte, observer),
            }
            len += 1;
        };
        SCAN.execute(9 * len, observer);
        self.frames.leave(SCAN, 0, observer);
        if !more {
            return false;
        }
        self.line.store(len, 0, observer);
        self.frames.enter(MALLOC, 0, 194, observer);
        self.frames.leave(MALLOC, 0, observer);
        COPY.execute(9 + 2 * len, observer);
        for i in 0..=len {
            let byte = self.line.load(i, observer);
            self.words.store(self.taken + i, byte, observer);
        }
        self.pointers.store(self.read, self.taken as u32, observer);
        MAIN.execute(12, observer);
        self.taken += chunk_bytes(len + 1);
        self.read += 1;
        true
    }

    /// The word at one offset comes before that at the other.
    #[inline]
    fn is_before(&mut self, a: u32, b: u32, observer: &mut impl Observer) -> bool {
        self.frames.enter(COMPARE, 1, 8, observer);
        let mut i = 0;
        let before = loop {
            let x = self.words.load(u64::from(a) + i, observer);
            let y = self.words.load(u64::from(b) + i, observer);
            if x != y || x == 0 {
                break x < y;
            }
            i += 1;
        };
        STRING_COMPARE.execute(10 + 4 * i, observer);
        self.frames.leave(COMPARE, 1, observer);
        SORT.execute(6, observer);
        before
    }

    /// Begins the part, or what is next if it is too small.
    fn part(&mut self, low: u64, high: u64, observer: &mut impl Observer) -> Phase {
        if high + 1 - low <= LEAST_PART {
            return self.next_part(observer);
        }
        // The median of three, which are put in order.
        SORT.execute(20, observer);
        let middle = low + (high - low) / 2;
        for (i, j) in [(low, middle), (middle, high), (low, middle)] {
            let (a, b) = (self.pointers.load(i, observer), self.pointers.load(j, observer));
            if self.is_before(b, a, observer) {
                self.pointers.store(i, b, observer);
                self.pointers.store(j, a, observer);
            }
        }
        let pivot = self.pointers.load(middle, observer);
        Phase::Part { low, high, up: low + 1, down: high - 1, pivot }
    }

    /// The part that was put aside last.
    fn next_part(&mut self, observer: &mut impl Observer) -> Phase {
        if self.waiting == 0 {
            return Phase::Insert(1);
        }
        self.waiting -= 1;
        let low = self.parts.load(2 * self.waiting, observer);
        let high = self.parts.load(2 * self.waiting + 1, observer);
        self.part(low.into(), high.into(), observer)
    }

    /// Goes on until two words have changed sides or both sides have met (Hoare 1962).
    fn parting(&mut self, observer: &mut impl Observer) {
        let Phase::Part { low, high, mut up, mut down, pivot } = self.phase else { return };
        let mut a = self.pointers.load(up, observer);
        while self.is_before(a, pivot, observer) {
            up += 1;
            a = self.pointers.load(up, observer);
        }
        let mut b = self.pointers.load(down, observer);
        while self.is_before(pivot, b, observer) {
            down -= 1;
            b = self.pointers.load(down, observer);
        }
        if up < down {
            self.pointers.store(up, b, observer);
            self.pointers.store(down, a, observer);
        }
        if up <= down {
            up += 1;
            down -= 1;
        }
        if up <= down {
            self.phase = Phase::Part { low, high, up, down, pivot };
            return;
        }
        // The larger of both sides waits.
        let ((low, high), later) =
            if down - low > high - up { ((up, high), (low, down)) } else { ((low, down), (up, high)) };
        self.parts.store(2 * self.waiting, later.0 as u32, observer);
        self.parts.store(2 * self.waiting + 1, later.1 as u32, observer);
        self.waiting += 1;
        self.phase = self.part(low, high, observer);
    }

    fn insert(&mut self, at: u64, observer: &mut impl Observer) {
        let pointer = self.pointers.load(at, observer);
        let mut place = at;
        while place > 0 {
            let before = self.pointers.load(place - 1, observer);
            if !self.is_before(pointer, before, observer) {
                break;
            }
            self.pointers.store(place, before, observer);
            place -= 1;
        }
        if place < at {
            self.pointers.store(place, pointer, observer);
        }
    }

    fn print(&mut self, at: u64, observer: &mut impl Observer) {
        let mut from = u64::from(self.pointers.load(at, observer));
        self.frames.enter(PRINT, 0, 60, observer);
        loop {
            let byte = self.words.load(from, observer);
            if byte == 0 {
                break;
            }
            self.output.put(byte, observer);
            PRINT.execute(6, observer);
            from += 1;
        }
        self.output.put(b'\n', observer);
        self.frames.leave(PRINT, 0, observer);
    }

    /// What comes after a word or a part.
    fn next(&mut self, observer: &mut impl Observer) {
        match self.phase {
            Phase::Read => {
                if !self.read_word(observer) {
                    self.phase = match self.read {
                        0 => Phase::Print(0),
                        read => self.part(0, read - 1, observer),
                    };
                }
            }
            Phase::Part { .. } => self.parting(observer),
            Phase::Insert(at) if at < self.read => {
                self.insert(at, observer);
                self.phase = Phase::Insert(at + 1);
            }
            Phase::Insert(_) => self.phase = Phase::Print(0),
            Phase::Print(at) if at < self.read => {
                self.print(at, observer);
                self.done += 1;
                self.phase = Phase::Print(at + 1);
            }
            Phase::Print(_) => {
                self.output.flush(observer);
                (self.read, self.taken, self.phase) = (0, 0, Phase::Read);
                self.rounds_left -= 1;
            }
        }
    }
}

/// What a string of so many bytes takes on a 32-bit heap: with its size, by eights, and 16 at least.
fn chunk_bytes(len: u64) -> u64 {
    (len + 4).next_multiple_of(8).max(16)
}

/// Words of one to four syllables, a line each.
fn text(seed: u64, count: u64) -> Vec<u8> {
    const BEGINNINGS: [&str; 16] = ["b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "st", "t", "th", "w"];
    const VOWELS: [&str; 6] = ["a", "e", "i", "o", "u", "ea"];
    const ENDINGS: [&str; 5] = ["", "n", "r", "s", "ed"];
    let mut random = Random::new(seed);
    // The lesser of two draws: some parts are more frequent than others, as in a language.
    let mut lesser = |most: usize| random.below(most as u64).min(random.below(most as u64)) as usize;
    let mut text = String::new();
    for _ in 0..count {
        for _ in 0..=lesser(4) {
            text.push_str(BEGINNINGS[lesser(BEGINNINGS.len())]);
            text.push_str(VOWELS[lesser(VOWELS.len())]);
        }
        text.push_str(ENDINGS[lesser(ENDINGS.len())]);
        text.push('\n');
    }
    text.into_bytes()
}

impl Kernel for Qsort {
    const NAME: &'static str = "qsort";
    const OPERATION: &'static str = "word";
    const FETCHES: bool = true;

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("words", self.input.lines()), ("bytes of words", self.words.len() as u64)]
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
        for _ in 0..STEP {
            if self.rounds_left == 0 {
                return false;
            }
            self.next(observer);
        }
        self.rounds_left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Unseen;
    use proptest::prelude::*;

    fn sorted(text: &[u8]) -> Vec<u8> {
        let mut qsort = Qsort::of(&ProgramSpec::new(super::super::Input::Small, 1), text).expect("memory");
        while qsort.step(&mut Unseen) {}
        qsort.output.text
    }

    fn naively(text: &[u8]) -> Vec<u8> {
        let mut lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
        // A word that is the beginning of another comes first: the end of a line is less than all letters.
        lines.sort();
        lines.concat()
    }

    #[test]
    fn the_input_is_sorted() {
        for seed in 1..4 {
            let text = text(seed, SMALL);
            assert_eq!(text.iter().filter(|&&byte| byte == b'\n').count() as u64, SMALL);
            assert!(text.split(|&byte| byte == b'\n').all(|word| (word.len() as u64) < LONGEST));
            assert!(sorted(&text) == naively(&text), "seed {seed}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Few letters: many words are equal, or the beginning of others.
        #[test]
        fn any_words_are_sorted(words in proptest::collection::vec("[a-c]{0,3}", 0..200)) {
            let text: String = words.iter().map(|word| format!("{word}\n")).collect();
            prop_assert_eq!(sorted(text.as_bytes()), naively(text.as_bytes()));
        }
    }

    #[test]
    fn words_in_order_and_against_it_are_sorted() {
        let lines: Vec<String> = (0..3000).map(|i| format!("{i:06}\n")).collect();
        let reversed: String = lines.iter().rev().map(String::as_str).collect();
        assert!(sorted(lines.concat().as_bytes()) == lines.concat().as_bytes());
        assert!(sorted(reversed.as_bytes()) == lines.concat().as_bytes());
    }

    /// Some n log2 n comparisons of words, each of both words' first bytes at least.
    #[test]
    fn it_is_a_quicksort() {
        let mut qsort = Qsort::new(&ProgramSpec::new(super::super::Input::Small, 1)).expect("memory");
        while matches!(qsort.phase, Phase::Read) {
            qsort.next(&mut Unseen);
        }
        let mut block = lookaside_trace::Block::default();
        while !matches!(qsort.phase, Phase::Print(_)) {
            qsort.next(&mut block);
        }
        let compare = block.addr.iter().filter(|addr| **addr == STRING_COMPARE.entry()).count();
        assert!((130_000..190_000).contains(&compare), "{compare}");
    }
}
