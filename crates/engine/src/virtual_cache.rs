//! A cache that is indexed and tagged by virtual addresses, by itself: for systems that the engine does not run
//! (`SEMANTICS.md` §13).

use lookaside_machine::{Cache, Replacement};

use crate::assoc::{Assoc, Shape, EMPTY};
use crate::os::{SplitMix64, Structure};

/// What became of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineUse {
    /// The line was there.
    Hit,
    /// It was fetched, into an invalid way or over a clean line.
    Filled,
    /// It was fetched over a dirty line, which is written back.
    FilledOverDirty,
}

/// A virtually indexed, virtually tagged write-back cache: a line belongs to an address, whoever uses that.
///
/// Loads and stores fill alike. Nothing but a flush, or another line, puts a line out.
///
/// ```
/// use lookaside_engine::{LineUse, VirtualCache};
/// let machine = lookaside_machine::preset("sa1100")?;
/// let mut cache = VirtualCache::new(&machine.caches[0], 1);
/// assert_eq!(cache.access(0x8000, true), LineUse::Filled);
/// assert_eq!(cache.access(0x801f, false), LineUse::Hit);
/// assert_eq!(cache.flush(), 1, "dirty lines written back");
/// assert_eq!(cache.access(0x8000, false), LineUse::Filled);
/// # Ok::<(), lookaside_machine::MachineError>(())
/// ```
#[derive(Clone, Debug)]
pub struct VirtualCache {
    lines: Assoc,
    dirty: Vec<bool>,
    line_shift: u32,
    set_mask: u64,
}

impl VirtualCache {
    /// Empty, with the cache's size, ways, lines and policy. `seed` is what random replacement draws from.
    pub fn new(cache: &Cache, seed: u64) -> Self {
        let sets = cache.sets().max(1);
        let ways = cache.ways.count(cache.lines()).max(1);
        Self {
            lines: Assoc::new(
                shape(sets, ways, cache.replacement),
                SplitMix64::of_instance(seed, Structure::Cache, 0, 0),
            ),
            dirty: vec![false; (sets * ways) as usize],
            line_shift: cache.line_bytes.trailing_zeros(),
            set_mask: u64::from(sets - 1),
        }
    }

    /// The line of a byte is used, and filled if it was not there; a store makes it dirty.
    #[inline]
    pub fn access(&mut self, addr: u64, store: bool) -> LineUse {
        let line = addr >> self.line_shift;
        let set = (line & self.set_mask) as usize;
        match self.lines.find(set, line) {
            Some(slot) => {
                self.lines.touch(set, slot);
                self.dirty[slot] |= store;
                LineUse::Hit
            }
            None => {
                let (slot, old) = self.lines.fill(set, line);
                let was_dirty = std::mem::replace(&mut self.dirty[slot], store);
                if old != EMPTY && was_dirty {
                    LineUse::FilledOverDirty
                } else {
                    LineUse::Filled
                }
            }
        }
    }

    /// Empties it: how many lines were dirty and are written back.
    pub fn flush(&mut self) -> u64 {
        self.flush_range(0, u64::MAX)
    }

    /// Drops all lines that begin in `start..end`: how many were dirty and are written back.
    pub fn flush_range(&mut self, start: u64, end: u64) -> u64 {
        let (dirty, shift) = (&self.dirty, self.line_shift);
        let mut written = 0;
        self.lines.invalidate(|slot, line| {
            let goes = (start..end).contains(&(line << shift));
            written += u64::from(goes && dirty[slot]);
            goes
        });
        written
    }
}

/// A TLB array by itself, whose entries carry a word of the user's: frame, rights, domain.
///
/// Numbers are the user's too: pages of several sizes may stand in it under numbers that say their size.
#[derive(Clone, Debug)]
pub struct LoneTlb {
    entries: Assoc,
    words: Vec<u32>,
    set_mask: u64,
}

impl LoneTlb {
    /// Empty, with the array's entries, ways and policy, and the low bits of a number as its index. `seed` is what random
    /// replacement draws from.
    pub fn new(tlb: &lookaside_machine::Tlb, seed: u64) -> Self {
        let sets = tlb.sets().max(1);
        let ways = tlb.ways.count(tlb.entries).max(1);
        Self {
            entries: Assoc::new(
                shape(sets, ways, tlb.replacement),
                SplitMix64::of_instance(seed, Structure::Tlb, 0, 0),
            ),
            words: vec![0; (sets * ways) as usize],
            set_mask: u64::from(sets - 1),
        }
    }

    /// The word of the entry with this number, which is used.
    #[inline]
    pub fn find(&mut self, number: u64) -> Option<u32> {
        let set = (number & self.set_mask) as usize;
        let slot = self.entries.find(set, number)?;
        self.entries.touch(set, slot);
        Some(self.words[slot])
    }

    /// Fills an entry that is not there.
    pub fn fill(&mut self, number: u64, word: u32) {
        let (slot, _) = self.entries.fill((number & self.set_mask) as usize, number);
        self.words[slot] = word;
    }

    /// Drops the entries whose numbers the predicate picks: how many.
    pub fn invalidate(&mut self, mut picks: impl FnMut(u64) -> bool) -> u64 {
        self.entries.invalidate(|_, number| picks(number))
    }

    #[cfg(test)]
    fn valid(&self) -> usize {
        self.entries.keys().iter().filter(|key| **key != EMPTY).count()
    }
}

fn shape(sets: u32, ways: u32, replacement: Replacement) -> Shape {
    Shape { sets: sets as usize, ways: ways as usize, replacement, repeated_keys: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lookaside_machine::preset;

    #[test]
    fn the_strongarms_cache_holds_32_lines_a_set_and_goes_round() {
        let machine = preset("sa1100").unwrap();
        let mut cache = VirtualCache::new(&machine.caches[0], 1);
        // 8 sets of 32-byte lines: pages' first lines all meet in one.
        let page = |n: u64| n << 12;
        assert!((0..32).all(|n| cache.access(page(n), n == 0) == LineUse::Filled));
        assert!((0..32).all(|n| cache.access(page(n), false) == LineUse::Hit));
        // Round robin puts page 0 out, used or not, then page 1.
        assert_eq!(cache.access(page(32), true), LineUse::FilledOverDirty);
        assert_eq!(cache.access(page(0), false), LineUse::Filled);
        assert_eq!(cache.access(page(2), false), LineUse::Hit);
        assert_eq!(cache.access(page(1), true), LineUse::Filled);
        // Lines of another set are another matter.
        assert_eq!(cache.access(0x20, true), LineUse::Filled);
        assert_eq!(cache.access(page(32), false), LineUse::Hit);
        assert_eq!(cache.flush_range(page(32), page(33)), 1);
        assert_eq!(cache.flush(), 2);
        assert_eq!(cache.flush(), 0);
    }

    #[test]
    fn entries_keep_their_words_until_they_are_dropped() {
        let machine = preset("sa1100").unwrap();
        let mut tlb = LoneTlb::new(&machine.tlbs[0], 1);
        (0..33).for_each(|number| tlb.fill(number, 2 * number as u32));
        assert_eq!((tlb.find(0), tlb.find(32), tlb.valid()), (None, Some(64), 32));
        assert_eq!(tlb.invalidate(|number| number >= 30), 3);
        assert_eq!((tlb.find(31), tlb.find(29), tlb.valid()), (None, Some(58), 29));
        tlb.fill(31, 5);
        assert_eq!(tlb.find(31), Some(5));
    }
}
