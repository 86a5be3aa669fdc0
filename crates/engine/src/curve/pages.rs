//! Dense numbers for pages.

use std::collections::HashMap;

/// log2 of the neighbouring pages that get their numbers together: a program touches pages in
/// clusters, so that what is kept by number lies close and the table of clusters stays small.
const CLUSTER_SHIFT: u32 = 8;

/// Numbers the pages of each process.
#[derive(Default)]
pub struct PageNumbers {
    processes: HashMap<u32, usize>,
    tables: Vec<ClusterTable>,
    current: usize,
    clusters: u32,
}

impl PageNumbers {
    /// Page numbers are this process's from here on.
    pub fn enter(&mut self, process: u32) {
        self.current = *self.processes.entry(process).or_insert_with(|| {
            self.tables.push(ClusterTable::default());
            self.tables.len() - 1
        });
    }

    /// The dense number of a page of the current process.
    #[inline]
    pub fn number(&mut self, page_number: u64) -> u32 {
        let cluster = self.tables[self.current].find(page_number >> CLUSTER_SHIFT, &mut self.clusters);
        cluster << CLUSTER_SHIFT | page_number as u32 & ((1 << CLUSTER_SHIFT) - 1)
    }
}

/// Open addressing with linear probing; at most half full.
#[derive(Default)]
struct ClusterTable {
    /// Cluster's page-number part + 1 (0 = free), and its dense number.
    slots: Vec<(u64, u32)>,
    used: usize,
    last: (u64, u32),
}

impl ClusterTable {
    #[inline]
    fn find(&mut self, key: u64, next: &mut u32) -> u32 {
        if self.last.0 == key + 1 {
            return self.last.1;
        }
        let number = self.search(key, next);
        self.last = (key + 1, number);
        number
    }

    #[inline]
    fn search(&mut self, key: u64, next: &mut u32) -> u32 {
        if !self.slots.is_empty() {
            let mut at = self.home(key);
            while self.slots[at].0 != 0 {
                if self.slots[at].0 == key + 1 {
                    return self.slots[at].1;
                }
                at = (at + 1) & (self.slots.len() - 1);
            }
        }
        self.insert(key, next)
    }

    #[cold]
    fn insert(&mut self, key: u64, next: &mut u32) -> u32 {
        if 2 * (self.used + 1) > self.slots.len() {
            let old = std::mem::take(&mut self.slots);
            self.slots = vec![(0, 0); (2 * old.len()).max(64)];
            for slot in old.into_iter().filter(|slot| slot.0 != 0) {
                self.place(slot);
            }
        }
        let number = *next;
        // 2^24 clusters of 1 MiB: 16 TiB touched. Beyond it numbers would repeat.
        *next = number.checked_add(1).filter(|&n| n < 1 << (u32::BITS - CLUSTER_SHIFT)).unwrap_or(number);
        self.place((key + 1, number));
        self.used += 1;
        number
    }

    fn place(&mut self, slot: (u64, u32)) {
        let mut at = self.home(slot.0 - 1);
        while self.slots[at].0 != 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = slot;
    }

    /// Multiplicative hashing by 2^64 over the golden ratio.
    #[inline]
    fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.slots.len() - 1)
    }
}
