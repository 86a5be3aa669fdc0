//! A picture in memory, and how alike the pixels of a neighbourhood are.

use std::io;

use lookaside_workloads::kernel::{AccessObserver, Array};

use super::picture::Picture;
use crate::programs::process::{ArmProcess, Function};
use crate::programs::stdio::read_into;

/// Difference of brightness from which on two pixels are no more alike than not (the paper's t; 20 is usual).
const THRESHOLD: f64 = 20.0;
/// How much equal pixels are alike.
pub(super) const ALIKE: i32 = 100;
/// Differences from -255 to 255.
const DIFFERENCES: u64 = 511;
/// Pixels on each side of the centre, in the rows from 3 above to 3 below: a radius of 3.4.
const HALF_WIDTHS: [i32; 7] = [1, 2, 3, 3, 3, 2, 1];
/// Pixels at the border that have no whole neighbourhood.
pub(super) const BORDER: u64 = 3;
/// Pixels of the neighbourhood, the centre among them.
pub(super) const MASK: i32 = 37;
/// Pixels a step: some hundred accesses.
pub(super) const STEP: u64 = 8;

/// Instructions of a neighbourhood's moments. Here and below, the loop is unrolled: the neighbourhood is a constant.
const MOMENTS: u64 = 84;

/// Where the neighbourhood's pixels lie, row by row, without the centre.
pub(super) fn neighbourhood() -> impl Iterator<Item = Vec<(i32, i32)>> {
    let rows = (-3..).zip(HALF_WIDTHS);
    rows.map(|(y, half)| (-half..=half).map(|x| (x, y)).filter(|&place| place != (0, 0)).collect())
}

/// A picture in memory, and how alike its pixels are.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) pixels: Array<u8>,
    pub(super) width: u64,
    pub(super) height: u64,
    /// By the difference of two pixels + 255: [`ALIKE`] for none, half of that or so at [`THRESHOLD`].
    pub(super) alike: Array<u8>,
    /// As on the disk.
    original: Vec<u8>,
    /// The neighbours by rows: which way, and how far in `pixels`. Constants of the code.
    pub(super) neighbours: Vec<Vec<(i32, i32, i64)>>,
}

impl Image {
    pub(super) fn new(process: &mut ArmProcess, picture: Picture) -> io::Result<Self> {
        let (width, height) = (picture.width, picture.height);
        let place = |(x, y)| (x, y, i64::from(y) * width as i64 + i64::from(x));
        let mut image = Self {
            pixels: process.malloc("picture", width * height)?,
            alike: process.malloc("brightness table", DIFFERENCES)?,
            width,
            height,
            original: picture.pixels,
            neighbours: neighbourhood().map(|row| row.into_iter().map(place).collect()).collect(),
        };
        for (difference, alike) in (-255i32..).zip(image.alike.as_mut()) {
            let exponent = (f64::from(difference) / THRESHOLD).powi(6);
            *alike = (f64::from(ALIKE) * (-exponent).exp()).round() as u8;
        }
        Ok(image)
    }

    /// The picture is read; the kernel puts it there.
    pub(super) fn read(&mut self, observer: &mut impl AccessObserver) {
        read_into(&mut self.pixels, &self.original, observer);
    }

    pub(super) fn len(&self) -> u64 {
        self.width * self.height
    }

    /// A pixel has so many on each side.
    pub(super) fn is_inside(&self, at: u64, border: u64) -> bool {
        let (x, y) = (at % self.width, at / self.width);
        x >= border && x + border < self.width && y >= border && y + border < self.height
    }

    /// How much a pixel at an offset from `at` is like one of brightness `centre`.
    #[inline(always)]
    pub(super) fn alike(&self, centre: u8, at: u64, offset: i64, observer: &mut impl AccessObserver) -> i32 {
        let pixel = self.pixels.load(at.wrapping_add_signed(offset), observer);
        self.alike.load((i64::from(pixel) - i64::from(centre) + 255) as u64, observer).into()
    }

    /// How much of the neighbourhood is alike; only that it is `most` or more, once that is known at the end of a row.
    #[inline(always)]
    pub(super) fn area(&self, at: u64, most: i32, function: Function, observer: &mut impl AccessObserver) -> i32 {
        let centre = self.pixels.load(at, observer);
        let (mut area, mut seen) = (ALIKE, 0);
        for row in &self.neighbours {
            for &(.., offset) in row {
                area += self.alike(centre, at, offset, observer);
            }
            seen += row.len() as u64;
            if area >= most {
                break;
            }
        }
        function.execute(16 + 7 * seen / 5, observer);
        area
    }

    /// First moments of what is alike.
    pub(super) fn moments(&self, at: u64, function: Function, observer: &mut impl AccessObserver) -> (i32, i32) {
        let centre = self.pixels.load(at, observer);
        let (mut x, mut y) = (0, 0);
        for &(dx, dy, offset) in self.neighbours.iter().flatten() {
            let alike = self.alike(centre, at, offset, observer);
            x += dx * alike;
            y += dy * alike;
        }
        function.execute(MOMENTS, observer);
        (x, y)
    }
}
