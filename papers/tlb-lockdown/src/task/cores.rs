//! Runs of a task's stream: on a core where others ran before it, alone or beside cores where others run all the time.

use lookaside_engine::{
    AccessResult, BackgroundCounts, Detail, Engine, LockedPage, OsModel, PagePolicy, ProcessRange, Setup, SetupError,
};
use lookaside_machine::{Machine, PageSize};
use lookaside_trace::{Block, Event, Kind};

use super::record::TaskRecording;
use super::stream::{Item, ItemKind};
use super::SECTIONS;

/// The task's process; those before it on its core have the next numbers.
pub(crate) const TASK: u32 = 1;
/// Processes of other cores, and how many each may have.
const OTHERS: u32 = 16;
const MOST_OF_A_CORE: u32 = 16;

/// A program that ran before the task on its core, and has ended.
#[derive(Clone, Debug)]
pub(crate) struct ProgramBefore {
    /// What the main TLB and the caches saw of it.
    pub items: Vec<Item>,
    /// Its cycles.
    pub cycles: f64,
}

/// What another core does over and over.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackgroundRound {
    /// When, which program of the round, and what line missed the core's first-level data cache.
    lines: Vec<(f64, u32, Kind, u64)>,
    /// When its kernel invalidates TLB entries on all cores.
    maintenance: Vec<f64>,
    cycles: f64,
}

impl BackgroundRound {
    /// Programs one after the other, each with how often its recorded part is repeated and with the maintenance
    /// operations that start it, which no recording of the program itself has.
    pub(crate) fn new<'a>(programs: impl IntoIterator<Item = (&'a TaskRecording, u32, u32)>) -> Self {
        let mut round = Self::default();
        for (number, (recording, times, starts)) in (0..).zip(programs) {
            round.maintenance.extend((0..starts).map(|_| round.cycles));
            for time in 0..times {
                let begin = round.cycles;
                // What a part maps and unmaps, the program does once.
                if time == 0 {
                    round.maintenance.extend(recording.maintenance_cycles().map(|at| begin + at));
                }
                round.lines.extend(recording.missed_lines().map(|(at, kind, addr)| (begin + at, number, kind, addr)));
                round.cycles += recording.cycles();
            }
        }
        round.maintenance.sort_by(f64::total_cmp);
        round
    }

    /// Cycles of a round.
    pub(crate) fn cycles(&self) -> f64 {
        self.cycles
    }

    /// Maintenance operations in these cycles, where a round began at `begin`, which is not positive.
    pub(crate) fn maintenance(&self, begin: f64, cycles: f64) -> Vec<f64> {
        let rounds =
            (0..).map(|n| begin + f64::from(n) * self.cycles).take_while(|at| *at < cycles && self.cycles > 0.0);
        let all = rounds.flat_map(|round| self.maintenance.iter().map(move |at| round + at));
        all.filter(|at| (0.0..cycles).contains(at)).collect()
    }
}

/// How far another core is in its rounds.
struct RoundCursor<'a> {
    round: &'a BackgroundRound,
    begin: f64,
    next: usize,
    first_process: u32,
}

impl RoundCursor<'_> {
    /// Touches the lines up to a time.
    fn go_on(&mut self, until: f64, engine: &mut Engine, apart: &mut BackgroundCounts) {
        loop {
            let Some(&(at, program, kind, addr)) = self.round.lines.get(self.next) else {
                if self.round.lines.is_empty() {
                    return;
                }
                self.begin += self.round.cycles;
                self.next = 0;
                continue;
            };
            if self.begin + at >= until {
                return;
            }
            let process = self.first_process + program;
            engine.touch_line((process, process), kind, addr, apart);
            self.next += 1;
        }
    }
}

/// Of one side of a task's accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TlbSideCounts {
    /// Missed the micro TLB.
    pub missed: u64,
    /// Of these, hits in lockable entries of the main TLB.
    pub locked: u64,
    /// Of these, walks.
    pub walks: u64,
    /// Their cycles.
    pub walk_cycles: f64,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TaskCounts {
    /// Loads and stores.
    pub data: TlbSideCounts,
    /// Fetches.
    pub fetch: TlbSideCounts,
    /// Cycles that data accesses would wait for the main TLB while it walks for a fetch before them, did the data side
    /// run on meanwhile: no more than these, since it can't for long.
    pub waited_cycles: f64,
}

/// Where a task runs.
#[derive(Clone, Debug)]
pub(crate) struct TaskScene {
    setup: Setup,
    cores: u32,
    /// What ran before on the task's core, in order.
    pub before: Vec<ProgramBefore>,
    /// What the other cores do; none: they are off.
    pub others: Vec<BackgroundRound>,
}

/// The setup in which the engine's main TLB is asked first: what reaches it is in the items already. The kernel is
/// mapped by sections of 1 MiB.
pub(crate) fn main_tlb_alone(machine: &Machine) -> Setup {
    let mut machine = machine.clone();
    // No access is to a page of the largest size, so that these arrays take no part; and keep their number in the file,
    // which random victims depend on.
    for tlb in machine.tlbs.iter_mut().filter(|tlb| tlb.level == 1) {
        tlb.page_sizes = tlb.page_sizes.iter().copied().max().into_iter().collect();
    }
    let sections = ProcessRange { process: None, start: SECTIONS.start, end: SECTIONS.end };
    let os =
        OsModel { pages: PagePolicy::Selective(vec![sections]), huge_page: Some(PageSize::M1), ..OsModel::default() };
    Setup { detail: Detail::Totals, os, ..Setup::new(machine) }
}

impl TaskScene {
    /// On a machine, with no one else yet.
    pub(crate) fn new(machine: &Machine) -> Self {
        let cores = machine.topology.sockets * machine.topology.cores_per_socket;
        Self { setup: main_tlb_alone(machine), cores, before: Vec::new(), others: Vec::new() }
    }

    /// Runs the task's items with these pages locked. A seed chooses random replacement's victims, and where frames and
    /// tables lie; `begins` are the times, none of them positive, at which each other core began its round, the task
    /// beginning at 0.
    ///
    /// # Errors
    /// The setup can't be run, or more pages are locked than may be.
    pub(crate) fn run(
        &self,
        task: &[Item],
        locks: &[LockedPage],
        seed: u64,
        begins: &[f64],
    ) -> Result<TaskCounts, SetupError> {
        let mut engine = Engine::new(Setup { locks: locks.to_vec(), seed, ..self.setup.clone() })?;
        let mut apart = engine.background_counts();
        let core = self.cores - 1;
        let mut cursors = Vec::new();
        for ((number, round), begin) in (0..).zip(&self.others).zip(begins) {
            let first_process = OTHERS + number * MOST_OF_A_CORE;
            for process in first_process..first_process + MOST_OF_A_CORE {
                engine.run(&to_core(process, number));
            }
            cursors.push(RoundCursor { round, begin: *begin, next: 0, first_process });
        }
        let mut now = -self.before.iter().map(|before| before.cycles).sum::<f64>();
        let mut ignored = RunTally::default();
        for (process, before) in (TASK + 1..).zip(&self.before) {
            let mut on = ProcessOnCore { engine: &mut engine, apart: &mut apart, cursors: &mut cursors, process };
            on.run(&to_core(process, core));
            on.go(&before.items, now, &mut ignored);
            let mut end = Block { process, thread: process, ..Block::default() };
            end.push_event(Event::ProcessExit { code: 0 });
            on.run(&end);
            now += before.cycles;
        }
        let mut tally = RunTally::default();
        let mut on = ProcessOnCore { engine: &mut engine, apart: &mut apart, cursors: &mut cursors, process: TASK };
        on.run(&to_core(TASK, core));
        on.go(task, 0.0, &mut tally);
        Ok(tally.came)
    }
}

/// A process comes to a core.
fn to_core(process: u32, cpu: u32) -> Block {
    let mut block = Block { process, thread: process, ..Block::default() };
    block.push_event(Event::ContextSwitch { cpu });
    block
}

/// A process on the task's core.
struct ProcessOnCore<'a, 'b> {
    engine: &'a mut Engine,
    apart: &'a mut BackgroundCounts,
    cursors: &'a mut Vec<RoundCursor<'b>>,
    process: u32,
}

impl ProcessOnCore<'_, '_> {
    fn run(&mut self, block: &Block) {
        self.engine.run(block);
    }

    fn go(&mut self, items: &[Item], begin: f64, tally: &mut RunTally) {
        let who = (self.process, self.process);
        let mut one = Block { process: self.process, thread: self.process, ..Block::default() };
        one.push(Kind::Load, 0);
        for item in items {
            for cursor in self.cursors.iter_mut() {
                cursor.go_on(begin + item.at_cycles, self.engine, self.apart);
            }
            match item.what {
                ItemKind::Line => self.engine.touch_line(who, item.kind, item.addr.into(), self.apart),
                ItemKind::Missed => {
                    (one.kind[0], one.addr[0]) = (item.kind, item.addr.into());
                    self.engine.run_traced(&one, &mut |result| tally.add(item, &result));
                }
            }
        }
    }
}

/// A run's counts so far.
#[derive(Default)]
struct RunTally {
    came: TaskCounts,
    /// Until when the main TLB walks for a fetch.
    busy_until: f64,
}

impl RunTally {
    fn add(&mut self, item: &Item, result: &AccessResult) {
        let is_fetch = item.kind == Kind::Fetch;
        let side = if is_fetch { &mut self.came.fetch } else { &mut self.came.data };
        side.missed += 1;
        side.locked += u64::from(result.locked);
        if result.hit.is_none() {
            side.walks += 1;
            side.walk_cycles += result.cycles;
        }
        if is_fetch {
            let walk = if result.hit.is_none() { result.cycles } else { 0.0 };
            self.busy_until = item.at_cycles + walk;
        } else {
            self.came.waited_cycles += (self.busy_until - item.at_cycles).max(0.0);
            // Whoever waited finds it free, and so do those after.
            self.busy_until = 0.0;
        }
    }
}
