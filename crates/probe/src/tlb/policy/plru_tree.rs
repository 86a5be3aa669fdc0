//! Tree pseudo-LRU over any number of ways: two-way nodes, each with a bit that points at the side to go.

use lookaside_machine::tree_left_ways;

/// Where a branch of a node leads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TreeBranch {
    Node(usize),
    Way(usize),
}

/// The shape of a tree; its bits are kept by the set, one a node.
#[derive(Clone, Debug, PartialEq)]
pub struct PlruTree {
    nodes: Vec<[TreeBranch; 2]>,
    /// For each way the nodes above it, and on which side of them it is.
    paths: Vec<Vec<(usize, usize)>>,
}

impl PlruTree {
    /// A tree whose left sides are as large a power of two as leaves something for the right (12 = 8 + 4).
    pub fn padded(ways: usize) -> Self {
        Self::new(ways, &|ways| ways.next_power_of_two() / 2)
    }

    /// A tree whose sides are as equal as can be (12 = 6 + 6).
    pub fn balanced(ways: usize) -> Self {
        Self::new(ways, &|ways| ways.div_ceil(2))
    }

    /// Two equal sides (but for one way), each a [`PlruTree::padded`] (12 = 6 + 6, 6 = 4 + 2): the shape that the model
    /// has.
    pub fn halved(ways: usize) -> Self {
        Self::new(ways, &|part| tree_left_ways(part as u32, part == ways) as usize)
    }

    /// A tree of at least two ways; `left` says how many of some go left.
    fn new(ways: usize, left: &dyn Fn(usize) -> usize) -> Self {
        let mut tree = Self { nodes: Vec::new(), paths: Vec::new() };
        tree.grow(ways, &mut Vec::new(), left);
        tree
    }

    fn grow(&mut self, ways: usize, path: &mut Vec<(usize, usize)>, left: &dyn Fn(usize) -> usize) -> TreeBranch {
        if ways == 1 {
            self.paths.push(path.clone());
            return TreeBranch::Way(self.paths.len() - 1);
        }
        let node = self.nodes.len();
        self.nodes.push([TreeBranch::Way(0); 2]);
        for (side, ways) in [left(ways), ways - left(ways)].into_iter().enumerate() {
            path.push((node, side));
            self.nodes[node][side] = self.grow(ways, path, left);
            path.pop();
        }
        TreeBranch::Node(node)
    }

    /// The way that the bits point at.
    pub fn victim(&self, bits: &[usize]) -> usize {
        let mut at = TreeBranch::Node(0);
        loop {
            match at {
                TreeBranch::Node(node) => at = self.nodes[node][bits[node]],
                TreeBranch::Way(way) => return way,
            }
        }
    }

    /// Makes all nodes above a way point to their other side.
    pub fn point_away(&self, bits: &mut [usize], way: usize) {
        for &(node, side) in &self.paths[way] {
            bits[node] = 1 - side;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_reach_every_way_and_powers_of_two_in_turn() {
        for ways in 2..40 {
            for tree in [PlruTree::padded(ways), PlruTree::balanced(ways), PlruTree::halved(ways)] {
                let mut bits = vec![0; ways];
                let mut seen = vec![0; ways];
                for _ in 0..64 * ways {
                    let way = tree.victim(&bits);
                    tree.point_away(&mut bits, way);
                    seen[way] += 1;
                }
                assert!(seen.iter().all(|&times| times > 0), "{ways}: {seen:?}");
                assert!(!ways.is_power_of_two() || seen.iter().all(|&times| times == 64), "{ways}: {seen:?}");
            }
        }
    }
}
