//! The address space of a program: a dynamically linked ARM executable under Linux, of 32 bits, with randomisation off.
//!
//! Where its libraries lie and how large their parts are is as of Debian 12's for ARM (glibc 2.36, armhf).

use std::io;

use lookaside_trace::{Event, Kind, MapSource};
use lookaside_workloads::kernel::{AccessObserver, Array, Plain, WorkloadMemory};
use lookaside_workloads::{ArraySection, Pages, PAGE_BYTES};

/// The brk heap: behind the program's data.
const HEAP: u64 = 0x2_2000;
/// What is beyond this is mapped by `malloc` for itself (glibc's `M_MMAP_THRESHOLD`).
const LARGE_BYTES: u64 = 128 << 10;
/// The GNU allocator's first heap: a page beyond its `M_TOP_PAD` of 128 KiB.
const HEAP_LEAST_BYTES: u64 = 0x2_1000;
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
/// The page through which the kernel is entered, and where for a system call.
const VECTORS: u64 = 0xffff_0000;
const CALL_VECTOR: u64 = VECTORS + 8;

/// Where constants lie from a function's beginning: code for ARM has them behind it, for want of room in instructions.
const CONSTANTS: u64 = 0xf00;
/// Most words that a function saves: r4 to r11 and the link register.
const FRAME_WORDS: u64 = 9;

/// A file that is mapped: code and constants, then data.
#[derive(Debug)]
pub(super) struct Object {
    path: &'static str,
    start: u64,
    /// Bytes of code and constants; where they begin in the file, code and constants are at 0.
    text_bytes: u64,
    /// Where data begins, and its end in the file and with what is zeroed, from the start on.
    data: (u64, u64, u64),
}

/// ld's first address for ARM. Data is a multiple of 64 KiB behind the code (its alignment for ARM).
pub(super) const PROGRAM: Object =
    Object { path: "", start: 0x1_0000, text_bytes: 0xc000, data: (0x1_0000, 0x1_2000, 0x1_2000) };
/// The dynamic loader is mapped first, 8 MiB of stack and a gap below the stack's end; then what the program needs, in
/// turn.
pub(super) const LOADER: Object = Object {
    path: "/lib/ld-linux-armhf.so.3",
    start: 0xb6fe_0000,
    text_bytes: 0x1_d000,
    data: (0x1_d000, 0x1_f000, 0x1_f000),
};
pub(super) const LIBM: Object = Object {
    path: "/lib/arm-linux-gnueabihf/libm.so.6",
    start: 0xb6f9_f000,
    text_bytes: 0x3_f000,
    data: (0x3_f000, 0x4_1000, 0x4_1000),
};
pub(super) const LIBC: Object = Object {
    path: "/lib/arm-linux-gnueabihf/libc.so.6",
    start: 0xb6e8_8000,
    text_bytes: 0x10_a000,
    data: (0x10_a000, 0x10_d000, 0x11_7000),
};
/// What the loader allocates for the first thread.
const THREAD: (u64, u64) = (0xb6e8_6000, 0x2000);
/// Mappings grow down from here.
const MAPPINGS_END: u64 = THREAD.0;

impl Object {
    /// An address of it.
    pub(super) const fn at(&self, offset: u64) -> u64 {
        self.start + offset
    }
}

/// A process whose arrays are being laid out.
#[derive(Debug)]
pub(super) struct ArmProcess {
    room: WorkloadMemory,
    path: &'static str,
    heap: u64,
    /// First bytes and lengths.
    mappings: Vec<(u64, u64)>,
    stack: u64,
}

impl ArmProcess {
    /// With nothing in it yet.
    pub(super) fn new(path: &'static str, pages: Pages) -> Self {
        let stack = STACK_END - ENVIRONMENT_BYTES;
        Self { room: WorkloadMemory::new(pages), path, heap: HEAP, mappings: Vec::new(), stack }
    }

    pub(super) fn room(&self) -> &WorkloadMemory {
        &self.room
    }

    /// Constants or data of a file, at this address.
    pub(super) fn of_file<T: Plain>(&mut self, name: &'static str, len: u64, at: u64) -> io::Result<Array<T>> {
        self.room.array_at(name, len, (ArraySection::Data, at))
    }

    /// What the first thread has for itself, so many bytes into its mapping.
    pub(super) fn of_thread<T: Plain>(&mut self, name: &'static str, len: u64, offset: u64) -> io::Result<Array<T>> {
        self.room.array_at(name, len, (ArraySection::Mapping, THREAD.0 + offset))
    }

    /// What `malloc` gives: on the heap, or in a mapping if it is large.
    pub(super) fn malloc<T: Plain>(&mut self, name: &'static str, len: u64) -> io::Result<Array<T>> {
        let place = self.chunk(bytes::<T>(len))?;
        self.room.array_at(name, len, place)
    }

    /// Two arrays in one chunk, the second behind the first.
    pub(super) fn malloc_two<T: Plain>(&mut self, names: [&'static str; 2], len: u64) -> io::Result<[Array<T>; 2]> {
        let (section, at) = self.chunk(2 * bytes::<T>(len))?;
        let [first, second] = names;
        Ok([
            self.room.array_at(first, len, (section, at))?,
            self.room.array_at(second, len, (section, at + bytes::<T>(len)))?,
        ])
    }

    /// Where `malloc` puts so many bytes.
    fn chunk(&mut self, bytes: u64) -> io::Result<(ArraySection, u64)> {
        let bytes = bytes + CHUNK_HEADER_BYTES;
        if bytes < LARGE_BYTES {
            let chunk = take(&mut self.heap, bytes, MAPPINGS_END)?;
            return Ok((ArraySection::Heap, chunk + ALIGN_BYTES));
        }
        let len_bytes = (bytes + CHUNK_HEADER_BYTES).next_multiple_of(PAGE_BYTES);
        let above = self.mappings.last().map_or(MAPPINGS_END, |&(at, _)| at);
        let at = above.checked_sub(len_bytes).filter(|&at| at > self.heap).ok_or(io::ErrorKind::OutOfMemory)?;
        self.mappings.push((at, len_bytes));
        Ok((ArraySection::Mapping, at + ALIGN_BYTES))
    }

    /// A local array, below those before.
    pub(super) fn local<T: Plain>(&mut self, name: &'static str, len: u64) -> io::Result<Array<T>> {
        self.local_of(name, len, len)
    }

    /// The first `len` elements of a local array that has `all`.
    pub(super) fn local_of<T: Plain>(&mut self, name: &'static str, len: u64, all: u64) -> io::Result<Array<T>> {
        let bytes = bytes::<T>(all.max(len)).next_multiple_of(ALIGN_BYTES);
        let end = LOADER.at(LOADER.data.2);
        self.stack = self.stack.checked_sub(bytes).filter(|&at| at > end).ok_or(io::ErrorKind::OutOfMemory)?;
        self.room.array_at(name, len, (ArraySection::Stack, self.stack))
    }

    /// The registers that calls save, `depth` calls one within the other, below all local arrays.
    pub(super) fn frames(&mut self, depth: u64) -> io::Result<StackFrames> {
        Ok(StackFrames { words: self.local("frames", depth * FRAME_WORDS)? })
    }

    /// Its memory map, from below.
    pub(super) fn map(&self) -> Vec<Event> {
        let whole = |bytes: u64| bytes.next_multiple_of(PAGE_BYTES);
        let map = |addr, len, prot, source| Event::Map { addr, len, prot, source, site: 0 };
        let object = |object: &Object, path: &str| {
            let file = |offset| MapSource::File { path: path.into(), offset };
            let (data, end, zeroed_end) = object.data;
            let mut all = vec![
                map(object.start, object.text_bytes, 5, file(0)),
                map(object.at(data), end - data, 3, file(object.text_bytes)),
            ];
            if zeroed_end > end {
                all.push(map(object.at(end), zeroed_end - end, 3, MapSource::Anonymous));
            }
            all
        };
        let mut all = object(&PROGRAM, self.path);
        all.push(map(HEAP, whole(self.heap - HEAP).max(HEAP_LEAST_BYTES), 3, MapSource::Heap));
        all.extend(self.mappings.iter().rev().map(|&(at, len)| map(at, len, 3, MapSource::Anonymous)));
        all.push(map(THREAD.0, THREAD.1, 3, MapSource::Anonymous));
        all.extend([LIBC, LIBM, LOADER].iter().flat_map(|library| object(library, library.path)));
        let stack = whole(STACK_END - self.stack).max(STACK_LEAST_BYTES);
        all.push(map(STACK_END - stack, stack, 3, MapSource::Stack));
        all.push(map(VECTORS, PAGE_BYTES, 5, MapSource::File { path: "[vectors]".into(), offset: 0 }));
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

/// A call of the kernel: its instruction is the last that is seen of it.
pub(super) const SYSTEM_CALL: Function = Function { entry: CALL_VECTOR, saves: 0 };

impl Function {
    /// On the `page`th page of the program.
    pub(super) const fn new(page: u64, saves: u64) -> Self {
        Self::of(&PROGRAM, page, saves)
    }

    /// On the `page`th page of a library.
    pub(super) const fn of(object: &Object, page: u64, saves: u64) -> Self {
        assert!(page * PAGE_BYTES < object.text_bytes && saves <= FRAME_WORDS);
        Self { entry: object.at(page * PAGE_BYTES), saves }
    }

    /// Where its instructions are fetched.
    #[cfg(test)]
    pub fn entry(self) -> u64 {
        self.entry
    }

    /// Some of its instructions, beside loads and stores.
    #[inline(always)]
    pub(super) fn execute(self, instructions: u64, observer: &mut impl AccessObserver) {
        observer.execute(self.entry, instructions.clamp(1, u64::from(u32::MAX)) as u32);
    }
}

/// Where called functions save registers.
#[derive(Debug)]
pub(super) struct StackFrames {
    words: Array<u32>,
}

impl StackFrames {
    /// Calls a function: its instructions, a constant from behind them, and what it saves, at this depth.
    #[inline(always)]
    pub(super) fn enter(
        &mut self,
        function: Function,
        depth: u64,
        instructions: u64,
        observer: &mut impl AccessObserver,
    ) {
        function.execute(instructions, observer);
        observer.access(Kind::Load, function.entry + CONSTANTS);
        for word in self.first(function, depth)..self.words.len() as u64 - depth * FRAME_WORDS {
            self.words.store(word, function.entry as u32, observer);
        }
    }

    /// Returns from it.
    #[inline(always)]
    pub(super) fn leave(&self, function: Function, depth: u64, observer: &mut impl AccessObserver) {
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
