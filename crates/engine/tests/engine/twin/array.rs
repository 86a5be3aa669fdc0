//! A set-associative array, entry by entry (SEMANTICS.md §9).

use lookaside_engine::os::SplitMix64;
use lookaside_machine::{Replacement, Ways};

/// Sets of ways of any kind of entry.
pub struct Array<E> {
    sets: Vec<Set<E>>,
    policy: Replacement,
    generator: SplitMix64,
}

struct Set<E> {
    ways: Vec<Option<E>>,
    /// LRU: all ways, least recent first.
    oldest_first: Vec<usize>,
    /// FIFO.
    pointer: usize,
    /// Tree-PLRU in heap order from node 1: the victim is on the right.
    victim_right: Vec<bool>,
}

impl<E> Array<E> {
    pub fn new(entries: u64, ways: Ways, policy: Replacement, generator: SplitMix64) -> Self {
        let ways = match ways {
            Ways::Count(n) => n as usize,
            Ways::Full(_) => entries as usize,
        };
        let sets = (0..entries as usize / ways)
            .map(|_| Set {
                ways: (0..ways).map(|_| None).collect(),
                oldest_first: (0..ways).collect(),
                pointer: 0,
                victim_right: vec![false; ways],
            })
            .collect();
        Self { sets, policy, generator }
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
    }

    /// A fill; `true` if it threw out a valid entry.
    pub fn fill(&mut self, set: u64, entry: E) -> bool {
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
            Replacement::TreePlru => {
                let mut node = 1;
                while node < count {
                    node = 2 * node + usize::from(set.victim_right[node]);
                }
                node - count
            }
            Replacement::Random => self.generator.next_way(count as u32) as usize,
        });
        set.ways[way] = Some(entry);
        set.use_way(way);
        free.is_none()
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

impl<E> Set<E> {
    /// Hit and fill alike: the most recent way, and every tree node points away from it.
    fn use_way(&mut self, way: usize) {
        self.oldest_first.retain(|&w| w != way);
        self.oldest_first.push(way);
        if self.ways.len().is_power_of_two() {
            let mut node = way + self.ways.len();
            while node > 1 {
                self.victim_right[node / 2] = node.is_multiple_of(2);
                node /= 2;
            }
        }
    }
}
