//! Sparse linear classification by dual coordinate descent: LIBLINEAR's solver 1, for the L2-regularised L2-loss
//! support vector machine (Hsieh et al. 2008, Algorithm 1), without shrinking.

use std::io;

use lookaside_stats::SplitMix64;
use lookaside_timing::FlowRegister;

use crate::checksum::fold;
use crate::memory::{Array, WorkloadMemory};
use crate::observer::{AccessObserver, Plain};
use crate::workload::{Kernel, WorkloadSpec};

/// Coordinates a step.
const STEP: u64 = 8;
/// The features that a row has on average, as HIGGS has, and at least.
const ROW_FEATURES: u64 = 28;
const LEAST_FEATURES: u64 = 14;
/// All features: their weights stay in the first-level cache or the second.
const FEATURES: u64 = 4096;
/// The diagonal of the loss, 1 / 2C, for LIBLINEAR's default C = 1.
const DIAGONAL: f64 = 0.5;
/// Projected gradients below are none, as in LIBLINEAR.
const NO_GRADIENT: f64 = 1e-12;
/// Labels that contradict the hidden weights: 1 of so many.
const NOISE: u64 = 10;

/// The row's number, from the order.
const ROW: FlowRegister = FlowRegister::new(1);
/// Its first node.
const FIRST: FlowRegister = FlowRegister::new(2);
/// A node's feature.
const INDEX: FlowRegister = FlowRegister::new(3);

/// One feature of a row.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Node {
    /// From 1; 0 ends the row.
    index: u64,
    value: f64,
}

// SAFETY: numbers.
unsafe impl Plain for Node {}

/// The solver.
pub(super) struct LibLinear {
    room: WorkloadMemory,
    nodes: Array<Node>,
    /// Each row's first node.
    rows: Array<u64>,
    /// 1 or -1.
    labels: Array<f64>,
    alphas: Array<f64>,
    /// Diagonal of the dual's matrix: a row's square, and the loss's.
    squares: Array<f64>,
    /// The rows in this round's order.
    order: Array<u32>,
    weights: Array<f64>,
    random: SplitMix64,
    /// Coordinates so far, and how many there are to be.
    done: u64,
    coordinates: u64,
}

impl LibLinear {
    /// An even number of rows, with 28 features on average, of 4096; values even in -1 to 1; labels of a hidden plane,
    /// one in ten wrong.
    pub(super) fn new(spec: &WorkloadSpec) -> io::Result<Self> {
        let row = (ROW_FEATURES + 1) * size_of::<Node>() as u64 + 4 * 8 + 4;
        let rows = (spec.bytes.saturating_sub(FEATURES * 8) / row).max(2) & !1;
        let mut room = WorkloadMemory::new(spec.pages);
        let mut solver = Self {
            nodes: room.array("nodes", rows * (ROW_FEATURES + 1), true)?,
            rows: room.array("rows", rows, false)?,
            labels: room.array("labels", rows, false)?,
            alphas: room.array("alphas", rows, false)?,
            squares: room.array("squares", rows, false)?,
            order: room.array("order", rows, false)?,
            weights: room.array("weights", FEATURES, false)?,
            room,
            random: SplitMix64::new(!spec.seed),
            done: 0,
            coordinates: rows.saturating_mul(spec.rounds),
        };
        let mut random = SplitMix64::new(spec.seed);
        let hidden: Vec<f64> = (0..FEATURES).map(|_| random.unit() - 0.5).collect();
        let (mut at, mut features) = (0, 0);
        for i in 0..rows as usize {
            // Two rows together have twice the average.
            features = match i % 2 {
                0 => LEAST_FEATURES + random.below(2 * (ROW_FEATURES - LEAST_FEATURES) + 1),
                _ => 2 * ROW_FEATURES - features,
            };
            solver.rows.as_mut()[i] = at as u64;
            let (mut product, mut square) = (0.0, DIAGONAL);
            let apart = FEATURES / features;
            for k in 0..features {
                let feature = k * apart + random.below(apart);
                let value = 2.0 * random.unit() - 1.0;
                solver.nodes.as_mut()[at] = Node { index: feature + 1, value };
                product += hidden[feature as usize] * value;
                square += value * value;
                at += 1;
            }
            at += 1; // the row's end, zero already
            solver.squares.as_mut()[i] = square;
            solver.labels.as_mut()[i] = if (product > 0.0) == (random.below(NOISE) > 0) { 1.0 } else { -1.0 };
            solver.order.as_mut()[i] = i as u32;
        }
        Ok(solver)
    }

    /// Minimises the dual along one coordinate.
    #[inline(always)]
    fn coordinate(&mut self, i: u64, observer: &mut impl AccessObserver) {
        let label = self.labels.load(i, observer.by(ROW));
        let first = self.rows.load(i, observer.by(ROW).to(FIRST));
        let (mut product, mut at) = (0.0, first);
        loop {
            let node = self.nodes.load(at, observer.by(FIRST).to(INDEX));
            if node.index == 0 {
                break;
            }
            product += self.weights.load(node.index - 1, observer.by(INDEX)) * node.value;
            at += 1;
        }
        let alpha = self.alphas.load(i, observer.by(ROW));
        let gradient = label * product - 1.0 + DIAGONAL * alpha;
        let projected = if alpha == 0.0 { gradient.min(0.0) } else { gradient };
        if projected.abs() <= NO_GRADIENT {
            return;
        }
        let new = (alpha - gradient / self.squares.load(i, observer.by(ROW))).max(0.0);
        self.alphas.store(i, new, observer.by(ROW));
        let step = (new - alpha) * label;
        at = first;
        loop {
            let node = self.nodes.load(at, observer.by(FIRST).to(INDEX));
            if node.index == 0 {
                break;
            }
            let weight = self.weights.load(node.index - 1, observer.by(INDEX));
            self.weights.store(node.index - 1, weight + step * node.value, observer.by(INDEX));
            at += 1;
        }
    }
}

impl Kernel for LibLinear {
    const NAME: &'static str = "liblinear";
    const OPERATION: &'static str = "coordinate";

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("rows", self.rows.len() as u64), ("features", FEATURES), ("features_per_row", ROW_FEATURES)]
    }

    fn room(&self) -> &WorkloadMemory {
        &self.room
    }

    fn operations(&self) -> u64 {
        self.done
    }

    fn checksum(&self) -> u64 {
        let values = self.weights.iter().chain(self.alphas.iter());
        values.fold(0, |sum, value| fold(sum, value.to_bits()))
    }

    #[inline]
    fn step(&mut self, observer: &mut impl AccessObserver) -> bool {
        let rows = self.order.len() as u64;
        for _ in 0..STEP.min(self.coordinates - self.done) {
            // The next of a random order, by one step of Fisher and Yates.
            let here = self.done % rows;
            let there = here + self.random.below(rows - here);
            let i = self.order.load(there, observer.to(ROW));
            let other = self.order.load(here, observer);
            self.order.store(there, other, observer);
            self.order.store(here, i, observer);
            self.coordinate(u64::from(i), observer);
            self.done += 1;
        }
        self.done < self.coordinates
    }
}

#[cfg(test)]
mod tests;
