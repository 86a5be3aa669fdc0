//! Power-law graphs by R-MAT (Chakrabarti, Zhan, Faloutsos 2004) with Graph500's parameters.

use crate::random::{Random, Shuffle};

/// Graph500's probabilities of the four quadrants of the adjacency matrix, summed up, in 2^-16: A = 0.57, B = C = 0.19.
const QUADRANTS: [u64; 3] = [37_356, 49_807, 62_259];

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
}
