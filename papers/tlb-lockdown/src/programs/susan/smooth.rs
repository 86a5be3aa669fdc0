//! Smoothing: each pixel becomes the mean of those around that are like it (section 6 of the SUSAN paper).

use std::io;

use lookaside_trace::Event;
use lookaside_workloads::kernel::{fold, AccessObserver, Array, Kernel, WorkloadMemory};

use super::image::{Image, BORDER, STEP};
use super::picture::Picture;
use crate::programs::loader::{Calls, Loader};
use crate::programs::process::{ArmProcess, Function, StackFrames};
use crate::programs::spec::ProgramSpec;
use crate::programs::stdio::write_out;

/// Instructions of a mean.
const MEAN: u64 = 105;

const SMOOTH: Function = Function::new(0x02, 9);

/// The program. Pixels at the border stay as they are.
pub(crate) struct Smooth {
    process: ArmProcess,
    loader: Loader,
    calls: Calls,
    image: Image,
    smooth: Array<u8>,
    frames: StackFrames,
    at: u64,
    rounds_left: u64,
    done: u64,
    sum: u64,
}

impl Smooth {
    pub(crate) fn new(spec: &ProgramSpec) -> io::Result<Self> {
        Self::of(spec, Picture::new(spec))
    }

    fn of(spec: &ProgramSpec, picture: Picture) -> io::Result<Self> {
        let mut process = ArmProcess::new("susan-smooth", spec.pages);
        let len = picture.width * picture.height;
        let (loader, calls) = Loader::new(&mut process)?;
        Ok(Self {
            loader,
            calls,
            image: Image::new(&mut process, picture)?,
            smooth: process.malloc("smooth picture", len)?,
            frames: process.frames(1)?,
            process,
            at: 0,
            rounds_left: spec.rounds,
            done: 0,
            sum: 0,
        })
    }

    fn pixel(&mut self, at: u64, observer: &mut impl AccessObserver) {
        let centre = self.image.pixels.load(at, observer);
        let mut value = centre;
        if self.image.is_inside(at, BORDER) {
            let (mut area, mut total) = (0, 0);
            for &(.., offset) in self.image.neighbours.iter().flatten() {
                let neighbour = self.image.pixels.load(at.wrapping_add_signed(offset), observer);
                let difference = i64::from(neighbour) - i64::from(centre);
                let alike = i32::from(self.image.alike.load((difference + 255) as u64, observer));
                area += alike;
                total += alike * i32::from(neighbour);
            }
            SMOOTH.execute(MEAN, observer);
            value = if area > 0 { (total / area) as u8 } else { self.median(at, observer) };
        }
        self.smooth.store(at, value, observer);
    }

    /// Of the eight around a pixel that nothing is like: the mean of both in the middle.
    fn median(&self, at: u64, observer: &mut impl AccessObserver) -> u8 {
        let width = self.image.width as i64;
        let around = [-width - 1, -width, -width + 1, -1, 1, width - 1, width, width + 1];
        let mut values = around.map(|offset| self.image.pixels.load(at.wrapping_add_signed(offset), observer));
        SMOOTH.execute(110, observer);
        values.sort_unstable();
        ((u16::from(values[3]) + u16::from(values[4])) / 2) as u8
    }
}

impl Kernel for Smooth {
    const NAME: &'static str = "susan-smooth";
    const OPERATION: &'static str = "pixel smoothed";
    const FETCHES: bool = true;

    fn parameters(&self) -> Vec<(&'static str, u64)> {
        vec![("columns", self.image.width), ("rows", self.image.height)]
    }

    fn room(&self) -> &WorkloadMemory {
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

    fn step(&mut self, observer: &mut impl AccessObserver) -> bool {
        if self.rounds_left == 0 {
            return false;
        }
        if self.at == 0 {
            if self.loader.step(&mut self.calls, observer) {
                return true;
            }
            self.image.read(observer);
            self.frames.enter(SMOOTH, 0, 40, observer);
        }
        let to = (self.at + STEP).min(self.image.len());
        for at in self.at..to {
            self.pixel(at, observer);
        }
        self.done += to - self.at;
        self.at = to;
        if to == self.image.len() {
            self.frames.leave(SMOOTH, 0, observer);
            let written = write_out(&self.smooth, self.image.len(), observer);
            self.sum = written.iter().fold(self.sum, |sum, &pixel| fold(sum, pixel.into()));
            self.at = 0;
            self.rounds_left -= 1;
        }
        self.rounds_left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::spec::ProgramInput;
    use lookaside_workloads::kernel::Unseen;

    fn smooth(picture: &Picture) -> Vec<u8> {
        let mut smooth = Smooth::of(&ProgramSpec::new(ProgramInput::Small, 1), picture.clone()).expect("memory");
        while smooth.step(&mut Unseen) {}
        smooth.smooth.to_vec()
    }

    /// The mean by its formula, over all pixels that are near enough.
    #[test]
    fn it_is_the_mean_of_what_is_alike() {
        let picture = Picture::new(&ProgramSpec::new(ProgramInput::Small, 1));
        let pixel = |x: i64, y: i64| i64::from(picture.pixels[(y * picture.width as i64 + x) as usize]);
        let found = smooth(&picture);
        let mut smoothed = 0;
        for y in 3..picture.height as i64 - 3 {
            for x in 3..picture.width as i64 - 3 {
                let (mut area, mut total) = (0, 0);
                for (dx, dy) in (-3..=3).flat_map(|dy| (-3..=3).map(move |dx| (dx, dy))) {
                    let difference = (pixel(x + dx, y + dy) - pixel(x, y)) as f64;
                    // 37 pixels have their centres within this distance.
                    if (dx, dy) != (0, 0) && dx * dx + dy * dy <= 10 {
                        let alike = (100.0 * (-(difference / 20.0).powi(6)).exp()).round() as i64;
                        area += alike;
                        total += alike * pixel(x + dx, y + dy);
                    }
                }
                if area > 0 {
                    assert_eq!(i64::from(found[(y * picture.width as i64 + x) as usize]), total / area, "{x} {y}");
                    smoothed += 1;
                }
            }
        }
        assert!(smoothed > 6000, "{smoothed}");
    }

    #[test]
    fn noise_goes_edges_stay_and_a_lone_pixel_is_what_is_around() {
        let (width, height) = (30u64, 20u64);
        let mut pixels: Vec<u8> =
            (0..width * height).map(|at| if at % width < 15 { 50 } else { 200 } + (at * 7 % 3) as u8).collect();
        pixels[(10 * width + 7) as usize] = 255;
        let found = smooth(&Picture { width, height, pixels: pixels.clone() });
        let at = |x: u64, y: u64| found[(y * width + x) as usize];
        assert!((50..53).contains(&at(7, 10)), "{}", at(7, 10));
        let rows: Vec<u64> = (3..17).collect();
        assert!(rows.iter().all(|&y| (50..53).contains(&at(14, y)) && (200..203).contains(&at(15, y))));
        assert!(rows.iter().all(|&y| at(20, y) == 200 || at(20, y) == 201));
        assert_eq!(found[..3 * width as usize], pixels[..3 * width as usize]);
    }
}
