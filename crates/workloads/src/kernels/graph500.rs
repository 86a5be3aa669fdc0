//! Breadth-first search over linked lists of edges, as Graph500's list-based version searches: each edge is in the
//! lists of both its ends, so that most steps along a list are TLB misses.

use std::io;

use lookaside_stats::SplitMix64;
use lookaside_timing::FlowRegister;

use crate::at_once::at_once;
use crate::checksum::fold;
use crate::memory::{Array, WorkloadMemory};
use crate::observer::AccessObserver;
use crate::rmat::Rmat;
use crate::workload::{Kernel, WorkloadSpec};

/// Steps along lists, or vertices cleared, a step.
const STEP: u64 = 256;
/// Fewest edges a vertex: Graph500's edge factor.
const EDGE_FACTOR: u64 = 16;
/// Edges drawn by one thread without a break.
const PART: usize = 1 << 14;
/// Bytes an edge takes, and a vertex.
const EDGE_BYTES: u64 = 2 * (4 + 8);
const VERTEX_BYTES: u64 = 3 * 8;

/// The vertex from the queue.
const PARENT: FlowRegister = FlowRegister::new(1);
/// The place in its list.
const PLACE: FlowRegister = FlowRegister::new(2);
/// The vertex at the edge's other end.
const OTHER: FlowRegister = FlowRegister::new(3);

/// The search.
pub(super) struct Graph500 {
    room: WorkloadMemory,
    /// Of edge k: its ends, at 2k and 2k + 1.
    ends: Array<u32>,
    /// The list of the vertex `ends[p]` goes on at `next[p]`, counted from 1; 0 = its end.
    next: Array<u64>,
    /// Where each vertex's list begins, counted from 1; 0 = it has no edge.
    heads: Array<u64>,
    /// Each vertex's parent, counted from 1; 0 = not seen yet.
    tree: Array<u64>,
    /// Vertices in the order in which they were seen.
    queue: Array<u64>,
    random: SplitMix64,
    /// Searches that are left.
    rounds: u64,
    at: SearchPhase,
    followed: u64,
    sum: u64,
}

/// Where the search is.
#[derive(Clone, Copy, Debug)]
enum SearchPhase {
    /// Before this vertex of those whose parents are being forgotten.
    Clear(u64),
    /// At this place of `parent`'s list; the queue is read and written here.
    List { p: u64, parent: u64, read: u64, write: u64 },
}

impl Graph500 {
    /// The most vertices, a power of two, that leave room for 16 edges each; as many edges as fit.
    pub(super) fn new(spec: &WorkloadSpec) -> io::Result<Self> {
        let scale = (spec.bytes / (VERTEX_BYTES + EDGE_FACTOR * EDGE_BYTES)).ilog2();
        let vertices = 1u64 << scale;
        let edges = (spec.bytes - vertices * VERTEX_BYTES) / EDGE_BYTES;
        let rmat = Rmat::new(scale, spec.seed);
        let mut room = WorkloadMemory::new(spec.pages);
        let mut graph = Self {
            ends: room.array("ends", 2 * edges, false)?,
            next: room.array("next", 2 * edges, true)?,
            heads: room.array("heads", vertices, false)?,
            tree: room.array("tree", vertices, false)?,
            queue: room.array("queue", vertices, false)?,
            room,
            random: SplitMix64::new(!spec.seed),
            rounds: spec.rounds,
            at: SearchPhase::Clear(0),
            followed: 0,
            sum: 0,
        };
        at_once(graph.ends.as_mut().chunks_mut(2 * PART).enumerate(), |(number, ends)| {
            let mut rmat = rmat.clone();
            rmat.skip_edges((number * PART) as u64);
            for ends in ends.chunks_exact_mut(2) {
                (ends[0], ends[1]) = rmat.edge();
            }
        });
        for (p, &vertex) in graph.ends.iter().enumerate() {
            graph.next.as_mut()[p] = graph.heads[vertex as usize];
            graph.heads.as_mut()[vertex as usize] = p as u64 + 1;
        }
        Ok(graph)
    }

    /// Forgets parents; after the last, begins at a root that has an edge.
    #[inline]
    fn clear(&mut self, from: u64, observer: &mut impl AccessObserver) {
        let vertices = self.tree.len() as u64;
        let to = vertices.min(from + STEP);
        for vertex in from..to {
            self.tree.store(vertex, 0, observer);
        }
        self.at = SearchPhase::Clear(to);
        if to == vertices {
            let (root, p) = loop {
                let root = self.random.below(vertices);
                let p = self.heads.load(root, observer.to(PLACE));
                if p != 0 {
                    break (root, p);
                }
            };
            self.tree.store(root, root + 1, observer);
            self.queue.store(0, root, observer);
            self.sum = fold(self.sum, root);
            self.at = SearchPhase::List { p, parent: root, read: 1, write: 1 };
        }
    }
}

impl Kernel for Graph500 {
    const NAME: &'static str = "graph500";
    const OPERATION: &'static str = "edge followed";

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("vertices", self.heads.len() as u64), ("edges", self.ends.len() as u64 / 2)]
    }

    fn room(&self) -> &WorkloadMemory {
        &self.room
    }

    fn operations(&self) -> u64 {
        self.followed
    }

    fn checksum(&self) -> u64 {
        self.sum
    }

    #[inline]
    fn step(&mut self, observer: &mut impl AccessObserver) -> bool {
        let (mut p, mut parent, mut read, mut write) = match self.at {
            _ if self.rounds == 0 => return false,
            SearchPhase::Clear(from) => {
                self.clear(from, observer);
                return true;
            }
            SearchPhase::List { p, parent, read, write } => (p, parent, read, write),
        };
        for _ in 0..STEP {
            if p == 0 {
                if read == write {
                    self.rounds -= 1;
                    self.at = SearchPhase::Clear(0);
                    return self.rounds > 0;
                }
                parent = self.queue.load(read, observer.to(PARENT));
                read += 1;
                p = self.heads.load(parent, observer.by(PARENT).to(PLACE));
                continue;
            }
            // The other end of the edge is beside this one.
            let other = u64::from(self.ends.load((p - 1) ^ 1, observer.by(PLACE).to(OTHER)));
            if self.tree.load(other, observer.by(OTHER)) == 0 {
                self.tree.store(other, parent + 1, observer.by(OTHER));
                self.queue.store(write, other, observer);
                write += 1;
                self.sum = fold(self.sum, other ^ parent << 32);
            }
            p = self.next.load(p - 1, observer.by(PLACE).to(PLACE));
            self.followed += 1;
        }
        self.at = SearchPhase::List { p, parent, read, write };
        true
    }
}

#[cfg(test)]
mod tests;
