//! Tree pseudo-LRU over a number of ways that is not a power of two: the victim that the bits point at, and the bits
//! after a use, in tables.

use lookaside_machine::{tree_left_ways, MAX_UNEVEN_TREE_WAYS};

use super::set_policy::SetPolicy;

/// A word a set. A bit that is set = the victim is on the right.
#[derive(Clone, Debug)]
pub(crate) struct UnevenTree {
    bits: Vec<u64>,
    nodes: Vec<[PlruBranch; 2]>,
    /// By way: the bits on its path, and those of them that point away from it.
    paths: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
enum PlruBranch {
    Node(u32),
    Way(u32),
}

impl UnevenTree {
    /// Over 2 to [`MAX_UNEVEN_TREE_WAYS`] ways.
    pub(super) fn new(sets: usize, ways: u32) -> Self {
        debug_assert!((2..=MAX_UNEVEN_TREE_WAYS).contains(&ways));
        let mut tree = Self { bits: vec![0; sets], nodes: Vec::new(), paths: Vec::new() };
        tree.grow(ways, (0, 0));
        tree
    }

    fn grow(&mut self, ways: u32, (on_path, away): (u64, u64)) -> PlruBranch {
        if ways == 1 {
            self.paths.push((on_path, away));
            return PlruBranch::Way(self.paths.len() as u32 - 1);
        }
        let node = self.nodes.len();
        self.nodes.push([PlruBranch::Way(0); 2]);
        let left = tree_left_ways(ways, node == 0);
        let bit = 1 << node;
        // Of a way on the left, away is to the right.
        self.nodes[node] =
            [self.grow(left, (on_path | bit, away | bit)), self.grow(ways - left, (on_path | bit, away))];
        PlruBranch::Node(node as u32)
    }

    /// The way that the bits point at.
    #[inline]
    fn victim(&self, bits: u64) -> u32 {
        let mut node = 0;
        loop {
            match self.nodes[node as usize][(bits >> node & 1) as usize] {
                PlruBranch::Node(next) => node = next,
                PlruBranch::Way(way) => return way,
            }
        }
    }
}

impl SetPolicy for UnevenTree {
    #[inline]
    fn touch(&mut self, set: usize, way: u32) {
        let (on_path, away) = self.paths[way as usize];
        self.bits[set] = self.bits[set] & !on_path | away;
    }

    #[inline]
    fn replace(&mut self, set: usize, invalid: impl FnOnce() -> Option<u32>) -> u32 {
        let way = invalid().unwrap_or_else(|| self.victim(self.bits[set]));
        self.touch(set, way);
        way
    }
}
