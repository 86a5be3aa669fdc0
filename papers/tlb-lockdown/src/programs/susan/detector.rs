//! The program: edges, then corners, each drawn into the picture.

use std::io;

use lookaside_trace::Event;
use lookaside_workloads::kernel::{fold, AccessObserver, Array, Kernel, WorkloadMemory};

use super::image::{Image, STEP};
use super::picture::Picture;
use crate::programs::loader::{Calls, Loader};
use crate::programs::process::{ArmProcess, Function, StackFrames, LIBC};
use crate::programs::spec::ProgramSpec;
use crate::programs::stdio::write_out;

const MAIN: Function = Function::new(0x00, 9);
pub(super) const EDGES: Function = Function::new(0x03, 9);
pub(super) const CORNERS: Function = Function::new(0x05, 9);
const CLEAR: Function = Function::of(&LIBC, 0x6c, 0);
/// Corners that there is room for.
pub(super) const MOST_CORNERS: u64 = 15_000;

/// What is being done, pixel by pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SusanPhase {
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
pub(crate) struct Susan {
    process: ArmProcess,
    loader: Loader,
    calls: Calls,
    pub(super) image: Image,
    /// How far the area of each pixel is below the threshold; 0 where it is not.
    pub(super) responses: Array<i32>,
    /// 1 where an edge is.
    pub(super) marks: Array<u8>,
    /// Columns and rows.
    pub(super) corners: Array<u32>,
    pub(super) corner_count: u64,
    frames: StackFrames,
    phase: SusanPhase,
    at: u64,
    rounds_left: u64,
    done: u64,
    sum: u64,
}

impl Susan {
    pub(crate) fn new(spec: &ProgramSpec) -> io::Result<Self> {
        Self::of(spec, Picture::new(spec))
    }

    fn of(spec: &ProgramSpec, picture: Picture) -> io::Result<Self> {
        let mut process = ArmProcess::new("susan", spec.pages);
        let len = picture.width * picture.height;
        let (loader, calls) = Loader::new(&mut process)?;
        Ok(Self {
            loader,
            calls,
            image: Image::new(&mut process, picture)?,
            responses: process.malloc("responses", len)?,
            marks: process.malloc("marks", len)?,
            corners: process.local("corners", 2 * MOST_CORNERS)?,
            frames: process.frames(2)?,
            process,
            corner_count: 0,
            phase: SusanPhase::Start,
            at: 0,
            rounds_left: spec.rounds,
            done: 0,
            sum: 0,
        })
    }

    /// One pixel of the phase.
    #[inline]
    fn pixel(&mut self, at: u64, observer: &mut impl AccessObserver) {
        match self.phase {
            SusanPhase::Start => {}
            SusanPhase::ClearForEdges => {
                self.responses.store(at, 0, observer);
                self.marks.store(at, 0, observer);
            }
            SusanPhase::EdgeResponses => self.edge_response(at, observer),
            SusanPhase::EdgesThin => self.thin_edge(at, observer),
            SusanPhase::EdgesDrawn => self.draw_edge(at, observer),
            SusanPhase::ClearForCorners => self.responses.store(at, 0, observer),
            SusanPhase::CornerResponses => self.corner_response(at, observer),
            SusanPhase::CornersPicked => self.pick_corner(at, observer),
            SusanPhase::CornersDrawn => self.draw_corner(at, observer),
        }
    }

    /// Pixels, or corners, of the phase.
    fn phase_len(&self) -> u64 {
        match self.phase {
            SusanPhase::Start => 0,
            SusanPhase::CornersDrawn => self.corner_count,
            _ => self.image.len(),
        }
    }

    fn end_phase(&mut self, observer: &mut impl AccessObserver) {
        self.at = 0;
        self.phase = match self.phase {
            SusanPhase::Start => {
                self.image.read(observer);
                SusanPhase::ClearForEdges
            }
            SusanPhase::ClearForEdges => {
                self.frames.enter(EDGES, 0, 40, observer);
                SusanPhase::EdgeResponses
            }
            SusanPhase::EdgeResponses => SusanPhase::EdgesThin,
            SusanPhase::EdgesThin => {
                self.frames.leave(EDGES, 0, observer);
                SusanPhase::EdgesDrawn
            }
            SusanPhase::EdgesDrawn => {
                self.write(observer);
                self.image.read(observer);
                SusanPhase::ClearForCorners
            }
            SusanPhase::ClearForCorners => {
                self.frames.enter(CORNERS, 0, 40, observer);
                self.corner_count = 0;
                SusanPhase::CornerResponses
            }
            SusanPhase::CornerResponses => SusanPhase::CornersPicked,
            SusanPhase::CornersPicked => {
                self.frames.leave(CORNERS, 0, observer);
                SusanPhase::CornersDrawn
            }
            SusanPhase::CornersDrawn => {
                self.write(observer);
                self.rounds_left -= 1;
                SusanPhase::Start
            }
        };
    }

    /// The picture is written out.
    fn write(&mut self, observer: &mut impl AccessObserver) {
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
        if self.phase == SusanPhase::Start && self.loader.step(&mut self.calls, observer) {
            return true;
        }
        let (from, end) = (self.at, self.phase_len());
        let to = (from + STEP).min(end);
        match self.phase {
            SusanPhase::ClearForEdges | SusanPhase::ClearForCorners => CLEAR.execute(to - from, observer),
            SusanPhase::EdgesDrawn | SusanPhase::CornersDrawn => MAIN.execute(4 * (to - from), observer),
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
