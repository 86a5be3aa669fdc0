//! Buffered input and output as in the GNU C library: what is known of a stream lies in static data or on the heap, its
//! buffer on the heap, its operations in a table; full and empty buffers are the kernel's to copy, by words.

use std::io;

use lookaside_workloads::kernel::{fold, AccessObserver, Array, Plain};

use super::process::{ArmProcess, Function, LIBC, SYSTEM_CALL};

/// Bytes of a buffer: a file system's block.
const BUFFER_BYTES: u64 = 4096;
/// Words of a stream, `FILE`, and which of them are used.
const STREAM_WORDS: u64 = 40;
const READ_AT: u64 = 1;
const READ_END: u64 = 2;
const WRITE_BASE: u64 = 4;
const WRITE_AT: u64 = 5;
const WRITE_END: u64 = 6;
const OPERATIONS: u64 = 37;
/// Operations of a stream.
const OPERATION_WORDS: u64 = 21;
const OVERFLOW: u64 = 3;
const UNDERFLOW: u64 = 4;
const PUT_MANY: u64 = 7;
/// Bytes that kernel and C library copy at once: a register, and two.
pub(super) const WORD: u64 = 4;
pub(super) const TWO_WORDS: u64 = 8;
/// Characters that have a class: -128 to 255; and that of white space.
const CLASSES: u64 = 384;
const CLASS_OF_0: u64 = 128;
const SPACE: u16 = 1 << 13;

const SCAN: Function = Function::of(&LIBC, 0x42, 9);
const PUT: Function = Function::of(&LIBC, 0x57, 0);
const COPY: Function = Function::of(&LIBC, 0x6c, 0);
const WRITE: Function = Function::of(&LIBC, 0xa5, 0);

/// The kernel puts `values` where the program asked it to.
pub(super) fn read_into<T: Plain>(to: &mut Array<T>, values: &[T], observer: &mut impl AccessObserver) {
    WRITE.execute(12, observer);
    SYSTEM_CALL.execute(1, observer);
    to.store_span(0, values, WORD / size_of::<T>() as u64, observer);
}

/// The kernel takes the first `len` values.
pub(super) fn write_out<'a, T: Plain>(from: &'a Array<T>, len: u64, observer: &mut impl AccessObserver) -> &'a [T] {
    WRITE.execute(12, observer);
    SYSTEM_CALL.execute(1, observer);
    from.load_span(0, len, WORD / size_of::<T>() as u64, observer)
}

/// Operations of streams on files, in relocated constants.
#[derive(Debug)]
struct StreamOperations {
    table: Array<u32>,
}

impl StreamOperations {
    /// Calls one, by the table that the stream names.
    fn call(&self, stream: &Array<u32>, operation: u64, observer: &mut impl AccessObserver) {
        PUT.execute(8, observer);
        stream.load(OPERATIONS, observer);
        self.table.load(operation, observer);
    }
}

/// `stdout`. What is flushed goes into a checksum.
#[derive(Debug)]
pub(super) struct StandardOutput {
    stream: Array<u32>,
    operations: StreamOperations,
    buffer: Array<u8>,
    sum: u64,
    /// All that was flushed, for tests.
    #[cfg(test)]
    pub text: Vec<u8>,
}

impl StandardOutput {
    pub(super) fn new(process: &mut ArmProcess) -> io::Result<Self> {
        Ok(Self {
            stream: process.of_file("stdout", STREAM_WORDS, LIBC.at(0x10_cd50))?,
            operations: StreamOperations {
                table: process.of_file("operations of stdout", OPERATION_WORDS, LIBC.at(0x10_a900))?,
            },
            buffer: process.malloc("stdout buffer", BUFFER_BYTES)?,
            sum: 0,
            #[cfg(test)]
            text: Vec::new(),
        })
    }

    /// Appends `len` bytes of an array; a full buffer is written out.
    pub(super) fn write(&mut self, from: &Array<u8>, mut at: u64, mut len: u64, observer: &mut impl AccessObserver) {
        self.operations.call(&self.stream, PUT_MANY, observer);
        PUT.execute(30, observer);
        while len > 0 {
            let place = u64::from(self.stream.load(WRITE_AT, observer));
            self.stream.load(WRITE_END, observer);
            let part = len.min(BUFFER_BYTES - place);
            COPY.execute(12 + part / WORD, observer);
            let bytes = from.load_span(at, part, WORD, observer);
            self.buffer.store_span(place, bytes, WORD, observer);
            self.stream.store(WRITE_AT, (place + part) as u32, observer);
            (at, len) = (at + part, len - part);
            if place + part == BUFFER_BYTES {
                self.operations.call(&self.stream, OVERFLOW, observer);
                self.flush(observer);
            }
        }
    }

    /// Appends a byte.
    pub(super) fn put(&mut self, byte: u8, observer: &mut impl AccessObserver) {
        PUT.execute(20, observer);
        let place = self.stream.load(WRITE_AT, observer);
        self.stream.load(WRITE_END, observer);
        self.buffer.store(place.into(), byte, observer);
        self.stream.store(WRITE_AT, place + 1, observer);
        if u64::from(place) + 1 == BUFFER_BYTES {
            self.operations.call(&self.stream, OVERFLOW, observer);
            self.flush(observer);
        }
    }

    /// What is in the buffer is written out.
    pub(super) fn flush(&mut self, observer: &mut impl AccessObserver) {
        self.stream.load(WRITE_BASE, observer);
        let len = self.stream.load(WRITE_AT, observer);
        self.stream.store(WRITE_AT, 0, observer);
        PUT.execute(60, observer);
        let text = write_out(&self.buffer, len.into(), observer);
        self.sum = text.iter().fold(self.sum, |sum, &byte| fold(sum, byte.into()));
        #[cfg(test)]
        self.text.extend_from_slice(text);
    }

    /// Of all that was flushed.
    pub(super) fn checksum(&self) -> u64 {
        self.sum
    }
}

/// A file of text that was opened, and is read by words.
#[derive(Debug)]
pub(super) struct StandardInput {
    text: Vec<u8>,
    /// Bytes read of the text.
    read: usize,
    stream: Array<u32>,
    operations: StreamOperations,
    buffer: Array<u8>,
    /// The thread's pointer to the classes, and these.
    thread: Array<u32>,
    classes: Array<u16>,
}

impl StandardInput {
    pub(super) fn new(process: &mut ArmProcess, text: Vec<u8>) -> io::Result<Self> {
        let mut input = Self {
            text,
            read: 0,
            stream: process.malloc("input", STREAM_WORDS)?,
            operations: StreamOperations {
                table: process.of_file("operations of files", OPERATION_WORDS, LIBC.at(0x10_a980))?,
            },
            buffer: process.malloc("input buffer", BUFFER_BYTES)?,
            thread: process.of_thread("thread's character classes", 1, 0x1504)?,
            classes: process.of_file("character classes", CLASSES, LIBC.at(0xf_e200))?,
        };
        for byte in [b' ', b'\n', b'\t', b'\r', 0x0b, 0x0c] {
            input.classes.as_mut()[CLASS_OF_0 as usize + usize::from(byte)] = SPACE;
        }
        Ok(input)
    }

    /// Lines of the text.
    pub(super) fn lines(&self) -> u64 {
        self.text.iter().filter(|&&byte| byte == b'\n').count() as u64
    }

    /// Reads the next word to a place, with a zero behind it, and gives its length; none at the end, after which the
    /// text begins anew.
    pub(super) fn word(&mut self, to: &mut Array<u8>, at: u64, observer: &mut impl AccessObserver) -> Option<u64> {
        // `fscanf`'s own, for "%s".
        SCAN.execute(440, observer);
        let mut byte = self.get(observer)?;
        while self.is_space(byte, observer) {
            byte = self.get(observer)?;
        }
        let mut len = 0;
        loop {
            to.store(at + len, byte, observer);
            len += 1;
            // A last word may end with the text.
            let Some(next) = self.get(observer) else { break };
            if self.is_space(next, observer) {
                break;
            }
            byte = next;
        }
        to.store(at + len, 0, observer);
        SCAN.execute(13 * (len + 1), observer);
        Some(len)
    }

    #[inline]
    fn is_space(&self, byte: u8, observer: &mut impl AccessObserver) -> bool {
        self.thread.load(0, observer);
        self.classes.load(CLASS_OF_0 + u64::from(byte), observer) & SPACE != 0
    }

    #[inline]
    fn get(&mut self, observer: &mut impl AccessObserver) -> Option<u8> {
        let mut at = self.stream.load(READ_AT, observer);
        if at == self.stream.load(READ_END, observer) {
            self.operations.call(&self.stream, UNDERFLOW, observer);
            let part = &self.text[self.read..self.text.len().min(self.read + BUFFER_BYTES as usize)];
            read_into(&mut self.buffer, part, observer);
            self.stream.store(READ_AT, 0, observer);
            self.stream.store(READ_END, part.len() as u32, observer);
            if part.is_empty() {
                self.read = 0;
                return None;
            }
            self.read += part.len();
            at = 0;
        }
        self.stream.store(READ_AT, at + 1, observer);
        Some(self.buffer.load(at.into(), observer))
    }
}
