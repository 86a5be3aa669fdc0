//! Benchmarks of switches between processes, step by step, with the kernel's own footprint: what Wiggins et al. (2003), section 4.1, run.
//!
//! Where a program's segments lie is the business of whoever runs the steps, since that is what differs between the kernels compared. A
//! step touches a line once: that it is used many times in a row makes no difference to a cache.

use lookaside_trace::Kind;

use crate::Random;

/// Bytes of a cache line.
const LINE: u32 = 32;
/// Bytes of a page.
const PAGE: u32 = 4096;
/// Kernel code lies anywhere in so much, in functions of so many lines on average.
const KERNEL_CODE: u32 = 1 << 20;
const FUNCTION_LINES: u32 = 8;
/// The kernel's static data follows; a structure has so many lines.
const KERNEL_DATA: u32 = 128 << 10;
const STRUCTURE_LINES: u32 = 2;

/// Part of an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// The program's code.
    Text,
    /// Its data.
    Data,
    /// Its stack.
    Stack,
    /// Code of a library that all programs use.
    Library,
    /// The program's own data of that library.
    LibraryData,
    /// Pages that it has mapped: its own, or the same as the others'.
    Mapped,
    /// Code and static data of the kernel.
    Kernel,
    /// The kernel's data of this process: its descriptor and kernel stack, what it has open.
    OfProcess,
}

/// A step of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// The kernel switches to this process.
    Switch(usize),
    /// A line of the running process, or of the kernel for it, is touched.
    Touch(Kind, Segment, u32),
    /// Instructions take so many cycles, beside what their accesses may take.
    Work(f64),
    /// A round ends: what came before is warm-up, or another measurement.
    Lap,
}

/// What a piece of code touches, and how long its instructions take.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    touches: Vec<(Kind, Segment, u32)>,
    /// Cycles of its instructions, without misses.
    pub cycles: f64,
}

impl Path {
    /// A path through the kernel, in lines: of code, of static data, of the process's own data. Every other line of data is stored to.
    /// Where they lie is drawn from the seed.
    pub fn kernel(seed: u64, code: u32, data: u32, of_process: u32, cycles: f64) -> Self {
        let mut random = Random::new(seed);
        let mut touches = Vec::new();
        let mut scattered = |lines: u32, start: u32, bytes: u32, in_a_row: u32, kind: fn(u32) -> Kind| {
            for line in 0..lines {
                if line.is_multiple_of(in_a_row) {
                    let most = u64::from(bytes / LINE - in_a_row);
                    touches.push((kind(line), Segment::Kernel, start + LINE * random.below(most) as u32));
                } else if let Some((_, segment, offset)) = touches.last().copied() {
                    touches.push((kind(line), segment, offset + LINE));
                }
            }
        };
        scattered(code, 0, KERNEL_CODE, FUNCTION_LINES, |_| Kind::Fetch);
        scattered(data, KERNEL_CODE, KERNEL_DATA, STRUCTURE_LINES, data_kind);
        let first = random.below(64) as u32; // not all paths use the same lines of a process's
        touches.extend((0..of_process).map(|n| (data_kind(n), Segment::OfProcess, LINE * (first + n))));
        Self { touches, cycles }
    }

    /// A path through a program: lines of its own code, and of library code in so many pages; two lines of data and two of the library's,
    /// and lines of its stack.
    pub fn program(code: u32, library: u32, library_pages: u32, stack: u32, cycles: f64) -> Self {
        let mut touches: Vec<_> = (0..code).map(|n| (Kind::Fetch, Segment::Text, LINE * n)).collect();
        let in_library = |n: u32| n % library_pages.max(1) * (5 * PAGE + 11 * LINE) + n / library_pages.max(1) * LINE;
        touches.extend((0..library).map(|n| (Kind::Fetch, Segment::Library, in_library(n))));
        // Segments' first lines in use are not all their pages' first: they would all meet in one set.
        for (segment, first, lines) in
            [(Segment::Stack, 13, stack), (Segment::Data, 3, 2), (Segment::LibraryData, 6, 2)]
        {
            touches.extend((0..lines).map(|n| (data_kind(n), segment, LINE * (first + n))));
        }
        Self { touches, cycles }
    }

    /// Loads so many bytes of a segment, or stores them.
    pub fn bytes(kind: Kind, segment: Segment, offset: u32, bytes: u32, cycles: f64) -> Self {
        let touches = (0..bytes.div_ceil(LINE)).map(|n| (kind, segment, offset + LINE * n)).collect();
        Self { touches, cycles }
    }

    /// A byte of each of so many mapped pages is read: the same of each page.
    pub fn pages(pages: u32) -> Self {
        let touches = (0..pages).map(|n| (Kind::Load, Segment::Mapped, PAGE * n)).collect();
        Self { touches, cycles: f64::from(pages) }
    }

    /// Its steps.
    pub fn run(&self, step: &mut impl FnMut(Step)) {
        step(Step::Work(self.cycles));
        self.touches.iter().for_each(|(kind, segment, offset)| step(Step::Touch(*kind, *segment, *offset)));
    }
}

/// Every other line is stored to.
fn data_kind(line: u32) -> Kind {
    if line.is_multiple_of(2) {
        Kind::Load
    } else {
        Kind::Store
    }
}

/// Processes in a ring, as in lmbench's `lat_ctx` (each touches its data and passes a token on), its `hot_potato` (two of them), or *extreme*
/// (each reads a byte of each page and yields): they take turns, each runs all paths. A lap a round.
pub fn ring(processes: usize, rounds: usize, paths: &[&Path], step: &mut impl FnMut(Step)) {
    for _ in 0..rounds {
        for process in 0..processes {
            step(Step::Switch(process));
            paths.iter().for_each(|path| path.run(step));
        }
        step(Step::Lap);
    }
}

/// A server (process 0) and clients: it calls one at random, which answers at once (section 4.1, L4). A lap a round trip.
pub fn random_calls(clients: usize, calls: usize, seed: u64, paths: &[&Path], step: &mut impl FnMut(Step)) {
    let mut random = Random::new(seed);
    for _ in 0..calls {
        for process in [1 + random.below(clients as u64) as usize, 0] {
            step(Step::Switch(process));
            paths.iter().for_each(|path| path.run(step));
        }
        step(Step::Lap);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn steps(run: impl Fn(&mut dyn FnMut(Step))) -> Vec<Step> {
        let mut all = Vec::new();
        run(&mut |step| all.push(step));
        all
    }

    #[test]
    fn a_ring_takes_turns() {
        let path = Path::pages(2);
        let all = steps(|mut step| ring(2, 2, &[&path], &mut step));
        let touch = |n| Step::Touch(Kind::Load, Segment::Mapped, n * PAGE);
        let turn = |process| [Step::Switch(process), Step::Work(2.0), touch(0), touch(1)];
        let round = [&turn(0)[..], &turn(1), &[Step::Lap]].concat();
        assert_eq!(all, [&round[..], &round].concat());
    }

    #[test]
    fn the_server_runs_between_all_calls_and_all_clients_are_called() {
        let all = steps(|mut step| random_calls(5, 200, 1, &[], &mut step));
        let switches: Vec<usize> =
            all.iter().filter_map(|step| if let Step::Switch(to) = step { Some(*to) } else { None }).collect();
        assert_eq!(switches.len(), 400);
        assert!(switches.chunks(2).all(|pair| pair[0] > 0 && pair[1] == 0));
        assert_eq!(switches.iter().copied().collect::<BTreeSet<_>>(), (0..6).collect());
        assert_eq!(all, steps(|mut step| random_calls(5, 200, 1, &[], &mut step)), "the same again");
    }

    #[test]
    fn a_kernel_path_has_the_lines_asked_for_in_its_own_places() {
        let path = Path::kernel(1, 100, 10, 20, 7.0);
        assert_eq!((path.touches.len(), path.cycles), (130, 7.0));
        let code = path.touches.iter().filter(|touch| touch.0 == Kind::Fetch);
        assert!(code.clone().count() == 100 && code.clone().all(|touch| touch.2 < KERNEL_CODE));
        let distinct: BTreeSet<u32> = code.map(|touch| touch.2 / LINE).collect();
        assert!(distinct.len() >= 90, "functions hardly overlap: {}", distinct.len());
        assert!(path.touches.iter().filter(|touch| touch.1 == Segment::OfProcess).all(|touch| touch.2 < 8192));
    }
}
