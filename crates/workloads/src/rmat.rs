//! Power-law graphs by R-MAT (Chakrabarti, Zhan, Faloutsos 2004) with Graph500's parameters.

use lookaside_stats::SplitMix64;

use crate::shuffle::Shuffle;

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
    random: SplitMix64,
}

impl Rmat {
    pub(crate) fn new(scale: u32, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        Self { scale, place: Shuffle::new(1 << scale, random.next_u64()), random }
    }

    /// As drawing so many edges, whole or other ends: either takes as many random words.
    pub(crate) fn skip_edges(&mut self, edges: u64) {
        self.random.skip(edges * u64::from(self.scale.div_ceil(4)));
    }

    /// Another edge. It may join a vertex to itself, or be there already.
    #[inline]
    pub(crate) fn edge(&mut self) -> (u32, u32) {
        let (mut from, mut to) = (0u64, 0u64);
        let mut left = self.scale;
        while left > 0 {
            let drawn = self.random.next_u64();
            let [a, b, c] = QUADRANTS.map(|bound| at_least(drawn, bound * EACH));
            let taken = left.min(4);
            from = from << taken | in_order(b) >> (4 - taken);
            to = to << taken | in_order(a & !b | c) >> (4 - taken);
            left -= taken;
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

    /// The other ends of more edges that begin in a row.
    pub(crate) fn edges_from(&mut self, row: u64, ends: &mut [u32]) {
        // Of each four levels, the first lowest.
        let mut bounds = [0u64; 8];
        for level in 0..self.scale {
            let bound = OTHER_ONE[(row >> (self.scale - 1 - level) & 1) as usize];
            bounds[level as usize / 4] |= bound << (16 * (level % 4));
        }
        for end in ends {
            let (mut to, mut left) = (0u64, self.scale);
            for bounds in &bounds[..self.scale.div_ceil(4) as usize] {
                let less = !at_least(self.random.next_u64(), *bounds) & LANE_TOPS;
                let taken = left.min(4);
                to = to << taken | in_order(less) >> (4 - taken);
                left -= taken;
            }
            *end = self.place.apply(to) as u32;
        }
    }
}

/// One in each of four lanes of 16 bits, and their highest bits.
const EACH: u64 = 0x0001_0001_0001_0001;
const LANE_TOPS: u64 = EACH << 15;

/// The highest bits of those of four lanes where `drawn` is at least `bound`.
#[inline(always)]
fn at_least(drawn: u64, bound: u64) -> u64 {
    // By the lower 15 bits alone: the highest is lent to each lane, so that none borrows of the next.
    let lower = (drawn | LANE_TOPS) - (bound & !LANE_TOPS);
    (drawn & !bound | !(drawn ^ bound) & lower) & LANE_TOPS
}

/// The highest bits of four lanes as a number of four bits, the lowest lane's first.
#[inline(always)]
fn in_order(tops: u64) -> u64 {
    // Lane k's bit, at 16 k, goes to 63 - k; nothing else of the product reaches the highest four bits.
    (tops >> 15).wrapping_mul(1 << 63 | 1 << 46 | 1 << 29 | 1 << 12) >> 60
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
            let mut ends = vec![0; rmat.degree(row, edges) as usize];
            rmat.edges_from(row, &mut ends);
            ends.into_iter().for_each(|to| count(1, row, rmat.row(u64::from(to))));
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

    /// One level after another, as the matrix is defined, and what is skipped is what would have been drawn.
    #[test]
    fn four_levels_at_once_are_one_after_another() {
        for scale in 1..=26 {
            let mut rmat = Rmat::new(scale, 11);
            let mut slow = rmat.clone();
            for k in 0..200 {
                let (mut from, mut to, mut bits) = (0u64, 0u64, 0u64);
                for level in 0..scale {
                    bits = if level % 4 == 0 { slow.random.next_u64() } else { bits >> 16 };
                    let [a, b, c] = QUADRANTS.map(|bound| u64::from(bits & 0xffff >= bound));
                    (from, to) = (from << 1 | b, to << 1 | ((a - b) + c));
                }
                let edge = (slow.place.apply(from) as u32, slow.place.apply(to) as u32);
                assert_eq!(rmat.edge(), edge, "edge {k}, scale {scale}");
            }
            let row = rmat.row(slow.random.clone().below(1 << scale));
            let mut ends = [0; 200];
            let mut skipped = rmat.clone();
            rmat.edges_from(row, &mut ends);
            for (k, end) in ends.into_iter().enumerate() {
                let (mut to, mut bits) = (0u64, 0u64);
                for level in 0..scale {
                    bits = if level % 4 == 0 { slow.random.next_u64() } else { bits >> 16 };
                    let bound = OTHER_ONE[(row >> (scale - 1 - level) & 1) as usize];
                    to = to << 1 | u64::from(bits & 0xffff < bound);
                }
                assert_eq!(end, slow.place.apply(to) as u32, "end {k}, scale {scale}");
            }
            skipped.skip_edges(200);
            assert_eq!(skipped.edge(), rmat.edge(), "scale {scale}");
        }
    }
}
