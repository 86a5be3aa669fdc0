//! Free blocks by size: two-level segregated lists (TLSF: Masmano et al., ECRTS 2004), found and changed in constant time.
//!
//! A block's class is that of its *gross* size: what it would fill with the [`RUN_OVERHEAD`] of a run of pages. So a whole run of
//! 2^k pages begins a class, and a request for all of it is not rounded up past it. Where no class above has a block, the first 16 of
//! the request's own class are looked at: runs of other lengths are given whole too.

use super::block::{Block, MIN_BLOCK, RUN_OVERHEAD};

/// log2 of the classes that sizes between two powers of two are divided into: a block found is at most 1/16 larger than it must be.
const SECOND_LOG2: u32 = 4;
const SECOND: usize = 1 << SECOND_LOG2;
/// Below this gross size classes are 16 bytes apart: 2^8 bytes are the first that make 16 classes of 16 bytes.
const LINEAR_LOG2: u32 = 8;
/// First-level classes at most: gross sizes below 2^(MAX_FIRST + 7).
pub(crate) const MAX_FIRST: usize = 30;
/// A power of two, so that masked numbers need no check.
const FIRST_ROOM: usize = MAX_FIRST.next_power_of_two();
/// Most blocks of a list that are looked at where no list is sure to have one that is large enough. A colour of rows of sets has as many
/// runs as it has ways: 16 in the largest TLBs that have sets. It bounds the call: each block that is looked at may miss the caches.
const LOOKED_AT: usize = 16;
/// Bytes of the longest run, a multiple of any page: gross sizes end below the next power of two.
pub(crate) const MAX_RUN: usize = 1 << (MAX_FIRST as u32 + LINEAR_LOG2 - 2);

/// Lists of free blocks. Its lists follow it in memory: see [`Bins::bytes`].
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Bins {
    /// Bit f: some list of first-level class f holds a block.
    first: u32,
    /// First-level classes that there is room for.
    classes: u32,
    /// Bit s of class f: list (f, s) holds a block.
    second: [u16; FIRST_ROOM],
    heads: [Block; 0],
}

/// Class of a gross size: rounded down. Without a branch: sizes below 2^8 count on from 0 in steps of 16
/// as those of the class above do from 16.
#[inline]
const fn class_of(gross: usize) -> (usize, usize) {
    let log2 = (gross | 1 << LINEAR_LOG2).ilog2();
    let number = ((log2 - LINEAR_LOG2) as usize * SECOND) + (gross >> (log2 - SECOND_LOG2));
    (number / SECOND, number % SECOND)
}

/// The least gross size that begins a class and is at least as large.
#[inline]
fn round_up(gross: usize) -> usize {
    let log2 = (gross | 1 << LINEAR_LOG2).ilog2();
    let step = (1usize << (log2 - SECOND_LOG2)) - 1;
    (gross + step) & !step
}

impl Bins {
    /// Bytes that the lists for blocks of runs up to `run_bytes` take.
    pub(crate) const fn bytes(run_bytes: usize) -> usize {
        let (first, _) = class_of(run_bytes);
        std::mem::size_of::<Self>() + (first + 1) * SECOND * std::mem::size_of::<Block>()
    }

    /// Makes empty lists.
    ///
    /// # Safety
    /// `at` points to [`Bins::bytes`] writable bytes that are nobody else's, aligned to 8, and stay so.
    pub(crate) unsafe fn init(at: *mut Self, run_bytes: usize) {
        let (first, _) = class_of(run_bytes);
        // SAFETY: the caller's; null is a valid `Block`.
        unsafe {
            std::ptr::write_bytes(at.cast::<u8>(), 0, Self::bytes(run_bytes));
            (*at).classes = first as u32 + 1;
        }
    }

    #[inline]
    fn head(&mut self, f: usize, s: usize) -> *mut Block {
        debug_assert!(f < self.classes as usize);
        let heads: *mut Block = std::ptr::addr_of_mut!(self.heads).cast();
        // SAFETY: the lists of all `classes` lie behind this structure (`init`).
        unsafe { heads.add(f * SECOND + s) }
    }

    /// Puts a free block first in its list.
    ///
    /// # Safety
    /// The block is free, of this heap, and in no list.
    #[inline]
    pub(crate) unsafe fn insert(&mut self, block: Block) {
        // SAFETY: the block is free, so its first two words are links; so are those of the list's first.
        unsafe {
            let (f, s) = class_of(block.size() + RUN_OVERHEAD);
            let head = self.head(f, s);
            block.set_links(*head, Block::NULL);
            if (*head).is_null() {
                self.second[f % FIRST_ROOM] |= 1 << s;
                self.first |= 1 << f;
            } else {
                (*head).set_before(block);
            }
            *head = block;
        }
    }

    /// Takes a free block out of its list.
    ///
    /// # Safety
    /// The block is in a list here.
    #[inline]
    pub(crate) unsafe fn remove(&mut self, block: Block) {
        // SAFETY: links of blocks in lists are blocks in lists.
        unsafe {
            let (next, before) = block.links();
            if !next.is_null() {
                next.set_before(before);
            }
            if !before.is_null() {
                before.set_next(next);
                return;
            }
            let (f, s) = class_of(block.size() + RUN_OVERHEAD);
            *self.head(f, s) = next;
            if next.is_null() {
                self.clear(f, s);
            }
        }
    }

    /// A free block of at least `size` bytes that is a run of pages as a whole, left in its list; null if none is among the first of the lists
    /// for this size and for that of the longest run, `longest`.
    pub(crate) fn find_run(&mut self, size: usize, longest: usize) -> Block {
        // What is left of longer runs may lie in these lists too.
        let fits = |block: Block| block.size() >= size && block.is_whole_run();
        let own = self.list_for(size).map_or(Block::NULL, |(f, s)| self.look(f, s, fits));
        let lists = [size, longest].map(|size| class_of(size + RUN_OVERHEAD));
        lists.iter().fold(own, |found, &(f, s)| if found.is_null() { self.look(f, s, fits) } else { found })
    }

    /// The first block of a list's first ones that fits, or null.
    fn look(&mut self, f: usize, s: usize, fits: impl Fn(Block) -> bool) -> Block {
        if f >= self.classes as usize {
            return Block::NULL;
        }
        // SAFETY: a list that there is room for; blocks in lists are free, so that they have links.
        let mut block = unsafe { *self.head(f, s) };
        for _ in 0..LOOKED_AT {
            if block.is_null() || fits(block) {
                return block;
            }
            // SAFETY: as above.
            block = unsafe { block.links().0 };
        }
        Block::NULL
    }

    /// Takes a block out of the list of its own class, where `list_for` rounds up past it.
    #[cold]
    fn take_among(&mut self, size: usize) -> Block {
        let (f, s) = class_of(size + RUN_OVERHEAD);
        let block = self.look(f, s, |block| block.size() >= size);
        if !block.is_null() {
            // SAFETY: it is in that list.
            unsafe { self.remove(block) };
        }
        block
    }

    /// A free block of at least `size` bytes, taken out of its list; null if no list is sure to have one, nor the first blocks of its own
    /// class do.
    #[inline]
    pub(crate) fn take(&mut self, size: usize) -> Block {
        let Some((f, s)) = self.list_for(size) else { return self.take_among(size) };
        // SAFETY: a list that holds a block; blocks in lists are free, so that they have links.
        unsafe {
            let block = *self.head(f, s);
            let (next, _) = block.links();
            *self.head(f, s) = next;
            if next.is_null() {
                self.clear(f, s);
            } else {
                next.set_before(Block::NULL);
            }
            block
        }
    }

    /// The first list that holds blocks, all of at least `size` bytes.
    #[inline]
    fn list_for(&self, size: usize) -> Option<(usize, usize)> {
        let (f, s) = class_of(round_up(size + RUN_OVERHEAD));
        if f >= self.classes as usize {
            return None;
        }
        let here = self.second[f % FIRST_ROOM] & (u16::MAX << s);
        if here != 0 {
            return Some((f, here.trailing_zeros() as usize));
        }
        let above = self.first & (u32::MAX << f) & !(1 << f);
        if above == 0 {
            return None;
        }
        let f = above.trailing_zeros() as usize;
        Some((f, self.second[f % FIRST_ROOM].trailing_zeros() as usize))
    }

    /// A list that holds nothing any more.
    #[inline]
    fn clear(&mut self, f: usize, s: usize) {
        let second = &mut self.second[f % FIRST_ROOM];
        *second &= !(1 << s);
        if *second == 0 {
            self.first &= !(1 << f);
        }
    }

    /// Whether bits and lists agree, and each list's first block belongs there. Constant time: only first blocks are looked at.
    pub(crate) fn agree(&mut self) -> bool {
        (0..self.classes as usize).all(|f| {
            (self.first >> f & 1 == 1) == (self.second[f % FIRST_ROOM] != 0)
                && (0..SECOND).all(|s| {
                    // SAFETY: the lists of all classes are there.
                    let head = unsafe { *self.head(f, s) };
                    if head.is_null() {
                        return self.second[f % FIRST_ROOM] >> s & 1 == 0;
                    }
                    // SAFETY: a block in a list is free, so that it has links.
                    let ((_, before), size) = unsafe { (head.links(), head.size()) };
                    self.second[f % FIRST_ROOM] >> s & 1 == 1
                        && head.is_free()
                        && before.is_null()
                        && size >= MIN_BLOCK
                        && class_of(size + RUN_OVERHEAD) == (f, s)
                })
        }) && self.first >> self.classes == 0
    }
}

#[cfg(test)]
mod tests {
    use super::{class_of, round_up, MAX_FIRST, MAX_RUN, SECOND};
    use proptest::prelude::*;

    #[test]
    fn the_longest_run_is_in_the_last_class() {
        assert_eq!(class_of(MAX_RUN).0, MAX_FIRST - 1);
    }

    #[test]
    fn whole_runs_begin_classes() {
        for pages in (1..=16usize).chain([32, 64, 1 << 20]) {
            let gross = pages << 12;
            assert_eq!(round_up(gross), gross, "{pages}");
            assert_ne!(class_of(gross), class_of(gross - 16));
        }
    }

    proptest! {
        #[test]
        fn classes_rise_with_size_and_rounding_finds_the_next(units in 3usize..MAX_RUN / 16) {
            let gross = units * 16;
            let rank = |gross| { let (f, s) = class_of(gross); f * SECOND + s };
            prop_assert!(rank(gross + 16) - rank(gross) <= 1);
            let up = round_up(gross);
            prop_assert!(up >= gross && up - gross <= gross / SECOND);
            // No smaller size is in the class that a rounded request begins at.
            prop_assert!(up == gross && (gross < 256 || rank(gross - 16) < rank(gross)) || rank(gross) + 1 == rank(up));
            prop_assert!(rank(up - 16) < rank(up));
        }
    }
}
