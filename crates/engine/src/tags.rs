//! Short names for what TLB arrays and guest walk caches hold: a 32-bit tag in place of holder and page number.
//!
//! A *chunk* is a range of addresses that lies within one leaf table and one huge page (2 MiB, or 1 MiB). Chunks get
//! numbers as they come up, one to a holder, and a tag is such a number and the page's place in its chunk. There are
//! fewer tags than pages may ever be: when they run out, the engine gives out anew those that no entry bears.

use crate::fasthash::{spread, FastMap};

/// Id of the kernel's space in keys. Processes have ids from 1.
pub(crate) const KERNEL_ID: u64 = 0;

/// Bits of a tag below the chunk's number: which page of the chunk.
pub(crate) const PAGE_BITS: u32 = 11;

/// Bits of a chunk's place in the address space: 57-bit addresses above 20 bits.
const CHUNK_BITS: u32 = 37;

/// Largest number of a holder.
pub(crate) const MAX_HOLDER: u64 = (1 << (64 - CHUNK_BITS)) - 2;

/// Chunk numbers that there are; the tag of all ones is no chunk's.
pub(crate) const NUMBERS: u32 = (1 << (32 - PAGE_BITS)) - 1;

/// Chunks remembered.
const RECENT: usize = 64;

/// The numbers of chunks.
#[derive(Debug)]
pub(crate) struct Tags {
    numbers: FastMap<u64, u32>,
    chunks: Vec<u64>,
    recent: [(u64, u32); RECENT],
    most: u32,
}

impl Tags {
    pub(crate) fn new() -> Self {
        Self::of_most(NUMBERS)
    }

    fn of_most(most: u32) -> Self {
        Self { numbers: FastMap::default(), chunks: Vec::new(), recent: [(u64::MAX, 0); RECENT], most }
    }

    /// The first tag of a chunk (address >> chunk shift) under a holder. The caller sees to it that there is
    /// [room](Self::room).
    #[inline]
    pub(crate) fn of_chunk(&mut self, holder: u64, chunk: u64) -> u32 {
        let key = holder << CHUNK_BITS | chunk;
        let slot = (spread(key) >> 58) as usize;
        let (recent, tag) = self.recent[slot];
        if recent == key {
            return tag;
        }
        let next = self.chunks.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.chunks.push(key);
        }
        self.recent[slot] = (key, number << PAGE_BITS);
        number << PAGE_BITS
    }

    /// Holder and chunk of a tag.
    pub(crate) fn of(&self, tag: u32) -> (u64, u64) {
        let key = self.chunks[(tag >> PAGE_BITS) as usize];
        (key >> CHUNK_BITS, key & ((1 << CHUNK_BITS) - 1))
    }

    /// Chunks that can still be numbered.
    pub(crate) fn room(&self) -> u32 {
        self.most - self.chunks.len() as u32
    }

    /// These, with no chunk numbered.
    pub(crate) fn emptied(&self) -> Self {
        Self::of_most(self.most)
    }

    #[cfg(test)]
    pub(crate) fn limit(&mut self, most: u32) {
        self.most = most;
    }
}

/// The part of a tag below its chunk's number.
pub(crate) fn page_in_chunk(tag: u32) -> u32 {
    tag & ((1 << PAGE_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Setup};
    use lookaside_trace::{Block, Kind};
    use proptest::prelude::*;

    const SMALL: &str = r#"
name = "small"
clock_mhz = 1000.0
[page_table]
format = "x86-64-4level"
[[tlb]]
name = "l1"
level = 1
serves = ["load", "store"]
page_sizes = ["4K"]
entries = 4
ways = "full"
replacement = "lru"
tags = ["asid", "global"]
hit_cycles = 0.0
[[tlb]]
name = "l2"
level = 2
serves = ["load", "store"]
page_sizes = ["4K", "2M"]
entries = 16
ways = 4
replacement = "lru"
tags = ["asid", "global", "hw-thread"]
coalesce_pages = 4
hit_cycles = 7.0
[[walk_cache]]
name = "pde"
table_level = 2
entries = 6
ways = 3
replacement = "fifo"
[memory]
cycles = 100.0
"#;

    /// `directories`: the second level holds their entries too.
    fn engine(most: u32, directories: bool) -> Engine {
        let mut machine = lookaside_machine::parse(SMALL, "small").expect("a good machine");
        machine.tlbs[1].directory_entries = directories;
        let mut engine = Engine::new(Setup::new(machine)).expect("a good setup");
        engine.hardware.tags.limit(most);
        engine
    }

    fn blocks(chunks: &[u64]) -> impl Iterator<Item = Block> + '_ {
        chunks.chunks(10).map(|chunks| {
            let mut block = Block { process: 1, thread: 1, ..Block::default() };
            // Now and then a kernel page.
            let high = |chunk: u64| if chunk.is_multiple_of(11) { 0xffff_8000_0000_0000 } else { 0 };
            chunks.iter().for_each(|&chunk| block.push(Kind::Load, high(chunk) | chunk << 21 | (chunk % 7) << 12));
            block
        })
    }

    proptest! {
        #[test]
        fn giving_tags_out_anew_changes_nothing(
            chunks in proptest::collection::vec(0..300u64, 1..3000),
            directories in any::<bool>(),
        ) {
            // More are needed by an access, so that more have to be free.
            let most = if directories { 280 } else { 260 };
            let (mut rare, mut plenty) = (engine(most, directories), engine(NUMBERS, directories));
            for block in blocks(&chunks) {
                rare.run(&block);
                plenty.run(&block);
                prop_assert!(rare.hardware.tags.chunks.len() <= most as usize);
            }
            prop_assert_eq!(rare.outcome(), plenty.outcome());
        }
    }

    #[test]
    fn too_few_tags_for_what_is_held_empty_the_tlbs() {
        let chunks: Vec<u64> = (0..400).map(|i| i % 20).collect();
        let mut engine = engine(135, false);
        blocks(&chunks).for_each(|block| engine.run(&block));
        let outcome = engine.outcome();
        assert_eq!(outcome.data.accesses, 400);
        assert!(outcome.tlbs[0].invalidated > 0, "{outcome:?}");
    }

    #[test]
    fn a_tag_tells_holder_and_chunk() {
        let mut tags = Tags::new();
        let all: Vec<(u64, u64)> = (0..500).map(|i| (i * 7 % 13, i * i)).collect();
        let named: Vec<u32> = all.iter().map(|&(holder, chunk)| tags.of_chunk(holder, chunk)).collect();
        for (of, &tag) in all.iter().zip(&named) {
            assert_eq!(tags.of(tag | 5), *of);
            assert_eq!(tags.of_chunk(of.0, of.1), tag);
        }
        assert_eq!(tags.room(), NUMBERS - 500);
    }
}
