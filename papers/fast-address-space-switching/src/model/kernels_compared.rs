//! Processes of a benchmark under one of the kernels compared.

use std::error::Error;

use lookaside_harness::ModelResult;
use lookaside_machine::preset;

use super::footprint;
use crate::benchmarks::{BenchmarkStep, MemorySegment};
use crate::domains::model::{Model, ModelProcess, ModelRegion, Switching};
use crate::domains::{Config, MappingAddress, PageMapping, PAGE_BYTES};

/// A kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KernelVariant {
    /// Linux as it was: flushes on each switch.
    Original,
    /// Fast switching.
    Fast,
    /// Fast switching, with library text shared.
    Sharing,
    /// L4 as it was.
    L4Standard,
    L4Fast,
}

impl KernelVariant {
    fn switching(self) -> Switching {
        match self {
            KernelVariant::Original | KernelVariant::L4Standard => Switching::Flush,
            KernelVariant::Fast | KernelVariant::Sharing => Switching::Domains(Config::LINUX),
            // Where the kernel lies makes no difference here, and all paths have it where Linux does.
            KernelVariant::L4Fast => {
                Switching::Domains(Config { reserved_domains: Config::L4.reserved_domains, ..Config::LINUX })
            }
        }
    }
}

/// Where programs have their segments below 32 MiB, and how many pages.
const TEXT: (u32, u32) = (0x8000, 4);
/// Behind the text, from the next 32 KiB on, as ARM's linker puts it [recalled].
const DATA: (u32, u32) = (0x0001_4000, 64);
/// The library's data, where that is apart from its text (section 3.2).
const LIBRARY_DATA: (u32, u32) = (0x0030_0000, 4);
const STACK: (u32, u32) = (0x01ff_0000, 16);
/// A C library's text: a megabyte, "multiple megabytes of code and data" (section 3.2).
const LIBRARY_PAGES: u32 = 256;
/// The kernel's part, and its data of processes, so far from one to the next.
const KERNEL: u32 = 0xc000_0000;
const OF_PROCESSES: u32 = 0xc080_0000;
const OF_PROCESS_BYTES: u32 = 16 << 10;
/// Of processes that come after so many others the data lie where an earlier one's did.
const OF_PROCESSES_MOST: usize = 64;

/// All segments, each at its number.
const SEGMENTS: [MemorySegment; 8] = [
    MemorySegment::Text,
    MemorySegment::Data,
    MemorySegment::Stack,
    MemorySegment::Library,
    MemorySegment::LibraryData,
    MemorySegment::Mapped,
    MemorySegment::Kernel,
    MemorySegment::OfProcess,
];

/// Where a process has what is not the same for all.
#[derive(Clone, Copy, Debug, Default)]
struct ProcessLayout {
    program: ModelProcess,
    library: u32,
    library_data: u32,
    mapped: u32,
}

/// Pages that the processes map beside their programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MappedPages {
    pub(super) pages: u32,
    /// The same pages for all.
    pub(super) shared: bool,
}

/// The processes, and what the steps came to.
pub(super) struct BenchmarkRun {
    model: Model,
    /// Frames used so far.
    frames: u32,
    library: PageMapping,
    /// Its text, where that is shared.
    shared_library: Option<ModelRegion>,
    mapped: Option<MappedPages>,
    shared_pages: Option<ModelRegion>,
    layouts: Vec<ProcessLayout>,
    running: usize,
    /// Where the running process has its segments, by number.
    starts: [u32; SEGMENTS.len()],
    /// Cycles at the end of each lap.
    laps: Vec<f64>,
    failed: Option<Box<dyn Error + Send + Sync>>,
}

impl BenchmarkRun {
    /// So many processes of one program.
    pub(super) fn new(system: KernelVariant, processes: usize, mapped: Option<MappedPages>) -> ModelResult<Self> {
        let model = Model::new(&preset("sa1100")?, system.switching())?;
        let library = PageMapping { pages: LIBRARY_PAGES, frame: 0, writable: false };
        let mut world = Self {
            model,
            frames: LIBRARY_PAGES,
            library,
            shared_library: None,
            mapped,
            shared_pages: None,
            layouts: Vec::new(),
            running: 0,
            starts: [0; SEGMENTS.len()],
            laps: Vec::new(),
            failed: None,
        };
        if system == KernelVariant::Sharing {
            world.shared_library = Some(world.model.create_region(library)?);
        }
        if let Some(MappedPages { pages, shared: true }) = mapped {
            let pages = world.pages(pages, true);
            world.shared_pages = Some(world.model.create_region(pages)?);
        }
        for _ in 0..processes {
            world.spawn()?;
        }
        world.set_running(0);
        world.set_fault_path();
        Ok(world)
    }

    /// A mapping of frames that nobody has.
    fn pages(&mut self, pages: u32, writable: bool) -> PageMapping {
        let frame = self.frames;
        self.frames += pages;
        PageMapping { pages, frame, writable }
    }

    /// Another process of the same program: its number.
    pub(super) fn spawn(&mut self) -> ModelResult<usize> {
        let program = self.model.create()?;
        for ((addr, pages), writable) in [(TEXT, false), (DATA, true), (STACK, true)] {
            let pages = self.pages(pages, writable);
            self.model.map(program, MappingAddress::Fixed(addr), pages)?;
        }
        let mut layout = ProcessLayout { program, ..ProcessLayout::default() };
        let data = self.pages(LIBRARY_DATA.1, true);
        // Shared: text where all have it, data below 32 MiB. Private: data directly behind the text.
        (layout.library, layout.library_data) = match &self.shared_library {
            Some(region) => (
                self.model.attach(program, region)?,
                self.model.map(program, MappingAddress::Fixed(LIBRARY_DATA.0), data)?,
            ),
            None => {
                let text = self.model.map(program, MappingAddress::Anywhere, self.library)?;
                (text, self.model.map(program, MappingAddress::Anywhere, data)?)
            }
        };
        layout.mapped = match (&self.shared_pages, self.mapped) {
            (Some(region), _) => self.model.attach(program, region)?,
            (None, Some(of)) => {
                let pages = self.pages(of.pages, true);
                self.model.map(program, MappingAddress::Anywhere, pages)?
            }
            (None, None) => 0,
        };
        self.layouts.push(layout);
        Ok(self.layouts.len() - 1)
    }

    /// A process exits.
    pub(super) fn exit(&mut self, process: usize) -> ModelResult<()> {
        let program = self.layouts.get(process).map_or(usize::MAX, |layout| layout.program);
        Ok(self.model.exit(program)?)
    }

    /// Caches and TLBs are flushed.
    pub(super) fn flush(&mut self) {
        self.model.flush();
    }

    /// An area of the running process is unmapped.
    pub(super) fn unmap(&mut self, pages: u32) {
        // Which one does not matter: a kernel that flushes has done so before it unmaps the first, and what comes in
        // then is code and kernel data.
        self.model.unmap(TEXT.0, pages);
    }

    /// The running process has written to the page of a segment first after a fork.
    pub(super) fn replace_page(&mut self, segment: MemorySegment, executable: bool) {
        self.model.replace_page(self.addr(segment, 0), executable);
    }

    /// The kernel's, in the first process's part: a fault's few lines are not what programs compete for.
    fn set_fault_path(&mut self) {
        let (mut accesses, mut cycles) = (Vec::new(), 0.0);
        footprint::fault().run(&mut |step| match step {
            BenchmarkStep::Touch(kind, segment, offset) => accesses.push((kind, self.addr(segment, offset))),
            BenchmarkStep::Work(more) => cycles += more,
            BenchmarkStep::Switch(_) | BenchmarkStep::Lap => {}
        });
        self.model.set_fault_path(accesses, cycles);
    }

    /// This process runs from now on: where its segments are.
    fn set_running(&mut self, process: usize) {
        self.running = process;
        let layout = self.layouts.get(process).copied().unwrap_or_default();
        self.starts = SEGMENTS.map(|segment| match segment {
            MemorySegment::Text => TEXT.0,
            MemorySegment::Data => DATA.0,
            // The top page is in use.
            MemorySegment::Stack => STACK.0 + (STACK.1 - 1) * PAGE_BYTES,
            MemorySegment::Library => layout.library,
            MemorySegment::LibraryData => layout.library_data,
            MemorySegment::Mapped => layout.mapped,
            MemorySegment::Kernel => KERNEL,
            MemorySegment::OfProcess => OF_PROCESSES + (process % OF_PROCESSES_MOST) as u32 * OF_PROCESS_BYTES,
        });
    }

    fn addr(&self, segment: MemorySegment, offset: u32) -> u32 {
        self.starts[segment as usize] + offset
    }

    /// Does a step. After one that failed, nothing more is done.
    #[inline]
    pub(super) fn step(&mut self, step: BenchmarkStep) {
        if self.failed.is_some() {
            return;
        }
        let done = match step {
            BenchmarkStep::Switch(to) => {
                self.set_running(to);
                self.model.switch(self.layouts.get(to).map_or(usize::MAX, |layout| layout.program))
            }
            BenchmarkStep::Touch(kind, segment, offset) => self.model.access(kind, self.addr(segment, offset)),
            BenchmarkStep::Work(cycles) => {
                self.model.work(cycles);
                Ok(())
            }
            BenchmarkStep::Lap => {
                self.laps.push(self.model.cycles());
                Ok(())
            }
        };
        if let Err(error) = done {
            self.failed = Some(error.into());
        }
    }

    /// Cycles of a lap in the mean, the first `warm` left out.
    pub(super) fn mean_lap(self, warm: usize) -> ModelResult<f64> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let laps = self.laps.len().saturating_sub(warm + 1).max(1);
        let (first, last) = (self.laps.get(warm), self.laps.last());
        Ok((last.copied().unwrap_or(0.0) - first.copied().unwrap_or(0.0)) / laps as f64)
    }
}
