//! Grey pictures of MiBench's sizes: shapes of different greys on a slope, with noise.

use lookaside_stats::SplitMix64;

use crate::programs::spec::{ProgramInput, ProgramSpec};

/// Shapes: about what can be told apart on the small picture.
const SHAPES: u64 = 14;
/// Noise on both sides, far below the threshold of brightness.
const NOISE: u64 = 3;

/// Rows of pixels.
#[derive(Clone, Debug)]
pub(super) struct Picture {
    pub width: u64,
    pub height: u64,
    pub pixels: Vec<u8>,
}

/// A rectangle or, where it is round, the ellipse in it.
struct Shape {
    left: u64,
    top: u64,
    width: u64,
    height: u64,
    round: bool,
    grey: u64,
}

impl Shape {
    fn has(&self, x: u64, y: u64) -> bool {
        let inside = |at: u64, from: u64, len: u64| at >= from && at < from + len;
        // In halves of a pixel from the centre.
        let off = |at: u64, from: u64, len: u64| (2 * at + 1) as f64 - (2 * from + len) as f64;
        let part = |off: f64, len: u64| (off / len as f64).powi(2);
        let (dx, dy) = (off(x, self.left, self.width), off(y, self.top, self.height));
        inside(x, self.left, self.width)
            && inside(y, self.top, self.height)
            && (!self.round || part(dx, self.width) + part(dy, self.height) <= 1.0)
    }
}

impl Picture {
    /// 76 x 95 pixels or 384 x 288, as MiBench's.
    pub(super) fn new(spec: &ProgramSpec) -> Self {
        let (width, height) = match spec.input {
            ProgramInput::Small => (76, 95),
            ProgramInput::Large | ProgramInput::Paper => (384, 288),
        };
        let mut random = SplitMix64::new(spec.seed);
        let shapes: Vec<Shape> = (0..SHAPES)
            .map(|_| {
                let (w, h) = (8 + random.below(width / 3), 8 + random.below(height / 3));
                let (left, top) = (random.below(width - w), random.below(height - h));
                let round = random.below(2) == 1;
                Shape { left, top, width: w, height: h, round, grey: 20 + random.below(216) }
            })
            .collect();
        let mut pixels = Vec::new();
        for at in 0..width * height {
            let (x, y) = (at % width, at / width);
            // The last one lies on top.
            let shape = shapes.iter().rev().find(|shape| shape.has(x, y));
            let grey = shape.map_or(60 + 60 * y / height, |shape| shape.grey);
            pixels.push((grey + random.below(2 * NOISE + 1) - NOISE) as u8);
        }
        Self { width, height, pixels }
    }
}
