//! A set-associative array, entry by entry (SEMANTICS.md §9).

use std::collections::BTreeSet;

use lookaside_machine::{Replacement, Ways};
use lookaside_stats::SplitMix64;

/// Sets of ways of any kind of entry.
pub struct TwinArray<E> {
    sets: Vec<TwinSet<E>>,
    policy: Replacement,
    generator: SplitMix64,
}

struct TwinSet<E> {
    ways: Vec<Option<E>>,
    /// LRU: all ways, least recent first.
    oldest_first: Vec<usize>,
    /// FIFO.
    pointer: usize,
    /// SRRIP: by way, 0 (soon) to 3.
    interval: Vec<u32>,
    /// Tree-PLRU: the nodes, as first way and end, whose victim is on the right.
    victim_right: BTreeSet<WaySpan>,
}

impl<E> TwinArray<E> {
    pub fn new(entries: u64, ways: Ways, policy: Replacement, generator: SplitMix64) -> Self {
        let ways = match ways {
            Ways::Count(n) => n as usize,
            Ways::Full(_) => entries as usize,
        };
        let sets = (0..entries as usize / ways)
            .map(|_| TwinSet {
                ways: (0..ways).map(|_| None).collect(),
                oldest_first: (0..ways).collect(),
                pointer: 0,
                interval: vec![0; ways],
                victim_right: BTreeSet::new(),
            })
            .collect();
        Self { sets, policy, generator }
    }

    pub fn held(&self) -> u64 {
        self.sets.iter().flat_map(|set| &set.ways).filter(|way| way.is_some()).count() as u64
    }

    pub fn sets(&self) -> u64 {
        self.sets.len() as u64
    }

    /// The lowest way of the set whose entry is the one meant.
    pub fn find(&self, set: u64, meant: impl Fn(&E) -> bool) -> Option<usize> {
        self.sets[set as usize].ways.iter().position(|way| way.as_ref().is_some_and(&meant))
    }

    pub fn entry(&mut self, set: u64, way: usize) -> &mut E {
        self.sets[set as usize].ways[way].as_mut().expect("a way that find gave")
    }

    /// A hit.
    pub fn touch(&mut self, set: u64, way: usize) {
        if self.policy != Replacement::Fifo {
            self.sets[set as usize].use_way(way);
        }
        self.sets[set as usize].interval[way] = 0;
    }

    /// A fill; `true` if it threw out a valid entry.
    pub fn fill(&mut self, set: u64, entry: E) -> bool {
        self.replace(set, entry).is_some()
    }

    /// A fill: the valid entry that it threw out.
    pub fn replace(&mut self, set: u64, entry: E) -> Option<E> {
        let set = &mut self.sets[set as usize];
        let count = set.ways.len();
        let free = set.ways.iter().position(Option::is_none);
        let way = free.unwrap_or_else(|| match self.policy {
            Replacement::Lru => set.oldest_first[0],
            Replacement::Fifo => {
                let way = set.pointer;
                set.pointer = (way + 1) % count;
                way
            }
            Replacement::TreePlru => walk(count, |node, _| set.victim_right.contains(&node)).0,
            Replacement::Random => self.generator.below_u32(count as u32) as usize,
            Replacement::Srrip => {
                while !set.interval.contains(&3) {
                    set.interval.iter_mut().for_each(|interval| *interval += 1);
                }
                set.interval.iter().position(|interval| *interval == 3).expect("it was moved on until there is one")
            }
        });
        let old = set.ways[way].replace(entry);
        set.use_way(way);
        set.interval[way] = 2;
        old
    }

    /// A way becomes invalid.
    pub fn remove(&mut self, set: u64, way: usize) {
        self.sets[set as usize].ways[way] = None;
    }

    /// Invalidates the entries meant; how many.
    pub fn invalidate(&mut self, meant: impl Fn(&E) -> bool) -> u64 {
        let mut gone = 0;
        for way in self.sets.iter_mut().flat_map(|set| &mut set.ways) {
            if way.as_ref().is_some_and(&meant) {
                *way = None;
                gone += 1;
            }
        }
        gone
    }
}

impl<E> TwinSet<E> {
    /// Hit and fill alike: the most recent way, and every tree node points away from it.
    fn use_way(&mut self, way: usize) {
        self.oldest_first.retain(|&w| w != way);
        self.oldest_first.push(way);
        for (node, is_right) in walk(self.ways.len(), |_, middle| way >= middle).1 {
            if is_right {
                self.victim_right.remove(&node);
            } else {
                self.victim_right.insert(node);
            }
        }
    }
}

/// A node: the first way that it is over, and the end.
type WaySpan = (usize, usize);

/// The nodes of a tree over so many ways from the root to a way, as the ways that they are over, and whether it is on
/// their right; `right` says where to go. Sides: halves of a power of two; else at the root halves, the odd one on the
/// left, and below as many as the greatest power of two that leaves some.
fn walk(count: usize, mut right: impl FnMut(WaySpan, usize) -> bool) -> (usize, Vec<(WaySpan, bool)>) {
    let (mut from, mut to) = (0, count);
    let mut path = Vec::new();
    while to - from > 1 {
        let part = to - from;
        let mut left = if part == count { part - part / 2 } else { 1 };
        while part != count && 2 * left < part {
            left *= 2;
        }
        let is_right = right((from, to), from + left);
        path.push(((from, to), is_right));
        if is_right {
            from += left;
        } else {
            to = from + left;
        }
    }
    (from, path)
}
