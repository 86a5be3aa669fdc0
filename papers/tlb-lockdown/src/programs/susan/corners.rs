//! Corners: where less than half of the neighbourhood is alike, and all to one side (section 5 of the SUSAN paper).

use lookaside_workloads::kernel::AccessObserver;

use super::detector::{Susan, CORNERS, MOST_CORNERS};
use super::image::{ALIKE, MASK};

/// Half of the greatest area: the paper's geometric threshold.
const MOST_AREA: i32 = MASK * ALIKE / 2;
/// Two pixels more than a neighbourhood: responses are compared over 7 x 7.
const BORDER: u64 = 5;
/// Of three pixels on the way to the centre of gravity, at least so much alike: all of them.
const LEAST_ON_WAY: i32 = 3 * ALIKE - ALIKE / 10;
/// Pixels on each side within which a corner has the greatest response.
const APART: i64 = 3;

impl Susan {
    pub(super) fn corner_response(&mut self, at: u64, observer: &mut impl AccessObserver) {
        if !self.image.is_inside(at, BORDER) {
            return;
        }
        let area = self.image.area(at, MOST_AREA, CORNERS, observer);
        if area < MOST_AREA && self.is_to_one_side(at, area, observer) {
            self.responses.store(at, MOST_AREA - area, observer);
        }
    }

    /// Noise and lines have their centre of gravity near, or something else between it and the pixel.
    fn is_to_one_side(&self, at: u64, area: i32, observer: &mut impl AccessObserver) -> bool {
        let (x, y) = self.image.moments(at, CORNERS, observer);
        let (x, y, area) = (f64::from(x), f64::from(y), f64::from(area));
        // At least 0.7 of a pixel away.
        if x * x + y * y < area * area / 2.0 {
            return false;
        }
        let longer = x.abs().max(y.abs());
        let centre = self.image.pixels.load(at, observer);
        let on_way = |step: f64| {
            let (dx, dy) = ((step * x / longer).round() as i64, (step * y / longer).round() as i64);
            dy * self.image.width as i64 + dx
        };
        let alike = |step: f64, observer: &mut _| self.image.alike(centre, at, on_way(step), observer);
        let all = alike(1.0, observer) + alike(2.0, observer) + alike(3.0, observer);
        CORNERS.execute(53, observer);
        all >= LEAST_ON_WAY
    }

    /// Lists a pixel whose response is the greatest around; of equal ones the first.
    pub(super) fn pick_corner(&mut self, at: u64, observer: &mut impl AccessObserver) {
        if !self.image.is_inside(at, BORDER) {
            return;
        }
        let response = self.responses.load(at, observer);
        CORNERS.execute(5, observer);
        if response == 0 || self.corner_count == MOST_CORNERS {
            return;
        }
        let mut seen = 0;
        let mut greatest = true;
        'around: for y in -APART..=APART {
            for x in -APART..=APART {
                let offset = y * self.image.width as i64 + x;
                let other = self.responses.load(at.wrapping_add_signed(offset), observer);
                seen += 1;
                if other > response || (other == response && offset < 0) {
                    greatest = false;
                    break 'around;
                }
            }
        }
        CORNERS.execute(3 * seen, observer);
        if greatest {
            self.corners.store(2 * self.corner_count, (at % self.image.width) as u32, observer);
            self.corners.store(2 * self.corner_count + 1, (at / self.image.width) as u32, observer);
            self.corner_count += 1;
        }
    }

    /// A cross for the corner of this number.
    pub(super) fn draw_corner(&mut self, number: u64, observer: &mut impl AccessObserver) {
        let x = u64::from(self.corners.load(2 * number, observer));
        let y = u64::from(self.corners.load(2 * number + 1, observer));
        let (at, width) = (y * self.image.width + x, self.image.width);
        for place in [at - width, at - 1, at, at + 1, at + width] {
            self.image.pixels.store(place, if place == at { 255 } else { 0 }, observer);
        }
    }
}
