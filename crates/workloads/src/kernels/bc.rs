//! Betweenness centrality by Brandes (2001), of paths from a few sources, as GAPBS's BC: a breadth-first search that
//! counts shortest paths, and its reverse, which sums up what depends on each vertex.

use std::io;

use lookaside_stats::SplitMix64;
use lookaside_timing::FlowRegister;

use crate::at_once::at_once;
use crate::checksum::fold;
use crate::memory::{Array, WorkloadMemory};
use crate::observer::AccessObserver;
use crate::rmat::Rmat;
use crate::workload::{Kernel, WorkloadSpec};

/// Edges looked at, or vertices cleared, a step.
const STEP: u64 = 256;
/// Fewest edges a vertex, as Graph500's.
const EDGE_FACTOR: u64 = 16;
/// Vertices whose edges are drawn by one thread without a break.
const PART: usize = 1 << 12;
/// Bytes an edge takes, and a vertex.
const EDGE_BYTES: u64 = 4;
const VERTEX_BYTES: u64 = 8 + 2 * 4 + 3 * 8;

/// The vertex from the queue.
const VERTEX: FlowRegister = FlowRegister::new(1);
/// Its first edge.
const EDGE: FlowRegister = FlowRegister::new(2);
/// The vertex that an edge leads to.
const OTHER: FlowRegister = FlowRegister::new(3);

/// The algorithm.
pub(super) struct Bc {
    room: WorkloadMemory,
    /// The edges that lead out of vertex v go to `neighbours[first[v]..first[v + 1]]`.
    first: Array<u64>,
    neighbours: Array<u32>,
    /// Edges from the source, counted from 1; 0 = not seen yet.
    depths: Array<u32>,
    /// Vertices in the order in which they were seen.
    queue: Array<u32>,
    /// Shortest paths from the source.
    paths: Array<f64>,
    /// Shares of shortest paths from the source that go on through a vertex.
    dependencies: Array<f64>,
    /// Sums of these over all sources.
    scores: Array<f64>,
    random: SplitMix64,
    /// Sources that are left.
    rounds: u64,
    at: BrandesPhase,
    looked: u64,
}

/// Where the algorithm is.
#[derive(Clone, Copy, Debug)]
enum BrandesPhase {
    /// Before this vertex of those being cleared.
    Clear(u64),
    /// Among the edges of the vertex before this place of the queue, which is written here.
    Forward { read: u64, write: u64, vertex: Vertex },
    /// Among the edges of the vertex at this place of the queue, on the way back.
    Backward { read: u64, vertex: Vertex, dependency: f64 },
}

/// A vertex whose edges are being looked at.
#[derive(Clone, Copy, Debug)]
struct Vertex {
    number: u64,
    depth: u32,
    paths: f64,
    /// Its edges from here on.
    edge: u64,
    end: u64,
}

impl Bc {
    /// The most vertices, a power of two, that leave room for 16 edges each; as many edges as fit.
    pub(super) fn new(spec: &WorkloadSpec) -> io::Result<Self> {
        let scale = (spec.bytes / (VERTEX_BYTES + EDGE_FACTOR * EDGE_BYTES)).ilog2();
        let vertices = 1u64 << scale;
        let edges = (spec.bytes - vertices * VERTEX_BYTES - 8) / EDGE_BYTES;
        let rmat = Rmat::new(scale, spec.seed);
        let mut room = WorkloadMemory::new(spec.pages);
        let mut bc = Self {
            first: room.array("first", vertices + 1, false)?,
            neighbours: room.array("neighbours", edges, true)?,
            depths: room.array("depths", vertices, false)?,
            queue: room.array("queue", vertices, false)?,
            paths: room.array("paths", vertices, false)?,
            dependencies: room.array("dependencies", vertices, false)?,
            scores: room.array("scores", vertices, false)?,
            room,
            random: SplitMix64::new(!spec.seed),
            rounds: spec.rounds,
            at: BrandesPhase::Clear(0),
            looked: 0,
        };
        bc.build(rmat, edges);
        Ok(bc)
    }

    /// Draws the graph: at first how many edges each vertex has, then, for many vertices at once, where these go.
    fn build(&mut self, mut rmat: Rmat, edges: u64) {
        let vertices = self.first.len() - 1;
        let mut before = Vec::with_capacity(vertices.div_ceil(PART)); // the generator before each part
        let mut end = 0;
        for vertex in 0..vertices {
            if vertex % PART == 0 {
                before.push(rmat.clone());
            }
            // The sum of what is rounded at random may be some edges more than there is room for.
            let degree = rmat.degree(rmat.row(vertex as u64), edges).min(edges - end);
            rmat.skip_edges(degree);
            end += degree;
            self.first.as_mut()[vertex + 1] = end;
        }
        let (first, mut neighbours) = (&*self.first, self.neighbours.as_mut());
        let parts = before.into_iter().enumerate().map(|(number, rmat)| {
            let from = number * PART;
            let to = vertices.min(from + PART);
            let (part, rest) = std::mem::take(&mut neighbours).split_at_mut((first[to] - first[from]) as usize);
            neighbours = rest;
            (from..to, rmat, part)
        });
        at_once(parts, |(part, mut rmat, mut neighbours)| {
            for vertex in part {
                let row = rmat.row(vertex as u64);
                rmat.degree(row, edges); // drawn once more, so that the edges are those after it
                let (ends, rest) = neighbours.split_at_mut((first[vertex + 1] - first[vertex]) as usize);
                rmat.edges_from(row, ends);
                neighbours = rest;
            }
        });
    }

    /// Looks at the edges of a vertex next.
    #[inline(always)]
    fn enter(&self, number: u64, observer: &mut impl AccessObserver) -> Vertex {
        Vertex {
            number,
            depth: self.depths.load(number, observer.by(VERTEX)),
            paths: self.paths.load(number, observer.by(VERTEX)),
            edge: self.first.load(number, observer.by(VERTEX).to(EDGE)),
            end: self.first.load(number + 1, observer.by(VERTEX)),
        }
    }

    /// Clears some vertices; after the last, begins at a source that has an edge.
    #[inline]
    fn clear(&mut self, from: u64, observer: &mut impl AccessObserver) -> BrandesPhase {
        let vertices = self.depths.len() as u64;
        let to = vertices.min(from + STEP);
        for vertex in from..to {
            self.depths.store(vertex, 0, observer);
            self.paths.store(vertex, 0.0, observer);
        }
        if to < vertices {
            return BrandesPhase::Clear(to);
        }
        let source = loop {
            let source = self.random.below(vertices);
            if self.first.load(source, observer) < self.first.load(source + 1, observer) {
                break source;
            }
        };
        self.depths.store(source, 1, observer);
        self.paths.store(source, 1.0, observer);
        self.queue.store(0, source as u32, observer);
        BrandesPhase::Forward { read: 1, write: 1, vertex: self.enter(source, observer) }
    }

    /// Counts shortest paths.
    #[inline]
    fn forward(
        &mut self,
        mut read: u64,
        mut write: u64,
        mut vertex: Vertex,
        observer: &mut impl AccessObserver,
    ) -> BrandesPhase {
        for _ in 0..STEP {
            if vertex.edge == vertex.end {
                if read == write {
                    // The last vertex of the queue is the first on the way back.
                    return BrandesPhase::Backward {
                        read: write - 1,
                        vertex: self.enter(vertex.number, observer),
                        dependency: 0.0,
                    };
                }
                vertex = self.enter(u64::from(self.queue.load(read, observer.to(VERTEX))), observer);
                read += 1;
                continue;
            }
            let other = u64::from(self.neighbours.load(vertex.edge, observer.by(EDGE).to(OTHER)));
            vertex.edge += 1;
            self.looked += 1;
            let depth = self.depths.load(other, observer.by(OTHER));
            if depth == 0 {
                self.depths.store(other, vertex.depth + 1, observer.by(OTHER));
                self.queue.store(write, other as u32, observer);
                write += 1;
            }
            if depth == 0 || depth == vertex.depth + 1 {
                let paths = self.paths.load(other, observer.by(OTHER));
                self.paths.store(other, paths + vertex.paths, observer.by(OTHER));
            }
        }
        BrandesPhase::Forward { read, write, vertex }
    }

    /// Sums up dependencies, the farthest vertices first.
    #[inline]
    fn backward(
        &mut self,
        mut read: u64,
        mut vertex: Vertex,
        mut dependency: f64,
        observer: &mut impl AccessObserver,
    ) -> Option<BrandesPhase> {
        for _ in 0..STEP {
            if vertex.edge == vertex.end {
                if read == 0 {
                    return None; // the source itself has no score
                }
                self.dependencies.store(vertex.number, dependency, observer.by(VERTEX));
                let score = self.scores.load(vertex.number, observer.by(VERTEX));
                self.scores.store(vertex.number, score + dependency, observer.by(VERTEX));
                read -= 1;
                vertex = self.enter(u64::from(self.queue.load(read, observer.to(VERTEX))), observer);
                dependency = 0.0;
                continue;
            }
            let other = u64::from(self.neighbours.load(vertex.edge, observer.by(EDGE).to(OTHER)));
            vertex.edge += 1;
            self.looked += 1;
            if self.depths.load(other, observer.by(OTHER)) == vertex.depth + 1 {
                let share = vertex.paths / self.paths.load(other, observer.by(OTHER));
                dependency += share * (1.0 + self.dependencies.load(other, observer.by(OTHER)));
            }
        }
        Some(BrandesPhase::Backward { read, vertex, dependency })
    }
}

impl Kernel for Bc {
    const NAME: &'static str = "bc";
    const OPERATION: &'static str = "edge looked at";

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        let vertices = self.depths.len();
        vec![("vertices", vertices as u64), ("edges", self.first[vertices])]
    }

    fn room(&self) -> &WorkloadMemory {
        &self.room
    }

    fn operations(&self) -> u64 {
        self.looked
    }

    fn checksum(&self) -> u64 {
        self.scores.iter().fold(0, |sum, score| fold(sum, score.to_bits()))
    }

    #[inline]
    fn step(&mut self, observer: &mut impl AccessObserver) -> bool {
        if self.rounds == 0 {
            return false;
        }
        let next = match self.at {
            BrandesPhase::Clear(from) => Some(self.clear(from, observer)),
            BrandesPhase::Forward { read, write, vertex } => Some(self.forward(read, write, vertex, observer)),
            BrandesPhase::Backward { read, vertex, dependency } => self.backward(read, vertex, dependency, observer),
        };
        if next.is_none() {
            self.rounds -= 1;
        }
        self.at = next.unwrap_or(BrandesPhase::Clear(0));
        self.rounds > 0
    }
}

#[cfg(test)]
mod tests;
