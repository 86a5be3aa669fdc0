//! SUSAN, low-level image processing (Smith and Brady 1997): what a pixel's circular neighbourhood has of its own brightness.
//!
//! The neighbourhood is of 37 pixels; how much two are alike comes from a table by the difference of their brightness.

mod corners;
mod edges;
mod picture;
mod smooth;

use std::io;

use lookaside_trace::Event;
use lookaside_workloads::kernel::{fold, Array, Kernel, Observer, Room};

use super::loader::{Calls, Loader};
use super::process::{Frames, Function, Process, LIBC};
use super::stdio::{read_into, write_out};
use super::ProgramSpec;
use picture::Picture;

pub(super) use smooth::Smooth;

/// Difference of brightness from which on two pixels are no more alike than not (the paper's t; 20 is usual).
const THRESHOLD: f64 = 20.0;
/// How much equal pixels are alike.
const ALIKE: i32 = 100;
/// Differences from -255 to 255.
const DIFFERENCES: u64 = 511;
/// Pixels on each side of the centre, in the rows from 3 above to 3 below: a radius of 3.4.
const HALF_WIDTHS: [i32; 7] = [1, 2, 3, 3, 3, 2, 1];
/// Pixels at the border that have no whole neighbourhood.
const BORDER: u64 = 3;
/// Pixels of the neighbourhood, the centre among them.
const MASK: i32 = 37;
/// Pixels a step: some hundred accesses.
const STEP: u64 = 8;

const MAIN: Function = Function::new(0x00, 9);
const EDGES: Function = Function::new(0x03, 9);
const CORNERS: Function = Function::new(0x05, 9);
const CLEAR: Function = Function::of(&LIBC, 0x6c, 0);

/// Instructions of a neighbourhood's moments. Here and below, the loop is unrolled: the neighbourhood is a constant.
const MOMENTS: u64 = 84;

/// Where the neighbourhood's pixels lie, row by row, without the centre.
fn neighbourhood() -> impl Iterator<Item = Vec<(i32, i32)>> {
    let rows = (-3..).zip(HALF_WIDTHS);
    rows.map(|(y, half)| (-half..=half).map(|x| (x, y)).filter(|&place| place != (0, 0)).collect())
}

/// A picture in memory, and how alike its pixels are.
#[derive(Debug)]
struct Image {
    pixels: Array<u8>,
    width: u64,
    height: u64,
    /// By the difference of two pixels + 255: [`ALIKE`] for none, half of that or so at [`THRESHOLD`].
    alike: Array<u8>,
    /// As on the disk.
    original: Vec<u8>,
    /// The neighbours by rows: which way, and how far in `pixels`. Constants of the code.
    neighbours: Vec<Vec<(i32, i32, i64)>>,
}

impl Image {
    fn new(process: &mut Process, picture: Picture) -> io::Result<Self> {
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
    fn read(&mut self, observer: &mut impl Observer) {
        read_into(&mut self.pixels, &self.original, observer);
    }

    fn len(&self) -> u64 {
        self.width * self.height
    }

    /// A pixel has so many on each side.
    fn is_inside(&self, at: u64, border: u64) -> bool {
        let (x, y) = (at % self.width, at / self.width);
        x >= border && x + border < self.width && y >= border && y + border < self.height
    }

    /// How much a pixel at an offset from `at` is like one of brightness `centre`.
    #[inline(always)]
    fn alike(&self, centre: u8, at: u64, offset: i64, observer: &mut impl Observer) -> i32 {
        let pixel = self.pixels.load(at.wrapping_add_signed(offset), observer);
        self.alike.load((i64::from(pixel) - i64::from(centre) + 255) as u64, observer).into()
    }

    /// How much of the neighbourhood is alike; only that it is `most` or more, once that is known at the end of a row.
    #[inline(always)]
    fn area(&self, at: u64, most: i32, function: Function, observer: &mut impl Observer) -> i32 {
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
    fn moments(&self, at: u64, function: Function, observer: &mut impl Observer) -> (i32, i32) {
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

/// What is being done, pixel by pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The libraries are relocated, once; the picture is read.
    Start,
    ClearForEdges,
    EdgeResponses,
    EdgesThin,
    EdgesDrawn,
    ClearForCorners,
    CornerResponses,
    CornersPicked,
    CornersDrawn,
}

/// The program: edges, then corners, each drawn into the picture.
pub(in crate::programs) struct Susan {
    process: Process,
    loader: Loader,
    calls: Calls,
    image: Image,
    /// How far the area of each pixel is below the threshold; 0 where it is not.
    responses: Array<i32>,
    /// 1 where an edge is.
    marks: Array<u8>,
    /// Columns and rows.
    corners: Array<u32>,
    corner_count: u64,
    frames: Frames,
    phase: Phase,
    at: u64,
    rounds_left: u64,
    done: u64,
    sum: u64,
}

impl Susan {
    pub fn new(spec: &ProgramSpec) -> io::Result<Self> {
        Self::of(spec, Picture::new(spec))
    }

    fn of(spec: &ProgramSpec, picture: Picture) -> io::Result<Self> {
        let mut process = Process::new("susan", spec.pages);
        let len = picture.width * picture.height;
        let (loader, calls) = Loader::new(&mut process)?;
        Ok(Self {
            loader,
            calls,
            image: Image::new(&mut process, picture)?,
            responses: process.malloc("responses", len)?,
            marks: process.malloc("marks", len)?,
            corners: process.local("corners", 2 * corners::MOST)?,
            frames: process.frames(2)?,
            process,
            corner_count: 0,
            phase: Phase::Start,
            at: 0,
            rounds_left: spec.rounds,
            done: 0,
            sum: 0,
        })
    }

    /// One pixel of the phase.
    #[inline]
    fn pixel(&mut self, at: u64, observer: &mut impl Observer) {
        match self.phase {
            Phase::Start => {}
            Phase::ClearForEdges => {
                self.responses.store(at, 0, observer);
                self.marks.store(at, 0, observer);
            }
            Phase::EdgeResponses => self.edge_response(at, observer),
            Phase::EdgesThin => self.thin_edge(at, observer),
            Phase::EdgesDrawn => self.draw_edge(at, observer),
            Phase::ClearForCorners => self.responses.store(at, 0, observer),
            Phase::CornerResponses => self.corner_response(at, observer),
            Phase::CornersPicked => self.pick_corner(at, observer),
            Phase::CornersDrawn => self.draw_corner(at, observer),
        }
    }

    /// Pixels, or corners, of the phase.
    fn phase_len(&self) -> u64 {
        match self.phase {
            Phase::Start => 0,
            Phase::CornersDrawn => self.corner_count,
            _ => self.image.len(),
        }
    }

    fn end_phase(&mut self, observer: &mut impl Observer) {
        self.at = 0;
        self.phase = match self.phase {
            Phase::Start => {
                self.image.read(observer);
                Phase::ClearForEdges
            }
            Phase::ClearForEdges => {
                self.frames.enter(EDGES, 0, 40, observer);
                Phase::EdgeResponses
            }
            Phase::EdgeResponses => Phase::EdgesThin,
            Phase::EdgesThin => {
                self.frames.leave(EDGES, 0, observer);
                Phase::EdgesDrawn
            }
            Phase::EdgesDrawn => {
                self.write(observer);
                self.image.read(observer);
                Phase::ClearForCorners
            }
            Phase::ClearForCorners => {
                self.frames.enter(CORNERS, 0, 40, observer);
                self.corner_count = 0;
                Phase::CornerResponses
            }
            Phase::CornerResponses => Phase::CornersPicked,
            Phase::CornersPicked => {
                self.frames.leave(CORNERS, 0, observer);
                Phase::CornersDrawn
            }
            Phase::CornersDrawn => {
                self.write(observer);
                self.rounds_left -= 1;
                Phase::Start
            }
        };
    }

    /// The picture is written out.
    fn write(&mut self, observer: &mut impl Observer) {
        let written = write_out(&self.image.pixels, self.image.len(), observer);
        self.sum = written.iter().fold(self.sum, |sum, &pixel| fold(sum, pixel.into()));
        self.done += self.image.len();
    }
}

impl Kernel for Susan {
    const NAME: &'static str = "susan";
    const OPERATION: &'static str = "pixel looked at for edges or corners";
    const FETCHES: bool = true;

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("columns", self.image.width), ("rows", self.image.height)]
    }

    fn room(&self) -> &Room {
        self.process.room()
    }

    fn mappings(&self) -> Vec<Event> {
        self.process.map()
    }

    fn operations(&self) -> u64 {
        self.done
    }

    fn checksum(&self) -> u64 {
        self.sum
    }

    fn step(&mut self, observer: &mut impl Observer) -> bool {
        if self.rounds_left == 0 {
            return false;
        }
        if self.phase == Phase::Start && self.loader.step(&mut self.calls, observer) {
            return true;
        }
        let (from, end) = (self.at, self.phase_len());
        let to = (from + STEP).min(end);
        match self.phase {
            Phase::ClearForEdges | Phase::ClearForCorners => CLEAR.execute(to - from, observer),
            Phase::EdgesDrawn | Phase::CornersDrawn => MAIN.execute(4 * (to - from), observer),
            _ => {}
        }
        for at in from..to {
            self.pixel(at, observer);
        }
        self.at = to;
        if to == end {
            self.end_phase(observer);
        }
        self.rounds_left > 0
    }
}

#[cfg(test)]
mod tests;
