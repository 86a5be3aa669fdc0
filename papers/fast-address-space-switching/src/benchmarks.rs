//! Benchmarks of switches between processes, step by step, with the kernel's own footprint: what Wiggins et al. (2003),
//! section 4.1, run.
//!
//! Where a program's segments lie is the business of whoever runs the steps, since that is what differs between the
//! kernels compared. A step touches a line once: that it is used many times in a row makes no difference to a cache.
//! Lines that are stored to are loaded first, but for copies and zeros, since a cache may take stores to lines alone
//! that loads have brought.
//!
//! ARM code has its constants between its functions and loads them relative to the program counter (Wiggins et al.,
//! section 3.2): code takes lines of the data cache, too, and entries of the data TLB.

use lookaside_stats::SplitMix64;
use lookaside_trace::Kind;

/// Bytes of a cache line.
const LINE: u32 = 32;
/// Bytes of a page.
const PAGE: u32 = 4096;
/// Bytes of a block of a write buffer.
const BLOCK: u32 = 16;
/// Touches that the instructions' cycles are shared out over, so many at a time.
const SHARE: usize = 8;
/// Kernel code lies anywhere in so much, in functions of so many lines on average.
const KERNEL_CODE: u32 = 1 << 20;
const FUNCTION_LINES: u32 = 8;
/// Where a program has its jumps into the library, and the library its system calls: anywhere but where other lines
/// are.
const JUMPS: u32 = 2 * PAGE + 9 * LINE;
const CALLS: u32 = 5 * PAGE + 11 * LINE;
/// The kernel's static data follows; a structure has so many lines.
const KERNEL_DATA: u32 = 128 << 10;
const STRUCTURE_LINES: u32 = 2;

/// Part of an address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemorySegment {
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
pub enum BenchmarkStep {
    /// The kernel switches to this process.
    Switch(usize),
    /// A line of the running process, or of the kernel for it, is touched; by a store, 16 bytes of it at most.
    Touch(Kind, MemorySegment, u32),
    /// Instructions take so many cycles, beside what their accesses may take.
    Work(f64),
    /// A round ends: what came before is warm-up, or another measurement.
    Lap,
}

/// What a piece of code touches, and how long its instructions take.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CodePath {
    touches: Vec<SegmentTouch>,
    /// Cycles of its instructions, without misses.
    pub cycles: f64,
}

impl CodePath {
    /// A path through the kernel, in lines: of code, of static data, of the process's own data. Every other line of
    /// data is stored to, after it was loaded; each function has a line of constants, its last. Where they lie is drawn
    /// from the seed.
    pub fn kernel(seed: u64, code: u32, data: u32, of_process: u32, cycles: f64) -> Self {
        let mut random = SplitMix64::new(seed);
        let mut touches = Vec::new();
        // First offsets of functions or structures, and how many lines each has.
        let mut scattered = |lines: u32, start: u32, bytes: u32, in_a_row: u32| {
            let firsts = (0..lines).step_by(in_a_row as usize).map(|line| {
                let most = u64::from(bytes / LINE - in_a_row);
                (start + LINE * random.below(most) as u32, in_a_row.min(lines - line))
            });
            firsts.collect::<Vec<_>>()
        };
        for (first, lines) in scattered(code, 0, KERNEL_CODE, FUNCTION_LINES) {
            touches.extend(function(MemorySegment::Kernel, first, lines));
        }
        for (first, lines) in scattered(data, KERNEL_CODE, KERNEL_DATA, STRUCTURE_LINES) {
            touches.extend(used(MemorySegment::Kernel, first, lines));
        }
        let first = random.below(64) as u32; // not all paths use the same lines of a process's
        touches.extend(used(MemorySegment::OfProcess, LINE * first, of_process));
        Self { touches, cycles }
    }

    /// A path through a program: lines of its own code, and of library code in so many pages, each with a line of
    /// constants; two lines of data and two of the library's, and lines of its stack.
    pub fn program(code: u32, library: u32, library_pages: u32, stack: u32, cycles: f64) -> Self {
        let mut touches = function(MemorySegment::Text, 0, code);
        for page in 0..library_pages.min(library) {
            let lines = library / library_pages + u32::from(page < library % library_pages);
            touches.extend(function(MemorySegment::Library, page * (5 * PAGE + 11 * LINE), lines));
        }
        // Segments' first lines in use are not all their pages' first: they would all meet in one set.
        for (segment, first, lines) in
            [(MemorySegment::Stack, 13, stack), (MemorySegment::Data, 3, 2), (MemorySegment::LibraryData, 6, 2)]
        {
            touches.extend(used(segment, LINE * first, lines));
        }
        Self { touches, cycles }
    }

    /// A path through a program that does little but make so many kinds of system calls: lines of its own code, and one
    /// of its table of jumps into the library, which has constants between its instructions (Wiggins et al., section
    /// 3.2); a line of the library for each call, neighbours there (recalled), which takes no constant and no data of
    /// the library's unless the call fails (glibc 2.2, `sysdeps/unix/sysv/linux/arm/sysdep.h`); lines of data, the
    /// library's addresses among them, and of its stack.
    pub fn system_calls(code: u32, calls: u32, data: u32, stack: u32, cycles: f64) -> Self {
        let mut touches = function(MemorySegment::Text, JUMPS, 1);
        touches.extend(function(MemorySegment::Text, 0, code));
        touches.extend((0..calls).map(|n| (Kind::Fetch, MemorySegment::Library, CALLS + LINE * n)));
        for (segment, first, lines) in [(MemorySegment::Stack, 13, stack), (MemorySegment::Data, 3, data)] {
            touches.extend(used(segment, LINE * first, lines));
        }
        Self { touches, cycles }
    }

    /// Loads so many bytes of a segment.
    pub fn loads(segment: MemorySegment, offset: u32, bytes: u32, cycles: f64) -> Self {
        let touches = (0..bytes.div_ceil(LINE)).map(|n| (Kind::Load, segment, offset + LINE * n)).collect();
        Self { touches, cycles }
    }

    /// Stores so many bytes of a segment, 16 at a time.
    pub fn zeros(segment: MemorySegment, offset: u32, bytes: u32, cycles: f64) -> Self {
        let touches = (0..bytes.div_ceil(BLOCK)).map(|n| (Kind::Store, segment, offset + BLOCK * n)).collect();
        Self { touches, cycles }
    }

    /// Copies whole pages, a line at a time. Copies from and to programs move a page's first word by itself, so that
    /// each of the stores of four words that follow lies in two blocks of 16 bytes (Linux 2.4.0,
    /// `arch/arm/lib/uaccess.S`): `aligned` is false.
    pub fn copy(from: (MemorySegment, u32), to: (MemorySegment, u32), pages: u32, aligned: bool, cycles: f64) -> Self {
        let mut touches = Vec::new();
        for line in (0..pages * PAGE).step_by(LINE as usize) {
            touches.push((Kind::Load, from.0, from.1 + line));
            for block in (0..LINE).step_by(BLOCK as usize) {
                let store = (Kind::Store, to.0, to.1 + line + block);
                touches.extend(std::iter::repeat_n(store, if aligned { 1 } else { 2 }));
            }
        }
        Self { touches, cycles }
    }

    /// A byte of each of so many mapped pages is read: the same of each page.
    pub fn pages(pages: u32) -> Self {
        let touches = (0..pages).map(|n| (Kind::Load, MemorySegment::Mapped, PAGE * n)).collect();
        Self { touches, cycles: f64::from(pages) }
    }

    /// Its steps: the cycles shared out evenly.
    pub fn run(&self, step: &mut impl FnMut(BenchmarkStep)) {
        if self.touches.is_empty() {
            step(BenchmarkStep::Work(self.cycles));
        }
        let each = self.cycles / self.touches.len().max(1) as f64;
        for share in self.touches.chunks(SHARE) {
            step(BenchmarkStep::Work(each * share.len() as f64));
            share.iter().for_each(|(kind, segment, offset)| step(BenchmarkStep::Touch(*kind, *segment, *offset)));
        }
    }
}

type SegmentTouch = (Kind, MemorySegment, u32);

/// Lines of code in a row, the last of which holds constants.
fn function(segment: MemorySegment, first: u32, lines: u32) -> Vec<SegmentTouch> {
    let mut touches: Vec<SegmentTouch> = (0..lines).map(|n| (Kind::Fetch, segment, first + LINE * n)).collect();
    touches.extend(touches.last().map(|last| (Kind::Load, last.1, last.2)));
    touches
}

/// Lines of data in a row: all are loaded, every other is stored to.
fn used(segment: MemorySegment, first: u32, lines: u32) -> Vec<SegmentTouch> {
    let mut touches = Vec::new();
    for line in 0..lines {
        touches.push((Kind::Load, segment, first + LINE * line));
        if !line.is_multiple_of(2) {
            touches.push((Kind::Store, segment, first + LINE * line));
        }
    }
    touches
}

/// Processes in a ring, as in lmbench's `lat_ctx` (each touches its data and passes a token on), its `hot_potato` (two
/// of them), or *extreme* (each reads a byte of each page and yields): they take turns, each runs all paths. A lap a
/// round.
pub fn ring(processes: usize, rounds: usize, paths: &[&CodePath], step: &mut impl FnMut(BenchmarkStep)) {
    for _ in 0..rounds {
        for process in 0..processes {
            step(BenchmarkStep::Switch(process));
            paths.iter().for_each(|path| path.run(step));
        }
        step(BenchmarkStep::Lap);
    }
}

/// A server (process 0) and clients: it calls one at random, which answers at once (section 4.1, L4). A lap a round
/// trip.
pub fn random_calls(
    clients: usize,
    calls: usize,
    seed: u64,
    paths: &[&CodePath],
    step: &mut impl FnMut(BenchmarkStep),
) {
    let mut random = SplitMix64::new(seed);
    for _ in 0..calls {
        for process in [1 + random.below(clients as u64) as usize, 0] {
            step(BenchmarkStep::Switch(process));
            paths.iter().for_each(|path| path.run(step));
        }
        step(BenchmarkStep::Lap);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn steps(run: impl Fn(&mut dyn FnMut(BenchmarkStep))) -> Vec<BenchmarkStep> {
        let mut all = Vec::new();
        run(&mut |step| all.push(step));
        all
    }

    #[test]
    fn a_ring_takes_turns() {
        let path = CodePath::pages(2);
        let all = steps(|mut step| ring(2, 2, &[&path], &mut step));
        let touch = |n| BenchmarkStep::Touch(Kind::Load, MemorySegment::Mapped, n * PAGE);
        let turn = |process| [BenchmarkStep::Switch(process), BenchmarkStep::Work(2.0), touch(0), touch(1)];
        let round = [&turn(0)[..], &turn(1), &[BenchmarkStep::Lap]].concat();
        assert_eq!(all, [&round[..], &round].concat());
    }

    #[test]
    fn the_server_runs_between_all_calls_and_all_clients_are_called() {
        let all = steps(|mut step| random_calls(5, 200, 1, &[], &mut step));
        let switches: Vec<usize> =
            all.iter().filter_map(|step| if let BenchmarkStep::Switch(to) = step { Some(*to) } else { None }).collect();
        assert_eq!(switches.len(), 400);
        assert!(switches.chunks(2).all(|pair| pair[0] > 0 && pair[1] == 0));
        assert_eq!(switches.iter().copied().collect::<BTreeSet<_>>(), (0..6).collect());
        assert_eq!(all, steps(|mut step| random_calls(5, 200, 1, &[], &mut step)), "the same again");
    }

    #[test]
    fn a_kernel_path_has_the_lines_asked_for_in_its_own_places() {
        let path = CodePath::kernel(1, 100, 10, 20, 7.0);
        let of = |kind, segment| path.touches.iter().filter(move |touch| touch.0 == kind && touch.1 == segment);
        let code: BTreeSet<u32> = of(Kind::Fetch, MemorySegment::Kernel).map(|touch| touch.2 / LINE).collect();
        assert_eq!((of(Kind::Fetch, MemorySegment::Kernel).count(), path.cycles), (100, 7.0));
        assert!(code.iter().all(|line| line * LINE < KERNEL_CODE));
        assert!(code.len() >= 90, "functions hardly overlap: {}", code.len());
        // Twelve functions and a half: thirteen lines of constants among the code's, and ten of data.
        let loads: Vec<u32> = of(Kind::Load, MemorySegment::Kernel).map(|touch| touch.2).collect();
        assert_eq!(loads.iter().filter(|at| **at < KERNEL_CODE).count(), 13);
        assert!(loads.iter().filter(|at| **at < KERNEL_CODE).all(|at| code.contains(&(at / LINE))));
        assert_eq!((loads.len(), of(Kind::Store, MemorySegment::Kernel).count()), (23, 5));
        assert_eq!(
            (of(Kind::Load, MemorySegment::OfProcess).count(), of(Kind::Store, MemorySegment::OfProcess).count()),
            (20, 10)
        );
        assert!(of(Kind::Load, MemorySegment::OfProcess).all(|touch| touch.2 < 8192));
    }

    #[test]
    fn a_system_calls_stub_is_code_alone() {
        let path = CodePath::system_calls(6, 2, 3, 4, 70.0);
        let of = |kind, segment| path.touches.iter().filter(move |touch| touch.0 == kind && touch.1 == segment).count();
        assert_eq!(
            (of(Kind::Fetch, MemorySegment::Text), of(Kind::Load, MemorySegment::Text)),
            (7, 2),
            "two lines have constants"
        );
        assert_eq!((of(Kind::Fetch, MemorySegment::Library), of(Kind::Load, MemorySegment::Library)), (2, 0));
        assert_eq!((of(Kind::Load, MemorySegment::Data), of(Kind::Load, MemorySegment::Stack)), (3, 4));
        assert!(path.touches.iter().all(|touch| touch.1 != MemorySegment::LibraryData));
    }

    /// Whatever a path but a copy or zeros stores to, it has loaded.
    #[test]
    fn lines_are_loaded_before_they_are_stored_to() {
        for path in [
            CodePath::kernel(3, 40, 11, 9, 0.0),
            CodePath::program(20, 13, 3, 5, 0.0),
            CodePath::system_calls(6, 2, 3, 3, 0.0),
        ] {
            let mut loaded = BTreeSet::new();
            for (kind, segment, offset) in &path.touches {
                let line = (format!("{segment:?}"), offset / LINE);
                assert!(*kind != Kind::Store || loaded.contains(&line), "{line:?}");
                if *kind == Kind::Load {
                    loaded.insert(line);
                }
            }
        }
    }

    #[test]
    fn a_copy_loads_each_line_once_and_stores_its_blocks() {
        let copy = |aligned| CodePath::copy((MemorySegment::Data, 64), (MemorySegment::Kernel, 0), 1, aligned, 4096.0);
        let stores = |path: &CodePath| path.touches.iter().filter(|touch| touch.0 == Kind::Store).count();
        assert_eq!((copy(true).touches.len(), stores(&copy(true))), (128 + 256, 256));
        assert_eq!((copy(false).touches.len(), stores(&copy(false))), (128 + 512, 512));
        assert_eq!(copy(true).touches[3..6].iter().map(|touch| touch.2).collect::<Vec<_>>(), [96, 32, 48]);
        assert_eq!(CodePath::zeros(MemorySegment::Kernel, 0, PAGE, 0.0).touches.len(), 256);
        // All its cycles are told, whatever they are shared out over.
        for path in [copy(false), CodePath::kernel(1, 33, 3, 3, 100.0), CodePath::pages(0), CodePath::pages(9)] {
            let mut told = 0.0;
            path.run(&mut |step| told += if let BenchmarkStep::Work(cycles) = step { cycles } else { 0.0 });
            assert!((told - path.cycles).abs() < 1e-6, "{told} of {}", path.cycles);
        }
    }
}
