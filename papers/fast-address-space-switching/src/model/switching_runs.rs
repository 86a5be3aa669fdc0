//! All runs.

use std::collections::BTreeMap;

use lookaside_harness::{in_parallel, Effort, ModelResult};

use super::footprint::{
    self, array_cycles, LinuxPaths, AREAS, COPIES_BEFORE_EXEC, EXECUTABLE_COPIES, FCNTL_CALLS, PARENT_FAULTS,
    PIPE_PAGES, SOCKET_CHUNK_PAGES, SOCKET_PAGES, SOCKET_TRIPS, TRANSFER_PAGES,
};
use super::kernels_compared::{BenchmarkRun, KernelVariant, MappedPages};
use crate::benchmarks::{random_calls, ring, BenchmarkStep, CodePath, MemorySegment};
use crate::domains::PAGE_BYTES;

/// The processor's clock: 200 MHz.
const CYCLES_PER_US: f64 = 200.0;
/// Rounds that do not count.
const WARM: usize = 20;
/// Clients of L4 whose standard kernel is run with as many calls as say that it is flat.
const STANDARD_CALLS: usize = 2000;

/// A benchmark of `hot_potato`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HotPotato {
    Fcntl,
    Fifo,
    Pipe,
    Unix,
    PipeBandwidth,
    UnixBandwidth,
}

impl HotPotato {
    const ALL: [Self; 6] = [Self::Fcntl, Self::Fifo, Self::Pipe, Self::Unix, Self::PipeBandwidth, Self::UnixBandwidth];
}

/// A benchmark of `proc_create`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CreationBenchmark {
    Fork,
    Exec,
    Shell,
}

/// How much is run.
struct RunSizes {
    rounds: usize,
    /// Numbers of processes of `lat_ctx`.
    processes: Vec<usize>,
    /// KiB of its arrays.
    arrays: Vec<u32>,
    /// Numbers of pages of *extreme*.
    pages: Vec<u32>,
    clients: Vec<usize>,
    calls: usize,
}

impl RunSizes {
    fn new(effort: Effort) -> Self {
        match effort {
            Effort::Usual => Self {
                rounds: 80,
                processes: (2..=24).collect(),
                arrays: vec![0, 4, 8, 16, 32],
                pages: (1..=48).collect(),
                clients: (1..=32).collect(),
                calls: 100_000,
            },
            Effort::Quick => Self {
                rounds: 24,
                processes: vec![2, 13, 14, 16],
                arrays: vec![0, 4],
                pages: vec![4, 12, 20, 40],
                clients: vec![1, 14, 15, 16, 20, 24],
                calls: 300,
            },
        }
    }
}

/// What came of them.
#[derive(Clone, Debug, Default)]
pub(super) struct SwitchingRuns {
    /// `lat_ctx` by kernel, processes and KiB: µs a switch.
    pub(super) lat_ctx: BTreeMap<(KernelVariant, usize, u32), f64>,
    /// *extreme* by processes, whether pages are shared, and their number: µs a process's turn.
    pub(super) extreme: BTreeMap<(usize, bool, u32), f64>,
    /// L4 by kernel and clients: µs a round trip.
    pub(super) ipc: BTreeMap<(KernelVariant, usize), f64>,
    /// `hot_potato`: µs a round trip, or MB/s.
    pub(super) potato: BTreeMap<(HotPotato, KernelVariant), f64>,
    /// `proc_create`: µs of misses, flushes and of the few instructions that are modelled.
    pub(super) creation: BTreeMap<(CreationBenchmark, KernelVariant), f64>,
}

/// Does all runs.
pub(super) fn run(effort: Effort, progress: &mut dyn FnMut(&str)) -> ModelResult<SwitchingRuns> {
    let size = RunSizes::new(effort);
    let mut study = SwitchingRuns::default();
    progress("hot_potato");
    for (what, system, value) in in_parallel(&potatoes(), |(what, system)| potato(*what, *system, size.rounds))
        .into_iter()
        .collect::<ModelResult<Vec<_>>>()?
    {
        study.potato.insert((what, system), value);
    }
    progress("proc_create");
    let creations: Vec<(CreationBenchmark, KernelVariant)> =
        [CreationBenchmark::Fork, CreationBenchmark::Exec, CreationBenchmark::Shell]
            .into_iter()
            .flat_map(|what| [KernelVariant::Original, KernelVariant::Fast].map(|system| (what, system)))
            .collect();
    study.creation =
        in_parallel(&creations, |of| creation(*of, size.rounds)).into_iter().collect::<ModelResult<_>>()?;
    progress("lat_ctx");
    let overhead = alone(size.rounds)?;
    for ((system, processes, array), value) in
        in_parallel(&rings(&size), |of| lat_ctx(of, &size)).into_iter().collect::<ModelResult<Vec<_>>>()?
    {
        let kib = size.arrays[array];
        study.lat_ctx.insert((system, processes, kib), value - overhead - us(array_cycles(kib << 10)));
    }
    progress("extreme");
    study.extreme =
        in_parallel(&extremes(&size), |of| extreme(*of, size.rounds)).into_iter().collect::<ModelResult<_>>()?;
    progress("L4");
    let calls: Vec<(KernelVariant, usize)> = [KernelVariant::L4Standard, KernelVariant::L4Fast]
        .into_iter()
        .flat_map(|system| size.clients.iter().map(move |clients| (system, *clients)))
        .collect();
    study.ipc = in_parallel(&calls, |of| ipc(*of, size.calls)).into_iter().collect::<ModelResult<_>>()?;
    Ok(study)
}

/// µs of a lap of so many cycles.
fn us(cycles: f64) -> f64 {
    cycles / CYCLES_PER_US
}

fn potatoes() -> Vec<(HotPotato, KernelVariant)> {
    HotPotato::ALL
        .into_iter()
        .flat_map(|what| [KernelVariant::Original, KernelVariant::Fast].map(|system| (what, system)))
        .collect()
}

fn potato(what: HotPotato, system: KernelVariant, rounds: usize) -> ModelResult<(HotPotato, KernelVariant, f64)> {
    let linux = LinuxPaths::new();
    let mut world = BenchmarkRun::new(system, 2, None)?;
    let step = &mut |step: BenchmarkStep| world.step(step);
    let turn = |calls: &[&CodePath]| -> Vec<CodePath> {
        [&[&linux.schedule][..], calls, &[&linux.program]].concat().into_iter().cloned().collect()
    };
    // Rounds of switches there and back, and pages of a transfer.
    let (calls, trips, pages) = match what {
        HotPotato::Fcntl => (turn(&[&linux.small_call; FCNTL_CALLS]), 1, None),
        HotPotato::Fifo | HotPotato::Pipe => (turn(&[&linux.pipe]), 1, None),
        HotPotato::Unix => (turn(&[&linux.pipe]), SOCKET_TRIPS, None),
        HotPotato::PipeBandwidth => (Vec::new(), 1, Some((PIPE_PAGES, PIPE_PAGES))),
        HotPotato::UnixBandwidth => (Vec::new(), 1, Some((SOCKET_PAGES, SOCKET_CHUNK_PAGES))),
    };
    for round in 0..rounds as u32 {
        for process in [0, 1].repeat(trips) {
            step(BenchmarkStep::Switch(process));
            calls.iter().for_each(|path| path.run(step));
            let Some((pages, chunk)) = pages else { continue };
            linux.schedule.run(step);
            for page in 0..pages {
                if page % chunk == 0 {
                    linux.pipe.run(step);
                }
                let of_program = (round * pages + page) % TRANSFER_PAGES;
                footprint::copy((of_program, page), process == 0).run(step);
            }
            linux.program.run(step);
        }
        step(BenchmarkStep::Lap);
    }
    let us = us(world.mean_lap(WARM)?);
    // Bytes a µs are MB/s.
    Ok((what, system, pages.map_or(us, |(pages, _)| f64::from(pages * PAGE_BYTES) / us)))
}

fn creation(
    of: (CreationBenchmark, KernelVariant),
    rounds: usize,
) -> ModelResult<((CreationBenchmark, KernelVariant), f64)> {
    let (what, system) = of;
    let (linux, paths) = (LinuxPaths::new(), footprint::CreationPaths::new());
    let mut world = BenchmarkRun::new(system, 1, None)?;
    world.step(BenchmarkStep::Switch(0));
    for _ in 0..rounds {
        // `system` forks a shell, which forks the program.
        create(
            &mut world,
            (&linux, &paths),
            0,
            what != CreationBenchmark::Fork,
            usize::from(what == CreationBenchmark::Shell),
        )?;
        world.step(BenchmarkStep::Lap);
    }
    Ok((of, us(world.mean_lap(WARM)?)))
}

/// The running process forks a child, which may `exec`, may do the same once more, and exits; its parent waits for it.
fn create(
    world: &mut BenchmarkRun,
    of: (&LinuxPaths, &footprint::CreationPaths),
    parent: usize,
    exec: bool,
    deeper: usize,
) -> ModelResult<()> {
    let (linux, paths) = of;
    let run = |world: &mut BenchmarkRun, paths: &[CodePath]| {
        paths.iter().for_each(|path| path.run(&mut |step| world.step(step)))
    };
    let one = std::slice::from_ref::<CodePath>;
    run(world, &paths.fork[0]);
    // The child has the parent's pages until one of them writes: its lines must not stay in the cache alone.
    world.flush();
    run(world, &paths.fork[1]);
    let mut child = world.spawn()?;
    world.step(BenchmarkStep::Switch(child));
    run(world, one(&linux.schedule));
    let copies = if exec { COPIES_BEFORE_EXEC } else { paths.child.len() };
    for (n, of_page) in paths.child.iter().take(copies).enumerate() {
        run(world, of_page);
        world.replace_page(if n == 0 { MemorySegment::Stack } else { MemorySegment::Data }, n < EXECUTABLE_COPIES);
    }
    run(world, one(&linux.program));
    if exec {
        run(world, &paths.exec[0]);
        // Linux flushes once, when the old address space goes.
        let next = world.spawn()?;
        world.step(BenchmarkStep::Switch(next));
        world.exit(child)?;
        // The old areas are not the running address space's: nothing more is flushed.
        AREAS.iter().for_each(|_| run(world, one(&paths.unmap)));
        child = next;
        run(world, &paths.exec[1]);
    }
    if deeper > 0 {
        create(world, of, child, exec, deeper - 1)?;
    }
    run(world, &paths.exit[0]);
    world.exit(child)?;
    for pages in AREAS {
        world.unmap(pages);
        run(world, one(&paths.unmap));
    }
    run(world, &paths.exit[1]);
    world.step(BenchmarkStep::Switch(parent));
    run(world, one(&linux.schedule));
    run(world, one(&paths.parent));
    for n in 0..PARENT_FAULTS {
        run(world, one(&paths.fault));
        world.replace_page(if n == 0 { MemorySegment::Stack } else { MemorySegment::Data }, n < EXECUTABLE_COPIES);
    }
    run(world, one(&linux.program));
    Ok(())
}

/// µs that one process takes for the pipe by itself: what lmbench takes off.
fn alone(rounds: usize) -> ModelResult<f64> {
    let linux = LinuxPaths::new();
    let mut world = BenchmarkRun::new(KernelVariant::Fast, 1, None)?;
    ring(1, rounds, &[&linux.pipe, &linux.program], &mut |step| world.step(step));
    Ok(us(world.mean_lap(WARM)?))
}

/// Kernel, processes, number of the array.
type LatCtxRing = (KernelVariant, usize, usize);

fn rings(size: &RunSizes) -> Vec<LatCtxRing> {
    let mut all = Vec::new();
    for processes in &size.processes {
        for array in 0..size.arrays.len() {
            all.extend([KernelVariant::Original, KernelVariant::Fast].map(|system| (system, *processes, array)));
        }
        all.push((KernelVariant::Sharing, *processes, 0));
    }
    all
}

fn lat_ctx(of: &LatCtxRing, size: &RunSizes) -> ModelResult<(LatCtxRing, f64)> {
    let (system, processes, array) = *of;
    let (linux, array) = (LinuxPaths::new(), footprint::array(size.arrays[array] << 10));
    let mut world = BenchmarkRun::new(system, processes, None)?;
    let paths = [&linux.schedule, &linux.pipe, &linux.program, &array];
    ring(processes, size.rounds, &paths, &mut |step| world.step(step));
    Ok((*of, us(world.mean_lap(WARM)?) / processes as f64))
}

/// Processes, shared, pages.
type ExtremeRun = (usize, bool, u32);

fn extremes(size: &RunSizes) -> Vec<ExtremeRun> {
    let mut all = Vec::new();
    for processes in [2, 4, 16] {
        for shared in [false, true] {
            all.extend(size.pages.iter().map(|pages| (processes, shared, *pages)));
        }
    }
    all
}

fn extreme(of: ExtremeRun, rounds: usize) -> ModelResult<(ExtremeRun, f64)> {
    let (processes, shared, pages) = of;
    let (linux, read) = (LinuxPaths::new(), CodePath::pages(pages));
    let mut world = BenchmarkRun::new(KernelVariant::Fast, processes, Some(MappedPages { pages, shared }))?;
    let paths = [&linux.schedule, &linux.small_call, &linux.program, &read];
    ring(processes, rounds, &paths, &mut |step| world.step(step));
    Ok((of, us(world.mean_lap(WARM)?) / processes as f64))
}

fn ipc(of: (KernelVariant, usize), calls: usize) -> ModelResult<((KernelVariant, usize), f64)> {
    let (system, clients) = of;
    let calls = if system == KernelVariant::L4Standard { calls.min(STANDARD_CALLS) } else { calls };
    let paths = footprint::ipc();
    let mut world = BenchmarkRun::new(system, clients + 1, None)?;
    // A seed a number of clients: the curve is no one sequence's.
    random_calls(clients, calls, clients as u64, &[&paths[0], &paths[1]], &mut |step| world.step(step));
    Ok((of, us(world.mean_lap(calls / 10)?)))
}
