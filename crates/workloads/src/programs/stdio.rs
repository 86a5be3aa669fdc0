//! Buffered input and output: a file's place in its buffer lies in static data, the buffer on the heap.

use std::io;

use super::process::{Function, Process};
use crate::kernels::fold;
use crate::memory::{Array, Observer};

/// Bytes of a buffer: a file system's block.
const BUFFER_BYTES: u64 = 4096;
/// Digits of a 64-bit number, its sign and its point.
const DIGITS: u64 = 24;

const PRINT: Function = Function::new(0x31, 6);
const WRITE: Function = Function::new(0x4c, 3);
const READ: Function = Function::new(0x4b, 3);

/// `stdout`. What is flushed goes into a checksum.
#[derive(Debug)]
pub(super) struct Output {
    place: Array<u32>,
    buffer: Array<u8>,
    digits: Array<u8>,
    sum: u64,
    /// All that was flushed, for tests.
    #[cfg(test)]
    pub text: Vec<u8>,
}

impl Output {
    pub fn new(process: &mut Process) -> io::Result<Self> {
        Ok(Self {
            place: process.data("stdout", 1)?,
            buffer: process.malloc("stdout buffer", BUFFER_BYTES)?,
            digits: process.local("digits", DIGITS)?,
            sum: 0,
            #[cfg(test)]
            text: Vec::new(),
        })
    }

    /// One byte; a full buffer is written out.
    #[inline]
    pub fn put(&mut self, byte: u8, observer: &mut impl Observer) {
        let at = u64::from(self.place.load(0, observer));
        self.buffer.store(at, byte, observer);
        self.place.store(0, at as u32 + 1, observer);
        if at + 1 == BUFFER_BYTES {
            self.flush(observer);
        }
    }

    /// A number with `decimals` of its digits behind the point, and a byte after it.
    pub fn number(&mut self, value: i64, decimals: u32, after: u8, observer: &mut impl Observer) {
        let (mut left, mut len) = (value.unsigned_abs(), 0);
        while left > 0 || len <= u64::from(decimals) {
            if decimals > 0 && len == u64::from(decimals) {
                self.digits.store(len, b'.', observer);
                len += 1;
            }
            self.digits.store(len, b'0' + (left % 10) as u8, observer);
            left /= 10;
            len += 1;
        }
        if value < 0 {
            self.digits.store(len, b'-', observer);
            len += 1;
        }
        // ARMv7 has no division of 64 bits: the library's.
        PRINT.execute(67 + 42 * len, observer);
        for i in (0..len).rev() {
            let digit = self.digits.load(i, observer);
            self.put(digit, observer);
        }
        self.put(after, observer);
    }

    /// The rest of a round is written out.
    pub fn flush(&mut self, observer: &mut impl Observer) {
        WRITE.execute(40, observer);
        let len = self.place.load(0, observer);
        self.place.store(0, 0, observer);
        let text = &self.buffer[..len as usize];
        self.sum = text.iter().fold(self.sum, |sum, &byte| fold(sum, byte.into()));
        #[cfg(test)]
        self.text.extend_from_slice(text);
    }

    /// Of all that was flushed.
    pub fn checksum(&self) -> u64 {
        self.sum
    }
}

/// `stdin`, from a text that the kernel holds.
#[derive(Debug)]
pub(super) struct Input {
    text: Vec<u8>,
    /// Bytes read of the text.
    read: usize,
    /// Bytes in the buffer.
    filled: u64,
    place: Array<u32>,
    buffer: Array<u8>,
}

impl Input {
    pub fn new(process: &mut Process, text: Vec<u8>) -> io::Result<Self> {
        let (place, buffer) = (process.data("stdin", 1)?, process.malloc("stdin buffer", BUFFER_BYTES)?);
        Ok(Self { text, read: 0, filled: 0, place, buffer })
    }

    /// Lines of the text.
    pub fn lines(&self) -> u64 {
        self.text.iter().filter(|&&byte| byte == b'\n').count() as u64
    }

    /// The next byte; none at the end, after which it begins anew.
    #[inline]
    pub fn get(&mut self, observer: &mut impl Observer) -> Option<u8> {
        let mut at = u64::from(self.place.load(0, observer));
        if at == self.filled {
            READ.execute(40, observer);
            let part = &self.text[self.read..self.text.len().min(self.read + BUFFER_BYTES as usize)];
            self.buffer.as_mut()[..part.len()].copy_from_slice(part);
            (self.read, self.filled) = (self.read + part.len(), part.len() as u64);
            at = 0;
            if part.is_empty() {
                self.read = 0;
                self.place.store(0, 0, observer);
                return None;
            }
        }
        self.place.store(0, at as u32 + 1, observer);
        Some(self.buffer.load(at, observer))
    }
}
