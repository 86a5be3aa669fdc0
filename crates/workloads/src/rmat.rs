//! Power-law graphs by R-MAT (Chakrabarti, Zhan, Faloutsos 2004) with Graph500's parameters.

use crate::random::{Random, Shuffle};

/// Graph500's probabilities of the four quadrants of the adjacency matrix, summed up, in 2^-16: A = 0.57, B = C = 0.19.
const QUADRANTS: [u64; 3] = [37_356, 49_807, 62_259];

/// Probability that a bit of an edge's first end is 1: C + D.
const ONE: f64 = 0.24;
/// Probability that the same bit of the other end is 1, by the first end's, in 2^-16: B / (A + B) and D / (C + D).
const OTHER_ONE: [u64; 2] = [16_384, 13_653];

/// Draws edges between `2^scale` vertices.
#[derive(Clone, Debug)]
pub(crate) struct Rmat {
    scale: u32,
    /// Hides which vertices have the most edges, as Graph500 does.
    place: Shuffle,
    random: Random,
}

impl Rmat {
    pub(crate) fn new(scale: u32, seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self { scale, place: Shuffle::new(1 << scale, random.next_u64()), random }
    }

    /// Another edge. It may join a vertex to itself, or be there already.
    pub(crate) fn edge(&mut self) -> (u32, u32) {
        let (mut from, mut to, mut bits) = (0u64, 0u64, 0u64);
        for level in 0..self.scale {
            if level % 4 == 0 {
                bits = self.random.next_u64();
            }
            let drawn = bits & 0xffff;
            bits >>= 16;
            let [a, b, c] = QUADRANTS.map(|bound| u64::from(drawn >= bound));
            from = from << 1 | b;
            to = to << 1 | ((a - b) + c);
        }
        (self.place.apply(from) as u32, self.place.apply(to) as u32)
    }

    /// The row of the matrix that is this vertex's.
    pub(crate) fn row(&self, vertex: u64) -> u64 {
        self.place.invert(vertex)
    }

    /// How many of `edges` begin in a row: as many as are expected to, rounded at random.
    pub(crate) fn degree(&mut self, row: u64, edges: u64) -> u64 {
        let ones = row.count_ones();
        let share = |probability: f64, times| (0..times).fold(1.0, |product, _| product * probability);
        let expected = edges as f64 * share(ONE, ones) * share(1.0 - ONE, self.scale - ones);
        (expected + self.random.unit()) as u64
    }

    /// The other end of another edge that begins in a row.
    pub(crate) fn edge_from(&mut self, row: u64) -> u32 {
        let (mut to, mut bits) = (0u64, 0u64);
        for level in 0..self.scale {
            if level % 4 == 0 {
                bits = self.random.next_u64();
            }
            let bound = OTHER_ONE[(row >> (self.scale - 1 - level) & 1) as usize];
            to = to << 1 | u64::from(bits & 0xffff < bound);
            bits >>= 16;
        }
        self.place.apply(to) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways of drawing have the probabilities of the matrix's quadrants at every level.
    #[test]
    fn edges_fall_into_quadrants_as_they_should() {
        let (scale, edges) = (6, 200_000u64);
        let mut counts = [[[0u64; 4]; 6]; 2];
        let mut drawn = [0u64; 2];
        let mut count = |way: usize, from: u64, to: u64| {
            drawn[way] += 1;
            for (level, counts) in counts[way].iter_mut().enumerate() {
                counts[(from >> level & 1) as usize * 2 + (to >> level & 1) as usize] += 1;
            }
        };
        let mut rmat = Rmat::new(scale, 5);
        for _ in 0..edges {
            let (from, to) = rmat.edge();
            count(0, rmat.row(u64::from(from)), rmat.row(u64::from(to)));
        }
        for vertex in 0..1 << scale {
            let row = rmat.row(vertex);
            for _ in 0..rmat.degree(row, edges) {
                let to = u64::from(rmat.edge_from(row));
                count(1, row, rmat.row(to));
            }
        }
        assert!(drawn[0] == edges && drawn[1].abs_diff(edges) <= 64, "{drawn:?}");
        for level in counts.into_iter().flatten() {
            for (quadrant, probability) in [0.57, 0.19, 0.19, 0.05].into_iter().enumerate() {
                let share = level[quadrant] as f64 / edges as f64;
                // 6 standard deviations of 200,000 draws are below 0.007.
                assert!((share - probability).abs() < 0.007, "quadrant {quadrant}: {share}");
            }
        }
    }
}
