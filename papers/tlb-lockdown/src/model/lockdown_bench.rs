//! What the runs share: machine, recorded programs, the kernel's part, and what interrupts a run.

use std::sync::atomic::AtomicBool;

use lookaside_engine::os::mix;
use lookaside_engine::{LockedPage, Setup};
use lookaside_harness::{in_parallel, Effort, ModelResult, BACKGROUND};
use lookaside_machine::{preset, Machine};
use lookaside_techniques::lock::bench::LockBench;
use lookaside_techniques::lock::histogram::{Histogram, LockPage};
use lookaside_techniques::lock::plan::SEEDS;
use lookaside_techniques::lock::select::{select, PageSelector, SearchLimits};
use lookaside_trace::{Block, Kind};
use lookaside_workloads::WorkloadStream;

use crate::programs::{program, ProgramInput, ProgramSpec};
use crate::task::cores::{main_tlb_alone, BackgroundRound, ProgramBefore, TaskScene, TASK};
use crate::task::{micro_entries, record, stream, Interruption, Item, ItemKind, TaskRecording, SECTIONS};

/// The real-time programs, in the order of the paper's tables.
pub(super) const TASKS: [&str; 3] = ["basicmath", "qsort", "susan"];
/// The array that has lockable entries.
pub(super) const MAIN: &str = "main";
/// log2 of a page's bytes.
const PAGE_SHIFT: u32 = 12;

/// Timer interrupts a second: Linux's default on ARM (`CONFIG_HZ`) [recalled].
const TICKS_PER_SECOND: f64 = 100.0;
/// Cores beside the task's.
const OTHER_CORES: usize = 3;
/// How often each sample is run in a turn: that of the typesetter is a tenth of its run.
const TIMES: [u32; 3] = [1, 1, 10];
/// TLB maintenance for a start that is in no recording of the program started: the parent's pages become copy-on-write,
/// and `exec` gives up the copy of the parent's map.
const STARTS: u32 = 2;

/// What the kernel touches when it is entered for a page fault or a switch: vectors and their stubs, two sections of
/// its code, its static data, the task's stack and what it knows of the task's memory, in memory that it maps by
/// sections. Assumed: Linux's addresses on ARM, as few of them as there must be.
const FAULT: [(Kind, u64); 7] = [
    (Kind::Fetch, 0xffff_0000),
    (Kind::Fetch, 0xffff_1000),
    (Kind::Fetch, 0xc010_0000),
    (Kind::Fetch, 0xc020_0000),
    (Kind::Load, 0xc0f0_0000),
    (Kind::Store, 0xd800_0000),
    (Kind::Load, 0xd900_0000),
];
/// The same for a timer interrupt: in place of the task's memory the core's own data, and the registers of timer and
/// interrupts.
const TICK: [(Kind, u64); 8] = [
    (Kind::Fetch, 0xffff_0000),
    (Kind::Fetch, 0xffff_1000),
    (Kind::Fetch, 0xc010_0000),
    (Kind::Fetch, 0xc020_0000),
    (Kind::Load, 0xc0f0_0000),
    (Kind::Store, 0xd800_0000),
    (Kind::Load, 0xdf00_0000),
    (Kind::Load, 0xf400_0000),
];

/// The same for a system call that reads or writes: in place of the task's memory a third section of code and what it
/// knows of the file. The copy itself is in the task's own stream.
const CALL: [(Kind, u64); 8] = [
    (Kind::Fetch, 0xffff_0000),
    (Kind::Fetch, 0xffff_1000),
    (Kind::Fetch, 0xc010_0000),
    (Kind::Fetch, 0xc020_0000),
    (Kind::Fetch, 0xc030_0000),
    (Kind::Load, 0xc0f0_0000),
    (Kind::Store, 0xd800_0000),
    (Kind::Load, 0xda00_0000),
];

/// A setting of the paper's, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CoreSetting {
    /// All cores but one are off.
    One,
    /// Four, three of which run the background over and over.
    Four,
    /// As four, but that no core's TLB maintenance reaches the task's.
    FourApart,
}

/// Machine and recorded programs.
pub(super) struct LockdownBench {
    machine: Machine,
    /// In the order of [`TASKS`].
    pub(super) tasks: Vec<TaskRecording>,
    scenes: [TaskScene; 2],
    ticks: f64,
}

impl LockdownBench {
    pub(super) fn new(effort: Effort) -> ModelResult<Self> {
        let machine = preset("cortex-a9")?;
        let setup = Setup::new(machine.clone());
        let tasks = in_parallel(&TASKS, |name| -> ModelResult<TaskRecording> {
            let input = match (effort, *name) {
                (Effort::Usual, _) | (Effort::Quick, "basicmath") => ProgramInput::Paper,
                (Effort::Quick, _) => ProgramInput::Small,
            };
            let program = program(name, &ProgramSpec::new(input, 1))?;
            Ok(record(&setup, &mut WorkloadStream::new(program))?)
        });
        let tasks = tasks.into_iter().collect::<ModelResult<Vec<_>>>()?;
        let samples = in_parallel(&BACKGROUND, |sample| -> ModelResult<TaskRecording> {
            Ok(record(&setup, &mut sample.open()?)?)
        });
        let samples = samples.into_iter().collect::<ModelResult<Vec<_>>>()?;
        let ticks = machine.clock_mhz * 1e6 / TICKS_PER_SECOND;

        let mut one = TaskScene::new(&machine);
        let entries = micro_entries(&machine)?;
        // cjpeg, then djpeg.
        for sample in &samples[..2] {
            let interruptions = interruptions(sample, 0.0, ticks, Vec::new());
            one.before.push(ProgramBefore { items: stream(sample, entries, &interruptions), cycles: sample.cycles() });
        }
        let mut four = one.clone();
        let round = BackgroundRound::new(samples.iter().zip(TIMES).map(|(sample, times)| (sample, times, STARTS)));
        four.others = vec![round; OTHER_CORES];
        Ok(Self { machine, tasks, scenes: [one, four], ticks })
    }

    pub(super) fn machine(&self) -> &str {
        &self.machine.name
    }

    /// Cycles of a hit in the main TLB.
    pub(super) fn main_hit_cycles(&self) -> f64 {
        self.machine.tlbs.iter().find(|tlb| tlb.name == MAIN).map_or(0.0, |tlb| tlb.hit_cycles)
    }

    /// Where a run takes place.
    pub(super) fn scene(&self, cores: CoreSetting) -> &TaskScene {
        &self.scenes[usize::from(cores != CoreSetting::One)]
    }

    /// When the other cores began their rounds: anywhere in one when the task's core begins.
    pub(super) fn begins(&self, cores: CoreSetting, seed: u64) -> Vec<f64> {
        let scene = self.scene(cores);
        let before: f64 = scene.before.iter().map(|before| before.cycles).sum();
        (0..).zip(&scene.others).map(|(core, round)| -before - unit(mix(seed, 1, core, 0)) * round.cycles()).collect()
    }

    /// What the main TLB and the caches see of a task in a run.
    pub(super) fn stream(&self, task: usize, cores: CoreSetting, seed: u64) -> ModelResult<Vec<Item>> {
        let recording = &self.tasks[task];
        let flushes = match cores {
            CoreSetting::One | CoreSetting::FourApart => Vec::new(),
            CoreSetting::Four => {
                let rounds = self.scene(cores).others.iter().zip(self.begins(cores, seed));
                rounds.flat_map(|(round, begin)| round.maintenance(begin, recording.cycles())).collect()
            }
        };
        let first_tick = unit(mix(seed, 2, 0, 0)) * self.ticks;
        let interruptions = interruptions(recording, first_tick, self.ticks, flushes);
        Ok(stream(recording, micro_entries(&self.machine)?, &interruptions))
    }

    /// The paper's choice: the four data pages with most accesses.
    pub(super) fn most_accessed(&self, task: usize) -> Vec<LockedPage> {
        let mut counts = self.tasks[task].counts.clone();
        counts.sort_by_key(|of| (std::cmp::Reverse(of.data_accesses), of.page));
        counts.iter().take(4).map(|of| of.page.lock(MAIN, PAGE_SHIFT)).collect()
    }

    /// The data pages whose locks save most stall cycles, on one core with nothing before.
    pub(super) fn most_gaining(&self, task: usize) -> ModelResult<Vec<LockedPage>> {
        let mut block = Block { process: TASK, thread: TASK, ..Block::default() };
        for item in self.stream(task, CoreSetting::One, 1)?.iter().filter(|item| item.what == ItemKind::Missed) {
            block.push(item.kind, item.addr.into());
        }
        let setup = main_tlb_alone(&self.machine);
        let mut histogram = Histogram::new(setup.clone(), MAIN)?;
        histogram.run(&block);
        let (mut counts, _) = histogram.finish();
        counts.retain(|of| of.data_misses > 0 && of.page.addr(PAGE_SHIFT) < SECTIONS.start);
        let (blocks, stop) = ([block], AtomicBool::new(false));
        let mut bench = LockBench::new(&setup, MAIN, 4, (1..=SEEDS).collect(), &blocks, &stop);
        let pages: Vec<LockPage> = select(PageSelector::Gain, &counts, &mut bench, 4, SearchLimits::default())?;
        Ok(pages.iter().map(|page| page.lock(MAIN, PAGE_SHIFT)).collect())
    }

    /// With another way to choose victims in the main TLB.
    pub(super) fn one_core_with(&self, replacement: lookaside_machine::Replacement) -> TaskScene {
        let mut machine = self.machine.clone();
        for tlb in machine.tlbs.iter_mut().filter(|tlb| tlb.name == MAIN) {
            tlb.replacement = replacement;
        }
        let mut scene = TaskScene::new(&machine);
        scene.before.clone_from(&self.scenes[0].before);
        scene
    }

    /// What the model was told.
    pub(super) fn assumptions(&self, runs: u64) -> Vec<String> {
        let maintenance = self.scenes[1].others.first().map_or(0, |round| round.maintenance(0.0, round.cycles()).len());
        let million = self.scenes[1].others.first().map_or(0.0, BackgroundRound::cycles) / 1e6;
        vec![
            "programs are Lookaside's own with inputs between MiBench's small and large ones (basicmath: a fifth of the small one's cubics), linked \
             dynamically: they start by relocating libraries as large as Debian 12's; the background is cjpeg and djpeg of libjpeg-turbo and groff in place of MiBench's typeset (lout), recorded on ARM"
                .into(),
            format!(
                "{runs} runs, seeds 1 to {runs}: random replacement's victims, where frames and tables lie, when the timer ticks and where in its \
                 rounds each other core is. Each program is recorded once, alone; a run takes from that what comes to the main TLB (exact) and the \
                 lines that missed the L1 caches then (of one seed: what serves a walk is approximate)"
            ),
            "the task's core runs cjpeg and djpeg to their ends, then the task, which nothing preempts; on one core all others are off. Both counters count \
             from the task's first access to its last, kernel included, as the Cortex-A9's do. Pages are locked before that"
                .into(),
            format!(
                "the kernel (assumed): entered at the task's start, at each first touch of a page and first store to one that was read before (which empties \
                 the micro TLBs), when input is read and output written, and {TICKS_PER_SECOND} times a second; each time it touches {} to {} pages of its own, sections of 1 MiB but for the vectors. What it does in them takes no time",
                FAULT.len(),
                TICK.len()
            ),
            format!(
                "four cores: the others run cjpeg, djpeg and ten times the typesetter's sample, over and over; the lines that they miss go through their L1 caches to the \
                 shared L2. Their TLB maintenance is broadcast: it finds no entry of the task in its main TLB, but empties its micro TLBs (TRM, section \
                 6.2.1, from memory). {maintenance} times in {million:.1} million cycles of a core: what is mapped, unmapped and protected over what was mapped, copies on write, \
                 fork, exec, exit. Not modelled: the other cores' walks, interrupts between cores (the Cortex-A9 needs none), coherence, waits for L2 and memory"
            ),
            "micro stall: lookups in the main TLB, 4 cycles each (assumed), in its lockable entries less (fitted on one row); main stall: walks. An access that stalls stalls everything".into(),
        ]
    }
}

/// What befalls a program: it is switched to, touches pages for the first time, reads and writes files, the timer
/// ticks, and its own and other cores' maintenance empties its micro TLBs.
fn interruptions(
    recording: &TaskRecording,
    first_tick: f64,
    ticks: f64,
    flushes: Vec<f64>,
) -> Vec<(u32, Interruption)> {
    let mut all = vec![(0, Interruption::Flush), (0, Interruption::Kernel(&FAULT))];
    all.extend(recording.first_touches().iter().map(|row| (*row, Interruption::Kernel(&FAULT))));
    // Copies on write for the most part.
    all.extend(
        recording
            .maintenance()
            .iter()
            .flat_map(|row| [(*row, Interruption::Kernel(&FAULT)), (*row, Interruption::Flush)]),
    );
    all.extend(recording.system_calls().iter().map(|row| (*row, Interruption::Kernel(&CALL))));
    let times = (0..).map(|n| first_tick + f64::from(n) * ticks).take_while(|at| *at < recording.cycles());
    all.extend(times.map(|at| (recording.row_at(at), Interruption::Kernel(&TICK))));
    all.extend(flushes.iter().map(|at| (recording.row_at(*at), Interruption::Flush)));
    all.sort_by_key(|(row, _)| *row);
    all
}

/// A number in [0, 1).
fn unit(random: u64) -> f64 {
    (random >> 11) as f64 / (1u64 << 53) as f64
}
