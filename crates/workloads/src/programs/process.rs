//! The address space of a program: a static ARM executable under Linux, of 32 bits, with randomisation off.

use std::io;

use lookaside_trace::{Event, MapSource};

use crate::memory::{Array, Observer, Pages, Plain, Room, Section};
use crate::stream::PAGE_BYTES;

/// The first of the code: what GNU ld takes for ARM.
const TEXT: u64 = 0x1_0000;
/// Code and constants: about those of a small program with its C library in it.
const TEXT_BYTES: u64 = 0x7_0000;
/// Initialised data, a multiple of 64 KiB behind the code (ld's alignment for ARM).
const DATA: u64 = 0x9_0000;
const DATA_BYTES: u64 = 2 * PAGE_BYTES;
const BSS: u64 = DATA + DATA_BYTES;
/// The brk heap: room for qsort's pointers before it.
const HEAP: u64 = 0x10_0000;
/// What is beyond this is mapped by `malloc` for itself (glibc's `M_MMAP_THRESHOLD`).
const LARGE_BYTES: u64 = 128 << 10;
/// The GNU allocator's first heap: a page beyond its `M_TOP_PAD` of 128 KiB.
const HEAP_LEAST_BYTES: u64 = 0x2_1000;
/// Mappings grow down from here: 8 MiB of stack and a gap below its end.
const MAPPINGS_END: u64 = 0xb6ff_f000;
/// End of the stack: 16 MiB below 3 GiB, for the kernel's modules.
const STACK_END: u64 = 0xbf00_0000;
/// Arguments and environment, with which the stack begins.
const ENVIRONMENT_BYTES: u64 = 2048;
/// What the kernel maps of a stack in any case: 132 KiB.
const STACK_LEAST_BYTES: u64 = 0x2_1000;
/// A chunk's size, ahead of it.
const CHUNK_HEADER_BYTES: u64 = 4;
/// Chunks and stack frames begin at multiples of this (ARM's calling standard).
const ALIGN_BYTES: u64 = 8;

/// Most words that a function saves: r4 to r11 and the link register.
const FRAME_WORDS: u64 = 9;

/// A process whose arrays are being laid out.
#[derive(Debug)]
pub(super) struct Process {
    room: Room,
    path: &'static str,
    data: u64,
    bss: u64,
    heap: u64,
    /// First bytes and lengths.
    mappings: Vec<(u64, u64)>,
    stack: u64,
}

impl Process {
    /// With nothing in it yet.
    pub fn new(path: &'static str, pages: Pages) -> Self {
        let stack = STACK_END - ENVIRONMENT_BYTES;
        Self { room: Room::new(pages), path, data: DATA, bss: BSS, heap: HEAP, mappings: Vec::new(), stack }
    }

    pub fn room(&self) -> &Room {
        &self.room
    }

    /// Initialised static data.
    pub fn data<T: Plain>(&mut self, name: &'static str, len: u64) -> io::Result<Array<T>> {
        let at = take(&mut self.data, bytes::<T>(len), BSS)?;
        self.room.array_at(name, len, (Section::Data, at))
    }

    /// Zeroed static data.
    pub fn bss<T: Plain>(&mut self, name: &'static str, len: u64) -> io::Result<Array<T>> {
        let at = take(&mut self.bss, bytes::<T>(len), HEAP)?;
        self.room.array_at(name, len, (Section::Bss, at))
    }

    /// What `malloc` gives: on the heap, or in a mapping if it is large.
    pub fn malloc<T: Plain>(&mut self, name: &'static str, len: u64) -> io::Result<Array<T>> {
        let bytes = bytes::<T>(len) + CHUNK_HEADER_BYTES;
        if bytes < LARGE_BYTES {
            let chunk = take(&mut self.heap, bytes, MAPPINGS_END)?;
            return self.room.array_at(name, len, (Section::Heap, chunk + ALIGN_BYTES));
        }
        let len_bytes = (bytes + CHUNK_HEADER_BYTES).next_multiple_of(PAGE_BYTES);
        let above = self.mappings.last().map_or(MAPPINGS_END, |&(at, _)| at);
        let at = above.checked_sub(len_bytes).filter(|&at| at > self.heap).ok_or(io::ErrorKind::OutOfMemory)?;
        self.mappings.push((at, len_bytes));
        self.room.array_at(name, len, (Section::Mapping, at + ALIGN_BYTES))
    }

    /// Chunks of the heap next to each other, of so many bytes with their sizes; the array begins in the first.
    pub fn malloc_many(&mut self, name: &'static str, bytes: u64) -> io::Result<Array<u8>> {
        let chunk = take(&mut self.heap, bytes, MAPPINGS_END)?;
        self.room.array_at(name, bytes, (Section::Heap, chunk + ALIGN_BYTES))
    }

    /// A local array, below those before.
    pub fn local<T: Plain>(&mut self, name: &'static str, len: u64) -> io::Result<Array<T>> {
        let bytes = bytes::<T>(len).next_multiple_of(ALIGN_BYTES);
        self.stack = self.stack.checked_sub(bytes).filter(|&at| at > MAPPINGS_END).ok_or(io::ErrorKind::OutOfMemory)?;
        self.room.array_at(name, len, (Section::Stack, self.stack))
    }

    /// The registers that calls save, `depth` calls one within the other, below all local arrays.
    pub fn frames(&mut self, depth: u64) -> io::Result<Frames> {
        Ok(Frames { words: self.local("frames", depth * FRAME_WORDS)? })
    }

    /// Its memory map.
    pub fn map(&self) -> Vec<Event> {
        let whole = |bytes: u64| bytes.next_multiple_of(PAGE_BYTES);
        let map = |addr, len, prot, source| Event::Map { addr, len, prot, source, site: 0 };
        let file = |offset| MapSource::File { path: self.path.into(), offset };
        let mut all = vec![map(TEXT, TEXT_BYTES, 5, file(0)), map(DATA, DATA_BYTES, 3, file(TEXT_BYTES))];
        if self.bss > BSS {
            all.push(map(BSS, whole(self.bss - BSS), 3, MapSource::Anonymous));
        }
        all.push(map(HEAP, whole(self.heap - HEAP).max(HEAP_LEAST_BYTES), 3, MapSource::Heap));
        all.extend(self.mappings.iter().rev().map(|&(at, len)| map(at, len, 3, MapSource::Anonymous)));
        let stack = whole(STACK_END - self.stack).max(STACK_LEAST_BYTES);
        all.push(map(STACK_END - stack, stack, 3, MapSource::Stack));
        all
    }
}

fn bytes<T>(len: u64) -> u64 {
    len * size_of::<T>() as u64
}

/// The next `bytes` of a section that goes up to `end`.
fn take(next: &mut u64, bytes: u64, end: u64) -> io::Result<u64> {
    let (at, after) = (*next, next.saturating_add(bytes).next_multiple_of(ALIGN_BYTES));
    *next = after;
    if after <= end {
        Ok(at)
    } else {
        Err(io::ErrorKind::OutOfMemory.into())
    }
}

/// A function: on which page of the code it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function {
    entry: u64,
    /// Registers that it saves, up to [`FRAME_WORDS`].
    saves: u64,
}

impl Function {
    /// On the `page`th page of the code.
    pub const fn new(page: u64, saves: u64) -> Self {
        assert!(page * PAGE_BYTES < TEXT_BYTES && saves <= FRAME_WORDS);
        Self { entry: TEXT + page * PAGE_BYTES, saves }
    }

    /// Where its instructions are fetched.
    #[cfg(test)]
    pub fn entry(self) -> u64 {
        self.entry
    }

    /// Some of its instructions, beside loads and stores.
    #[inline(always)]
    pub fn execute(self, instructions: u64, observer: &mut impl Observer) {
        observer.execute(self.entry, instructions.clamp(1, u64::from(u32::MAX)) as u32);
    }
}

/// Where called functions save registers.
#[derive(Debug)]
pub(super) struct Frames {
    words: Array<u32>,
}

impl Frames {
    /// Calls a function: its instructions and what it saves, at this depth.
    #[inline(always)]
    pub fn enter(&mut self, function: Function, depth: u64, instructions: u64, observer: &mut impl Observer) {
        function.execute(instructions, observer);
        for word in self.first(function, depth)..self.words.len() as u64 - depth * FRAME_WORDS {
            self.words.store(word, function.entry as u32, observer);
        }
    }

    /// Returns from it.
    #[inline(always)]
    pub fn leave(&self, function: Function, depth: u64, observer: &mut impl Observer) {
        for word in self.first(function, depth)..self.words.len() as u64 - depth * FRAME_WORDS {
            self.words.load(word, observer);
        }
    }

    /// The stack grows down.
    #[inline(always)]
    fn first(&self, function: Function, depth: u64) -> u64 {
        self.words.len() as u64 - depth * FRAME_WORDS - function.saves
    }
}
