//! Words sorted by the C library's `qsort`, compared as strings.
//!
//! As in MiBench each lies in a record of 128 bytes, in an array on the stack with room for 60,000. Records of more
//! than 32 bytes the GNU C library before 2.37 does not move while it sorts: it sorts pointers to them, by merging, and
//! then moves each to its place, along the cycles of the permutation.

use std::io;

use lookaside_stats::SplitMix64;
use lookaside_trace::Event;
use lookaside_workloads::kernel::{AccessObserver, Array, Kernel, WorkloadMemory};

use super::loader::{Calls, Loader};
use super::printf::{Argument, Printer};
use super::process::{ArmProcess, Function, StackFrames, LIBC};
use super::spec::{ProgramInput, ProgramSpec};
use super::stdio::{StandardInput, TWO_WORDS, WORD};

/// Words of MiBench's small input, and as many as its large one has points.
const SMALL: u64 = 10_000;
const LARGE: u64 = 50_000;
/// So many that sorting them takes the paper's cycles.
const PAPER: u64 = 14_500;
/// Records that there is room for, and bytes of one.
const MOST: u64 = 60_000;
const RECORD_BYTES: u64 = 128;
/// Parts of parts that there may be: log2 of the words, and one more.
const MOST_DEPTH: u64 = 18;
/// Comparisons or words a step: some hundred accesses.
const STEP: u64 = 16;

const FORMATS: [&str; 1] = ["\nSorting %d words.\n\n"];

/// Where the places of called functions lie.
const PRINTF_CALL: u64 = 0;
const SCAN_CALL: u64 = 1;
const SORT_CALL: u64 = 2;
const STRING_CALL: u64 = 3;
const LINE_CALL: u64 = 4;

const MAIN: Function = Function::new(0x00, 9);
const COMPARE: Function = Function::new(0x00, 1);
const SORT: Function = Function::of(&LIBC, 0x2f, 9);
const PERMUTE: Function = Function::of(&LIBC, 0x30, 9);
const STRING_COMPARE: Function = Function::of(&LIBC, 0x6d, 2);
const COPY: Function = Function::of(&LIBC, 0x6c, 0);

/// What is being done.
#[derive(Clone, Copy, Debug)]
enum QsortPhase {
    /// The libraries are relocated.
    Start,
    /// The next word is read.
    Read,
    /// Pointers are sorted: the last of `parts`.
    Sort,
    /// Records go to their places from this one on.
    Permute(u64),
    /// The word at this place is printed.
    Print(u64),
}

/// Pointers being sorted.
#[derive(Clone, Copy, Debug)]
struct SortedPart {
    low: u64,
    len: u64,
    stage: MergeStage,
}

/// How far a part is.
#[derive(Clone, Copy, Debug)]
enum MergeStage {
    /// Called.
    Begun,
    /// The first half is sorted.
    Half,
    /// Both are; the next ones of both, and how many were merged.
    Merge { left: u64, right: u64, merged: u64 },
}

/// The program.
pub(super) struct Qsort {
    process: ArmProcess,
    loader: Loader,
    calls: Calls,
    /// Words, each ended by a zero.
    records: Array<u8>,
    /// Numbers of records, and where two halves are merged: one chunk of the heap.
    pointers: Array<u32>,
    merged: Array<u32>,
    /// A record that is out of its place.
    apart: Array<u8>,
    frames: StackFrames,
    sort_frames: StackFrames,
    input: StandardInput,
    printer: Printer,
    phase: QsortPhase,
    /// Each a half of the one before.
    parts: Vec<SortedPart>,
    /// Words read in this round.
    read: u64,
    rounds_left: u64,
    done: u64,
}

impl Qsort {
    pub(super) fn new(spec: &ProgramSpec) -> io::Result<Self> {
        let count = match spec.input {
            ProgramInput::Small => SMALL,
            ProgramInput::Large => LARGE,
            ProgramInput::Paper => PAPER,
        };
        Self::of(spec, &text(spec.seed, count))
    }

    /// Of words with a line each.
    fn of(spec: &ProgramSpec, text: &[u8]) -> io::Result<Self> {
        let mut process = ArmProcess::new("qsort", spec.pages);
        let (loader, calls) = Loader::new(&mut process)?;
        let input = StandardInput::new(&mut process, text.to_vec())?;
        let count = input.lines();
        let records = process.local_of("records", count * RECORD_BYTES, MOST * RECORD_BYTES)?;
        let frames = process.frames(3)?;
        let printer = Printer::new(&mut process, &FORMATS)?;
        let [merged, pointers] = process.malloc_two(["merged pointers", "pointers"], count)?;
        Ok(Self {
            apart: process.malloc("record apart", RECORD_BYTES)?,
            sort_frames: process.frames(MOST_DEPTH)?,
            process,
            loader,
            calls,
            records,
            pointers,
            merged,
            frames,
            input,
            printer,
            phase: QsortPhase::Start,
            parts: Vec::new(),
            read: 0,
            rounds_left: spec.rounds,
            done: 0,
        })
    }

    /// Reads the next word into a record of its own. `false` = there is none.
    fn read_word(&mut self, observer: &mut impl AccessObserver) -> bool {
        MAIN.execute(8, observer);
        self.calls.jump(SCAN_CALL, observer);
        let more = self.input.word(&mut self.records, self.read * RECORD_BYTES, observer).is_some();
        self.read += u64::from(more);
        more
    }

    /// The first record's word does not come after the second's.
    #[inline]
    fn is_in_order(&mut self, a: u32, b: u32, observer: &mut impl AccessObserver) -> bool {
        self.frames.enter(COMPARE, 1, 6, observer);
        self.calls.jump(STRING_CALL, observer);
        let in_order = self.compare(u64::from(a) * RECORD_BYTES, u64::from(b) * RECORD_BYTES, observer);
        self.frames.leave(COMPARE, 1, observer);
        SORT.execute(6, observer);
        in_order
    }

    /// The string at `a` is not greater than that at `b`: by first bytes, then two words at a time.
    fn compare(&mut self, a: u64, b: u64, observer: &mut impl AccessObserver) -> bool {
        let (first, other) = (self.records.load(a, observer), self.records.load(b, observer));
        if first != other || first == 0 {
            STRING_COMPARE.execute(5, observer);
            return first <= other;
        }
        self.frames.enter(STRING_COMPARE, 2, 8, observer);
        let mut at = 0;
        let in_order = loop {
            let x = self.records.load_span(a + at, TWO_WORDS, TWO_WORDS, observer);
            let y = self.records.load_span(b + at, TWO_WORDS, TWO_WORDS, observer);
            STRING_COMPARE.execute(9, observer);
            let last = x.iter().zip(y).find(|(x, y)| x != y || **x == 0);
            if let Some((x, y)) = last {
                break x <= y;
            }
            at += TWO_WORDS;
        };
        STRING_COMPARE.execute(8, observer);
        self.frames.leave(STRING_COMPARE, 2, observer);
        in_order
    }

    /// All words are read: pointers to them are made.
    fn begin_sorting(&mut self, observer: &mut impl AccessObserver) {
        self.calls.jump(PRINTF_CALL, observer);
        self.printer.print(0, &[Argument::Number(self.read as i64)], observer);
        self.calls.jump(SORT_CALL, observer);
        self.frames.enter(PERMUTE, 0, 60 + 3 * self.read, observer);
        for i in 0..self.read {
            self.pointers.store(i, i as u32, observer);
        }
        self.phase = QsortPhase::Sort;
        self.call_sort(0, self.read, observer);
    }

    fn call_sort(&mut self, low: u64, len: u64, observer: &mut impl AccessObserver) {
        self.sort_frames.enter(SORT, self.parts.len() as u64, 20, observer);
        self.parts.push(SortedPart { low, len, stage: MergeStage::Begun });
    }

    /// The last part's next comparison, or what is before and after these.
    fn sort(&mut self, observer: &mut impl AccessObserver) {
        let depth = self.parts.len() as u64 - 1;
        let Some(part) = self.parts.last_mut() else { return };
        let (low, middle, end) = (part.low, part.low + part.len / 2, part.low + part.len);
        match part.stage {
            MergeStage::Begun if part.len <= 1 => self.return_sorted(depth, observer),
            MergeStage::Begun => {
                part.stage = MergeStage::Half;
                self.call_sort(low, middle - low, observer);
            }
            MergeStage::Half => {
                part.stage = MergeStage::Merge { left: low, right: middle, merged: 0 };
                self.call_sort(middle, end - middle, observer);
            }
            MergeStage::Merge { left, right, merged } if left < middle && right < end => {
                let (a, b) = (self.pointers.load(left, observer), self.pointers.load(right, observer));
                let in_order = self.is_in_order(a, b, observer);
                self.merged.store(merged, if in_order { a } else { b }, observer);
                let (left, right) = (left + u64::from(in_order), right + u64::from(!in_order));
                if let Some(part) = self.parts.last_mut() {
                    part.stage = MergeStage::Merge { left, right, merged: merged + 1 };
                }
            }
            MergeStage::Merge { left, merged, .. } => {
                // What is left of the first half, then all that was merged; what is left of the second is in its place.
                let rest = self.pointers.load_span(left, middle - left, 1, observer);
                self.merged.store_span(merged, rest, 1, observer);
                let len = merged + middle - left;
                COPY.execute(24 + (len + middle - left) / 4, observer);
                let all = self.merged.load_span(0, len, 1, observer);
                self.pointers.store_span(low, all, 1, observer);
                self.return_sorted(depth, observer);
            }
        }
    }

    fn return_sorted(&mut self, depth: u64, observer: &mut impl AccessObserver) {
        self.sort_frames.leave(SORT, depth, observer);
        self.parts.pop();
        if self.parts.is_empty() {
            self.phase = QsortPhase::Permute(0);
        }
    }

    /// Moves the records of the cycle that this place is in, if they are not yet where they belong.
    fn permute(&mut self, first: u64, observer: &mut impl AccessObserver) {
        PERMUTE.execute(5, observer);
        let mut from = u64::from(self.pointers.load(first, observer));
        if from == first {
            return;
        }
        let record = self.record(first, observer);
        self.apart.store_span(0, &record, WORD, observer);
        let mut to = first;
        while from != first {
            self.pointers.store(to, to as u32, observer);
            let record = self.record(from, observer);
            self.records.store_span(to * RECORD_BYTES, &record, WORD, observer);
            to = from;
            from = u64::from(self.pointers.load(to, observer));
            PERMUTE.execute(14, observer);
        }
        self.pointers.store(to, to as u32, observer);
        let mut record = [0; RECORD_BYTES as usize];
        record.copy_from_slice(self.apart.load_span(0, RECORD_BYTES, WORD, observer));
        COPY.execute(24, observer);
        self.records.store_span(to * RECORD_BYTES, &record, WORD, observer);
    }

    fn record(&self, number: u64, observer: &mut impl AccessObserver) -> [u8; RECORD_BYTES as usize] {
        let mut record = [0; RECORD_BYTES as usize];
        COPY.execute(24, observer);
        record.copy_from_slice(self.records.load_span(number * RECORD_BYTES, RECORD_BYTES, WORD, observer));
        record
    }

    /// What comes after a word or a part.
    fn next(&mut self, observer: &mut impl AccessObserver) {
        match self.phase {
            QsortPhase::Start => {
                if !self.loader.step(&mut self.calls, observer) {
                    self.phase = QsortPhase::Read;
                }
            }
            QsortPhase::Read => {
                if !self.read_word(observer) {
                    self.begin_sorting(observer);
                }
            }
            QsortPhase::Sort => self.sort(observer),
            QsortPhase::Permute(at) if at < self.read => {
                self.permute(at, observer);
                self.phase = QsortPhase::Permute(at + 1);
            }
            QsortPhase::Permute(_) => {
                self.frames.leave(PERMUTE, 0, observer);
                self.phase = QsortPhase::Print(0);
            }
            QsortPhase::Print(at) if at < self.read => {
                MAIN.execute(4, observer);
                self.calls.jump(LINE_CALL, observer);
                self.printer.line(&self.records, at * RECORD_BYTES, observer);
                self.done += 1;
                self.phase = QsortPhase::Print(at + 1);
            }
            QsortPhase::Print(_) => {
                self.printer.output.flush(observer);
                (self.read, self.phase) = (0, QsortPhase::Read);
                self.rounds_left -= 1;
            }
        }
    }
}

/// Words of one to four syllables, a line each.
fn text(seed: u64, count: u64) -> Vec<u8> {
    const BEGINNINGS: [&str; 16] = ["b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "st", "t", "th", "w"];
    const VOWELS: [&str; 6] = ["a", "e", "i", "o", "u", "ea"];
    const ENDINGS: [&str; 5] = ["", "n", "r", "s", "ed"];
    let mut random = SplitMix64::new(seed);
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
        vec![("words", self.input.lines()), ("bytes of a record", RECORD_BYTES)]
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
mod tests;
