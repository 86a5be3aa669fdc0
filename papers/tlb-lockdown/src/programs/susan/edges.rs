//! Edges: where much less than the whole neighbourhood is alike, and least across the edge (section 4 of the SUSAN
//! paper).

use lookaside_workloads::kernel::AccessObserver;

use super::detector::{Susan, EDGES};
use super::image::{ALIKE, BORDER, MASK};

/// Three quarters of the greatest area: the paper's geometric threshold.
const MOST_AREA: i32 = MASK * ALIKE * 3 / 4;
/// Area of a line of pixels as long as the neighbourhood: less can't lie on one side of an edge.
const LEAST_SIDE: i32 = 7 * ALIKE;

/// Instructions of a neighbourhood's second moments.
const SPREAD: u64 = 126;

/// Across an edge: right, down, and the two between, as steps of columns and rows.
type Across = (i64, i64);

impl Susan {
    pub(super) fn edge_response(&mut self, at: u64, observer: &mut impl AccessObserver) {
        if !self.image.is_inside(at, BORDER) {
            return;
        }
        let area = self.image.area(at, MOST_AREA, EDGES, observer);
        if area < MOST_AREA {
            self.responses.store(at, MOST_AREA - area, observer);
        }
    }

    /// Marks a pixel whose response is the greatest across the edge.
    pub(super) fn thin_edge(&mut self, at: u64, observer: &mut impl AccessObserver) {
        if !self.image.is_inside(at, BORDER + 1) {
            return;
        }
        let response = self.responses.load(at, observer);
        EDGES.execute(5, observer);
        if response == 0 {
            return;
        }
        let (x, y) = self.across(at, MOST_AREA - response, observer);
        let offset = y * self.image.width as i64 + x;
        let before = self.responses.load(at.wrapping_add_signed(-offset), observer);
        let after = self.responses.load(at.wrapping_add_signed(offset), observer);
        EDGES.execute(18, observer);
        // Of two equal ones next to each other, the second.
        if response >= before && response > after {
            self.marks.store(at, 1, observer);
        }
    }

    /// Between two pixels of an edge the alike ones lie to one side: their centre of gravity says which way. On a line
    /// they lie on both: their spread says how it runs.
    fn across(&self, at: u64, area: i32, observer: &mut impl AccessObserver) -> Across {
        let (x, y) = self.image.moments(at, EDGES, observer);
        let squared = |value: i32| i64::from(value) * i64::from(value);
        if area > LEAST_SIDE && squared(x) + squared(y) >= squared(area) {
            return direction(i64::from(x).abs(), i64::from(y).abs(), (x < 0) != (y < 0));
        }
        let centre = self.image.pixels.load(at, observer);
        let (mut xx, mut yy, mut xy) = (0i64, 0i64, 0i64);
        for &(dx, dy, offset) in self.image.neighbours.iter().flatten() {
            let alike = self.image.alike(centre, at, offset, observer);
            xx += i64::from(dx * dx * alike);
            yy += i64::from(dy * dy * alike);
            xy += i64::from(dx * dy * alike);
        }
        EDGES.execute(SPREAD, observer);
        // Across: little spread.
        direction(yy, xx, xy > 0)
    }

    /// Edges become black.
    pub(super) fn draw_edge(&mut self, at: u64, observer: &mut impl AccessObserver) {
        if self.marks.load(at, observer) > 0 {
            self.image.pixels.store(at, 0, observer);
        }
    }
}

/// The nearest of the four, of a direction of this much to the right and this much down, or up where they are opposed.
fn direction(x: i64, y: i64, opposed: bool) -> Across {
    // Within a factor of two, it is a diagonal.
    if x > 2 * y {
        (1, 0)
    } else if y > 2 * x {
        (0, 1)
    } else if opposed {
        (-1, 1)
    } else {
        (1, 1)
    }
}
