//! The start of a dynamically linked program: the loader relocates its libraries and looks their symbols up by GNU hash
//! tables.
//!
//! Tables are as large as in Debian 12's files for ARM and lie where these have them; what stands in them is made up,
//! but for the hashes, which are those of the names. Left out: how libraries are found and mapped, and what libraries
//! do at their start.

use std::io;
use std::ops::Range;

use lookaside_stats::SplitMix64;
use lookaside_workloads::kernel::{AccessObserver, Array};

use super::process::{ArmProcess, Function, Object, StackFrames, LIBC, LIBM, LOADER, PROGRAM};

/// Words of a symbol, and of a relocation.
const SYMBOL_WORDS: u64 = 4;
const RELOCATION_WORDS: u64 = 2;
/// Words of a hash table ahead of its Bloom filter: buckets, first symbol, words and shift of the filter.
const HASH_HEADER_WORDS: u64 = 4;
/// What the loader knows of a file: where its parts lie, 80 words of it.
const KNOWN_WORDS: u64 = 80;
/// Of these, what a lookup asks for: shift, words and place of the filter, buckets, chains, symbols, names, versions.
const ASKED_WORDS: u64 = 8;

const RELOCATE: Function = Function::of(&LOADER, 0x0a, 9);
const LOOK_UP: Function = Function::of(&LOADER, 0x09, 9);
const COMPARE: Function = Function::of(&LOADER, 0x16, 0);

/// Sizes and places of a file's tables, in bytes from its start.
#[derive(Debug)]
struct ObjectTables {
    object: &'static Object,
    hash: u64,
    buckets: u64,
    first_hashed: u64,
    filter_words: u64,
    filter_shift: u32,
    symbols: u64,
    symbol_count: u64,
    names: u64,
    name_bytes: u64,
    versions: u64,
    relocations: u64,
    /// To which the file's start is added, and where: from this word on, each.
    relative: u64,
    relative_at: u64,
    /// For which a symbol is looked up, and where.
    looked_up: u64,
    looked_up_at: u64,
}

/// In the order of the search. By readelf; of the program itself assumed.
static TABLES: [ObjectTables; 4] = [
    ObjectTables {
        object: &PROGRAM,
        hash: 0x1ac,
        buckets: 2,
        first_hashed: 13,
        filter_words: 1,
        filter_shift: 5,
        symbols: 0x1e0,
        symbol_count: 14,
        names: 0x2d0,
        name_bytes: 200,
        versions: 0x3a0,
        relocations: 0x3f0,
        relative: 0,
        relative_at: 0x1_1000,
        // Each when it is called first; here all at the start.
        looked_up: GOT_SLOTS,
        looked_up_at: GOT - 0x1_0000,
    },
    ObjectTables {
        object: &LIBM,
        hash: 0x138,
        buckets: 987,
        first_hashed: 17,
        filter_words: 256,
        filter_shift: 13,
        symbols: 0x2220,
        symbol_count: 876,
        names: 0x58e0,
        name_bytes: 0x1a75,
        versions: 0x7356,
        relocations: 0x7c44,
        relative: 3,
        relative_at: 0x3_fef0,
        looked_up: 9,
        looked_up_at: 0x4_0034,
    },
    ObjectTables {
        object: &LIBC,
        hash: 0x1b8,
        buckets: 1009,
        first_hashed: 22,
        filter_words: 1024,
        filter_shift: 15,
        symbols: 0x5190,
        symbol_count: 3095,
        names: 0x1_1300,
        name_bytes: 0x860a,
        versions: 0x1_990a,
        relocations: 0x1_b5f4,
        relative: 1205,
        relative_at: 0x10_aa00,
        looked_up: 84,
        looked_up_at: 0x10_c050,
    },
    ObjectTables {
        object: &LOADER,
        hash: 0x138,
        buckets: 37,
        first_hashed: 3,
        filter_words: 8,
        filter_shift: 8,
        symbols: 0x294,
        symbol_count: 41,
        names: 0x524,
        name_bytes: 0x2b7,
        versions: 0x7dc,
        relocations: 0x8d4,
        relative: 16,
        relative_at: 0x1_d120,
        looked_up: 3,
        looked_up_at: 0x1_e010,
    },
];

/// Places of the functions that a program calls, in its data.
const GOT: u64 = 0x2_1000 + 12;
const GOT_SLOTS: u64 = 10;

/// The calls of a program into its libraries, through its table of their places.
#[derive(Debug)]
pub(super) struct Calls {
    slots: Array<u32>,
}

const PLT: Function = Function::new(0, 0);

impl Calls {
    /// Jumps to the library's function of this number.
    #[inline(always)]
    pub(super) fn jump(&self, number: u64, observer: &mut impl AccessObserver) {
        PLT.execute(2, observer);
        self.slots.load(number, observer);
    }
}

/// A file as the loader sees it.
#[derive(Debug)]
struct LoadedObject {
    tables: &'static ObjectTables,
    known: Array<u32>,
    /// The header, the filter, the buckets, the chains.
    hash: Array<u32>,
    symbols: Array<u32>,
    names: Array<u8>,
    versions: Array<u16>,
    relocations: Array<u32>,
    /// To which the start is added; what is looked up is in `slots` of the loader or [`Calls`].
    relative: Array<u32>,
}

/// The loader.
#[derive(Debug)]
pub(super) struct Loader {
    all: Vec<LoadedObject>,
    /// Of all files but the program.
    slots: Vec<Array<u32>>,
    frames: StackFrames,
    next: usize,
}

impl Loader {
    /// Of a program that calls this part of its libraries' functions by number. Names do not depend on any seed.
    pub(super) fn new(process: &mut ArmProcess) -> io::Result<(Self, Calls)> {
        let mut random = SplitMix64::new(0x10ad);
        let all: io::Result<Vec<LoadedObject>> = (0..)
            .zip(&TABLES)
            .map(|(number, tables)| LoadedObject::new(process, tables, number, &mut random))
            .collect();
        let of = |tables: &ObjectTables| tables.object.at(tables.looked_up_at);
        let mut slots = |tables: &ObjectTables| process.of_file("places of functions", tables.looked_up, of(tables));
        let calls = Calls { slots: slots(&TABLES[0])? };
        let slots = TABLES[1..].iter().map(slots).collect::<io::Result<_>>()?;
        let mut all = all?;
        // What is imported: names of the C library, by which the relocations of all are looked up.
        let imported: Vec<Vec<u8>> =
            (0..GOT_SLOTS).map(|i| all[2].name_of(all[2].exported(i * 271)).to_vec()).collect();
        all[0].import(&imported);
        Ok((Self { all, slots, frames: process.frames(3)?, next: 0 }, calls))
    }

    /// Relocates the next file. `false` = there is none left.
    pub(super) fn step(&mut self, calls: &mut Calls, observer: &mut impl AccessObserver) -> bool {
        // Itself first, then from the last to the first.
        let Some(&number) = [3, 2, 1, 0].get(self.next) else { return false };
        self.next += 1;
        self.frames.enter(RELOCATE, 0, 200, observer);
        let tables = self.all[number].tables;
        self.all[number].relocate(observer);
        for i in 0..tables.looked_up {
            let relocation = (tables.relative + i) * RELOCATION_WORDS;
            let from = &self.all[number];
            from.relocations.load(relocation, observer);
            let symbol = from.relocations.load(relocation + 1, observer);
            RELOCATE.execute(25, observer);
            let place = self.look_up(number, symbol.into(), observer).unwrap_or_default();
            match number.checked_sub(1) {
                None => calls.slots.store(i, place, observer),
                Some(library) => self.slots[library].store(i, place, observer),
            }
        }
        self.frames.leave(RELOCATE, 0, observer);
        true
    }

    /// Where the symbol of a file is defined: the value of the first one of this name, in the order of the search.
    fn look_up(&mut self, number: usize, symbol: u64, observer: &mut impl AccessObserver) -> Option<u32> {
        let from = &self.all[number];
        let name = from.symbols.load(symbol * SYMBOL_WORDS, observer);
        from.symbols.load(symbol * SYMBOL_WORDS + 3, observer);
        from.versions.load(symbol, observer);
        let (mut hash, mut len) = (5381u32, 0);
        loop {
            let byte = from.names.load(u64::from(name) + len, observer);
            if byte == 0 {
                break;
            }
            hash = hash.wrapping_mul(33).wrapping_add(byte.into());
            len += 1;
        }
        self.frames.enter(LOOK_UP, 1, 60 + 4 * len, observer);
        let name = &from.names[name as usize..][..len as usize + 1];
        let found = self.all.iter().find_map(|file| file.defines(name, hash, observer));
        self.frames.leave(LOOK_UP, 1, observer);
        found
    }
}

impl LoadedObject {
    fn new(
        process: &mut ArmProcess,
        tables: &'static ObjectTables,
        number: u64,
        random: &mut SplitMix64,
    ) -> io::Result<Self> {
        let at = |offset| tables.object.at(offset);
        let hashed = tables.symbol_count - tables.first_hashed;
        let hash_words = HASH_HEADER_WORDS + tables.filter_words + tables.buckets + hashed;
        let relocations = (tables.relative + tables.looked_up) * RELOCATION_WORDS;
        // Behind the loader's own data.
        let known = LOADER.at(0x1_ea80) + number * KNOWN_WORDS * 4;
        let mut loaded = Self {
            tables,
            known: process.of_file("what the loader knows of a file", KNOWN_WORDS, known)?,
            hash: process.of_file("hash table", hash_words, at(tables.hash))?,
            symbols: process.of_file("symbols", tables.symbol_count * SYMBOL_WORDS, at(tables.symbols))?,
            names: process.of_file("names", tables.name_bytes, at(tables.names))?,
            versions: process.of_file("versions", tables.symbol_count, at(tables.versions))?,
            relocations: process.of_file("relocations", relocations, at(tables.relocations))?,
            relative: process.of_file("places of data", tables.relative, at(tables.relative_at))?,
        };
        loaded.fill(random);
        Ok(loaded)
    }

    /// Makes up names, puts symbols in the order of their buckets, and lists what is to be relocated.
    fn fill(&mut self, random: &mut SplitMix64) {
        let tables = self.tables;
        let mean = tables.name_bytes / tables.symbol_count;
        let mut names = Vec::new();
        let mut at = 1;
        for number in 0..tables.symbol_count {
            let left = tables.symbol_count - number;
            // Short enough for at least three letters and a zero for each one left.
            let most = (tables.name_bytes - at - 4 * left).min(2 * mean.saturating_sub(4));
            let len = 3 + random.below(most + 1);
            let name: Vec<u8> = (0..len).map(|_| b'a' + random.below(26) as u8).collect();
            let bucket = match number < tables.first_hashed {
                true => 0,
                false => 1 + hash(&name) % tables.buckets as u32,
            };
            self.names.as_mut()[at as usize..][..len as usize].copy_from_slice(&name);
            names.push((bucket, at, name));
            at += len + 1;
        }
        names.sort();
        let (filter, buckets, chains) = (self.filter().start, self.buckets().start, self.chains().start);
        for (symbol, (bucket, at, name)) in names.iter().enumerate() {
            let words = &mut self.symbols.as_mut()[symbol * SYMBOL_WORDS as usize..];
            // Its name, and what it stands for: here its number.
            (words[0], words[1]) = (*at as u32, symbol as u32 + 1);
            if *bucket == 0 {
                continue;
            }
            let hash = hash(name);
            let word = u64::from(hash / 32) % tables.filter_words;
            let table = self.hash.as_mut();
            table[(filter + word) as usize] |= 1 << (hash % 32) | 1 << ((hash >> tables.filter_shift) % 32);
            let first = &mut table[(buckets + u64::from(*bucket) - 1) as usize];
            if *first == 0 {
                *first = symbol as u32;
            }
            // The last of a bucket has bit 0 set.
            let is_last = names.get(symbol + 1).is_none_or(|next| next.0 != *bucket);
            table[chains as usize + symbol - tables.first_hashed as usize] = hash & !1 | u32::from(is_last);
        }
        for i in 0..tables.looked_up {
            let symbol = self.exported(i * 37);
            self.relocations.as_mut()[((tables.relative + i) * RELOCATION_WORDS + 1) as usize] = symbol as u32;
        }
    }

    fn filter(&self) -> Range<u64> {
        HASH_HEADER_WORDS..HASH_HEADER_WORDS + self.tables.filter_words
    }

    fn buckets(&self) -> Range<u64> {
        self.filter().end..self.filter().end + self.tables.buckets
    }

    fn chains(&self) -> Range<u64> {
        self.buckets().end..self.hash.len() as u64
    }

    /// One of the symbols that can be found.
    fn exported(&self, number: u64) -> u64 {
        self.tables.first_hashed + number % (self.tables.symbol_count - self.tables.first_hashed)
    }

    /// With the zero that ends it.
    fn name_of(&self, symbol: u64) -> &[u8] {
        let name = &self.names[self.symbols[(symbol * SYMBOL_WORDS) as usize] as usize..];
        let len = name.iter().position(|&byte| byte == 0).unwrap_or(name.len() - 1);
        &name[..=len]
    }

    /// Symbols that are defined elsewhere, in place of the first ones.
    fn import(&mut self, names: &[Vec<u8>]) {
        let mut at = 1;
        for (i, name) in (0..).zip(names) {
            self.names.as_mut()[at..at + name.len()].copy_from_slice(name);
            self.symbols.as_mut()[i * SYMBOL_WORDS as usize] = at as u32;
            self.relocations.as_mut()[i * RELOCATION_WORDS as usize + 1] = i as u32;
            at += name.len();
        }
    }

    /// Adds the start to each place that holds an address.
    fn relocate(&mut self, observer: &mut impl AccessObserver) {
        for i in 0..self.tables.relative {
            self.relocations.load(i * RELOCATION_WORDS, observer);
            self.relocations.load(i * RELOCATION_WORDS + 1, observer);
            let offset = self.relative.load(i, observer);
            self.relative.store(i, offset.wrapping_add(self.tables.object.at(0) as u32), observer);
        }
        RELOCATE.execute(1 + 6 * self.tables.relative, observer);
    }

    /// The value of the symbol of this name, if it is here.
    fn defines(&self, name: &[u8], hash: u32, observer: &mut impl AccessObserver) -> Option<u32> {
        let tables = self.tables;
        self.known.load_span(0, ASKED_WORDS, 1, observer);
        let word = self.hash.load(self.filter().start + u64::from(hash / 32) % tables.filter_words, observer);
        LOOK_UP.execute(30, observer);
        if word >> (hash % 32) & word >> ((hash >> tables.filter_shift) % 32) & 1 == 0 {
            return None;
        }
        let mut symbol = u64::from(self.hash.load(self.buckets().start + u64::from(hash) % tables.buckets, observer));
        if symbol == 0 {
            return None;
        }
        loop {
            let chained = self.hash.load(self.chains().start + symbol - tables.first_hashed, observer);
            LOOK_UP.execute(6, observer);
            if chained | 1 == hash | 1 {
                let [at, value] = [0, 1].map(|word| self.symbols.load(symbol * SYMBOL_WORDS + word, observer));
                if self.is_named(at, name, observer) {
                    self.versions.load(symbol, observer);
                    return Some(value);
                }
            }
            if chained & 1 == 1 {
                return None;
            }
            symbol += 1;
        }
    }

    fn is_named(&self, at: u32, name: &[u8], observer: &mut impl AccessObserver) -> bool {
        COMPARE.execute(8 + 3 * name.len() as u64, observer);
        name.iter().zip(u64::from(at)..).all(|(&byte, at)| self.names.load(at, observer) == byte)
    }
}

/// The GNU hash of a name.
fn hash(name: &[u8]) -> u32 {
    name.iter().fold(5381, |hash, &byte| hash.wrapping_mul(33).wrapping_add(byte.into()))
}

#[cfg(test)]
mod tests;
