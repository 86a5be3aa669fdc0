//! A cache that is indexed and tagged by virtual addresses, by itself: for systems that the engine does not run
//! (`SEMANTICS.md` §13).

use lookaside_machine::{Cache, Replacement};

use crate::assoc::{ArrayShape, Assoc, EMPTY_KEY};
use crate::os::{generator, Structure};
use crate::set_index::SetIndex;

/// What became of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineUse {
    /// The line was there.
    Hit,
    /// It was fetched, into an invalid way or over a clean line.
    Filled,
    /// It was fetched over a dirty line, which is written back.
    FilledOverDirty,
    /// It was not there, and the cache is left as it was: a store, which such a cache does not fill on.
    Passed,
}

/// A virtually indexed, virtually tagged write-back cache: a line belongs to an address, whoever uses that.
///
/// Loads fill, and stores do where the cache's description says so. Nothing but a flush, or another line, puts a line
/// out.
///
/// ```
/// use lookaside_engine::{LineUse, VirtualCache};
/// let machine = lookaside_machine::preset("sa1100")?;
/// let mut cache = VirtualCache::new(&machine.caches[0], 1);
/// assert_eq!(cache.access(0x8000, true), LineUse::Passed, "the StrongARM's are filled by loads alone");
/// assert_eq!(cache.access(0x8000, false), LineUse::Filled);
/// assert_eq!(cache.access(0x801f, true), LineUse::Hit);
/// assert_eq!(cache.flush(), 1, "dirty lines written back");
/// assert_eq!(cache.access(0x8000, false), LineUse::Filled);
/// # Ok::<(), lookaside_machine::MachineError>(())
/// ```
#[derive(Clone, Debug)]
pub struct VirtualCache {
    lines: Assoc,
    dirty: Vec<bool>,
    write_allocate: bool,
    line_shift: u32,
    index: SetIndex,
}

impl VirtualCache {
    /// Empty, with the cache's size, ways, lines and policies. `seed` is what random replacement draws from.
    pub fn new(cache: &Cache, seed: u64) -> Self {
        let sets = cache.sets().max(1);
        let ways = cache.ways.count(cache.lines()).max(1);
        Self {
            lines: Assoc::new(shape(sets, ways, cache.replacement), generator(seed, Structure::Cache, 0, 0)),
            dirty: vec![false; (sets * ways) as usize],
            write_allocate: cache.write_allocate,
            line_shift: cache.line_bytes.trailing_zeros(),
            index: SetIndex::new(&cache.index, sets),
        }
    }

    /// The line of a byte is used, and filled if it was not there and the cache does that; a store makes it dirty.
    #[inline]
    pub fn access(&mut self, addr: u64, store: bool) -> LineUse {
        let line = addr >> self.line_shift;
        let set = self.index.set_of(line);
        match self.lines.find(set, line) {
            Some(slot) => {
                self.lines.touch(set, slot);
                self.dirty[slot] |= store;
                LineUse::Hit
            }
            None if store && !self.write_allocate => LineUse::Passed,
            None => {
                let (slot, old) = self.lines.fill(set, line);
                let was_dirty = std::mem::replace(&mut self.dirty[slot], store);
                if old != EMPTY_KEY && was_dirty {
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
pub struct StandaloneTlb {
    entries: Assoc,
    words: Vec<u32>,
    set_mask: u64,
    /// Number and word of the entry that was found last, if nothing was filled or dropped since: to use the most recent
    /// entry once more changes no policy's state.
    last: Option<(u64, u32)>,
}

impl StandaloneTlb {
    /// Empty, with the array's entries, ways and policy, and the low bits of a number as its index. `seed` is what
    /// random replacement draws from.
    pub fn new(tlb: &lookaside_machine::Tlb, seed: u64) -> Self {
        let sets = tlb.sets().max(1);
        let ways = tlb.ways.count(tlb.entries).max(1);
        Self {
            entries: Assoc::new(shape(sets, ways, tlb.replacement), generator(seed, Structure::Tlb, 0, 0)),
            words: vec![0; (sets * ways) as usize],
            set_mask: u64::from(sets - 1),
            last: None,
        }
    }

    /// The word of the entry with this number, which is used.
    #[inline]
    pub fn find(&mut self, number: u64) -> Option<u32> {
        match self.last {
            Some((last, word)) if last == number => return Some(word),
            _ => {}
        }
        let set = (number & self.set_mask) as usize;
        let slot = self.entries.find(set, number)?;
        self.entries.touch(set, slot);
        let word = self.words[slot];
        self.last = Some((number, word));
        Some(word)
    }

    /// Fills an entry that is not there.
    pub fn fill(&mut self, number: u64, word: u32) {
        let (slot, _) = self.entries.fill((number & self.set_mask) as usize, number);
        self.words[slot] = word;
        self.last = None;
    }

    /// Drops the entries whose numbers the predicate picks: how many.
    pub fn invalidate(&mut self, mut picks: impl FnMut(u64) -> bool) -> u64 {
        self.last = None;
        self.entries.invalidate(|_, number| picks(number))
    }

    #[cfg(test)]
    fn valid(&self) -> usize {
        self.entries.keys().iter().filter(|key| **key != EMPTY_KEY).count()
    }
}

fn shape(sets: u32, ways: u32, replacement: Replacement) -> ArrayShape {
    ArrayShape { sets: sets as usize, ways: ways as usize, replacement, repeated_keys: false }
}

#[cfg(test)]
mod tests {
    use lookaside_machine::{preset, SharedBy, Ways};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_strongarms_cache_holds_32_lines_a_set_and_goes_round() {
        let machine = preset("sa1100").unwrap();
        let mut cache = VirtualCache::new(&machine.caches[0], 1);
        // 8 sets of 32-byte lines: pages' first lines all meet in one.
        let page = |n: u64| n << 12;
        assert!((0..32).all(|n| cache.access(page(n), false) == LineUse::Filled));
        assert!((0..32).all(|n| cache.access(page(n), n == 0) == LineUse::Hit));
        // A store to another line changes nothing: round robin puts page 0 out then as before, used or not, then page
        // 1.
        assert_eq!(cache.access(page(32), true), LineUse::Passed);
        assert_eq!(cache.access(page(32), false), LineUse::FilledOverDirty);
        assert_eq!(cache.access(page(32), true), LineUse::Hit);
        assert_eq!(cache.access(page(0), false), LineUse::Filled);
        assert_eq!(cache.access(page(2), true), LineUse::Hit);
        assert_eq!(cache.access(page(1), false), LineUse::FilledOverDirty);
        // Lines of another set are another matter.
        assert_eq!(cache.access(0x20, false), LineUse::Filled);
        assert_eq!(cache.access(page(32), true), LineUse::Hit);
        assert_eq!(cache.flush_range(page(32), page(33)), 1);
        assert_eq!(cache.access(0x20, true), LineUse::Hit);
        assert_eq!(cache.flush(), 1);
        assert_eq!(cache.flush(), 0);
    }

    /// The same by the rules' words: a list a set, of way, line and dirty.
    struct Naive {
        cache: Cache,
        sets: Vec<Vec<(u64, bool)>>,
        /// Round robin's next way of each set.
        next: Vec<usize>,
    }

    impl Naive {
        fn access(&mut self, addr: u64, store: bool) -> LineUse {
            let line = addr / u64::from(self.cache.line_bytes);
            let of = (line % self.sets.len() as u64) as usize;
            let ways = self.cache.ways.count(self.cache.lines()) as usize;
            let set = &mut self.sets[of];
            if let Some(at) = set.iter().position(|its| its.0 == line) {
                set[at].1 |= store;
                if self.cache.replacement == Replacement::Lru {
                    let its = set.remove(at);
                    set.push(its);
                }
                return LineUse::Hit;
            }
            if store && !self.cache.write_allocate {
                return LineUse::Passed;
            }
            if set.len() < ways {
                set.push((line, store));
                return LineUse::Filled;
            }
            let out = match self.cache.replacement {
                Replacement::Lru => {
                    set.push((line, store));
                    set.remove(0)
                }
                _ => {
                    let way = self.next[of];
                    self.next[of] = (way + 1) % ways;
                    std::mem::replace(&mut set[way], (line, store))
                }
            };
            if out.1 {
                LineUse::FilledOverDirty
            } else {
                LineUse::Filled
            }
        }

        fn flush(&mut self) -> u64 {
            self.sets.iter_mut().flat_map(std::mem::take).filter(|its| its.1).count() as u64
        }
    }

    proptest! {
        #[test]
        fn a_cache_is_its_naive_twin(
            (sets, ways) in (0..3u32, 1..5u32), lru in any::<bool>(), write_allocate in any::<bool>(),
            accesses in prop::collection::vec((0..60u64, any::<bool>(), 0..25u8), 0..300),
        ) {
            let cache = Cache {
                name: String::new(),
                level: 1,
                serves: Vec::new(),
                size: u64::from(32 * ways) << sets,
                ways: Ways::Count(ways),
                line_bytes: 32,
                index: Default::default(),
                replacement: if lru { Replacement::Lru } else { Replacement::Fifo },
                write_allocate,
                filled_by: Default::default(),
                hit_cycles: 1.0,
                shared_by: SharedBy::Core,
            };
            let mut fast = VirtualCache::new(&cache, 1);
            let mut slow = Naive { sets: vec![Vec::new(); 1 << sets], next: vec![0; 1 << sets], cache };
            for (place, store, die) in accesses {
                if die == 0 {
                    prop_assert_eq!(fast.flush(), slow.flush());
                }
                prop_assert_eq!(fast.access(8 * place, store), slow.access(8 * place, store));
            }
            prop_assert_eq!(fast.flush(), slow.flush());
        }
    }

    proptest! {
        /// Sets of ways as lists, the next to go first; an invalid way is filled before one goes.
        #[test]
        fn a_tlb_is_its_naive_twin(
            (sets, ways) in (0..3u32, 1..5u32), lru in any::<bool>(),
            steps in prop::collection::vec((0..20u64, 0..16u8), 0..300),
        ) {
            let mut tlb = preset("sa1100").unwrap().tlbs[0].clone();
            tlb.entries = ways << sets;
            tlb.ways = Ways::Count(ways);
            tlb.replacement = if lru { Replacement::Lru } else { Replacement::Fifo };
            let mut fast = StandaloneTlb::new(&tlb, 1);
            let mut slow: Vec<Vec<(u64, u32)>> = vec![Vec::new(); 1 << sets];
            let mut next = vec![0; 1 << sets];
            for (n, (number, kind)) in steps.into_iter().enumerate() {
                let of = (number % (1 << sets)) as usize;
                // Everything goes: where a part goes, lists would have to know of holes.
                if kind == 0 {
                    let all: usize = slow.iter_mut().map(|set| std::mem::take(set).len()).sum();
                    prop_assert_eq!(fast.invalidate(|_| true), all as u64);
                    continue;
                }
                let at = slow[of].iter().position(|entry| entry.0 == number);
                prop_assert_eq!(fast.find(number), at.map(|at| slow[of][at].1));
                match at {
                    Some(at) if lru => {
                        let entry = slow[of].remove(at);
                        slow[of].push(entry);
                    }
                    Some(_) => {}
                    None => {
                        let word = n as u32;
                        fast.fill(number, word);
                        if slow[of].len() < ways as usize {
                            slow[of].push((number, word));
                        } else if lru {
                            slow[of].remove(0);
                            slow[of].push((number, word));
                        } else {
                            slow[of][next[of]] = (number, word);
                            next[of] = (next[of] + 1) % ways as usize;
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn entries_keep_their_words_until_they_are_dropped() {
        let machine = preset("sa1100").unwrap();
        let mut tlb = StandaloneTlb::new(&machine.tlbs[0], 1);
        (0..33).for_each(|number| tlb.fill(number, 2 * number as u32));
        assert_eq!((tlb.find(0), tlb.find(32), tlb.valid()), (None, Some(64), 32));
        assert_eq!(tlb.find(31), Some(62));
        assert_eq!(tlb.invalidate(|number| number >= 30), 3);
        assert_eq!((tlb.find(31), tlb.find(29), tlb.valid()), (None, Some(58), 29));
        tlb.fill(31, 5);
        assert_eq!(tlb.find(31), Some(5));
    }
}
