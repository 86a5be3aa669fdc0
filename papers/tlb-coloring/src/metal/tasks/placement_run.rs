//! A placement, ready to run: its pages linked, its tasks' meters calibrated anew before each turn.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use lookaside_probe::counter::{MeterAccuracy, PassMeter, TimedChain};
use lookaside_probe::flush_tlb;
use lookaside_stats::median;
use lookaside_techniques::color::work::PAGE_BYTES;

use super::bench::{MissCounting, TaskBench};
use super::control_pages::ControlPages;
use super::error::TaskRunError;
use super::foreign_pages::{ForeignPages, INTERRUPT_NS};
use super::job::{Counted, TaskBody};
use super::page_placement::{PagePlacement, PlacedPages};
use super::page_walks::PageWalkCounter;
use super::program::{ProgramRun, TaskProgram};
use super::real_time::Partner;
use super::task_run::JobRun;

/// Pages of a group: as few as make a miss be well beyond the timer's grain (26 ticks on the development machine, a
/// walk some 50). A page whose table has left the near caches takes as long as many misses, and counts as no more than
/// its group.
const GROUP: usize = 2;
/// Between two looks of a program nothing takes so long but what else runs: 32 elements that all come from memory take
/// some 2 us, one by one.
const LOOK_NS: f64 = 3000.0;
/// A round in which one page in so many misses is as good as warm: single passes are counted wrongly by as much.
const FEW: usize = 16;
/// Warm rounds of which the fastest says how many fill a job.
const ROUNDS: usize = 64;
/// Rounds in the shortest execution time of a task that are modelled; preemption leaves few slices shorter than a
/// twentieth of that.
const ROUNDS_MODELLED: f64 = 20.0;

/// Known passes of each kind in a turn, where walks are counted.
const KNOWN_PASSES: usize = 16;
/// Passes before one that should miss nothing: under random replacement pages put each other out until all are in.
const SETTLING_PASSES: usize = 8;

/// Passes over a task's pages whose misses are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownPasses {
    /// What a miss adds to them.
    pub miss_ticks: f64,
    /// How they were counted.
    pub known: MeterAccuracy,
}

/// A placement of which these tasks' pages count; the others touch none.
pub(super) struct PlacementRun<'a> {
    pub placement: PagePlacement,
    pub counted: Vec<usize>,
    pub bodies: Vec<TaskBody>,
    /// Of each task, the words that it goes through and how often it does in a millisecond of the model.
    pub rounds: Vec<(Vec<u64>, u64)>,
    /// What they saw so far, by task.
    pub jobs: Vec<Vec<JobRun>>,
    pub gaps_lost: Vec<u64>,
    /// What a miss took and how known passes were counted so far, by task.
    pub known: Vec<Vec<KnownPasses>>,
    /// To make passes whose misses are known, for meters.
    foreign: Option<ForeignPages<'a>>,
    /// Counts what is walked for, in place of meters.
    pub walked: Option<Arc<PageWalkCounter>>,
    /// Two words a page that each goes through, and its witness's.
    words: Vec<Vec<[*mut u64; 2]>>,
    witness: Vec<Option<Vec<[*mut u64; 2]>>>,
    /// The memory behind.
    _placed: Rc<PlacedPages>,
    _witnesses: ControlPages,
    _own: Vec<[u64; 2]>,
}

impl<'a> PlacementRun<'a> {
    /// With blind meters.
    pub(super) fn new(
        lab: &TaskBench<'a>,
        placement: PagePlacement,
        placed: Rc<PlacedPages>,
        counted: &[usize],
        seed: u64,
    ) -> Result<Self, TaskRunError> {
        let tasks = lab.set.tasks.len();
        let mut used = vec![0; lab.level.sets as usize];
        let page = |words: &[*mut u64; 2]| words[0] as u64 / PAGE_BYTES;
        placed.words.iter().flatten().for_each(|words| used[lab.level.set_of(page(words)) as usize] += 1);
        let witnesses = ControlPages::new(lab.level, &used, tasks, seed)?;
        // Words that do not matter: two a task.
        let mut own = vec![[0u64; 2]; tasks];
        let scratch: Vec<[*mut u64; 2]> = own.iter_mut().map(|[first, second]| [&raw mut *first, second]).collect();
        let counts = |task: usize| counted.contains(&task);
        let words: Vec<Vec<[*mut u64; 2]>> = (0..tasks)
            .map(|task| if counts(task) { placed.words[task].clone() } else { vec![scratch[task]] })
            .collect();
        let witness: Vec<Option<Vec<[*mut u64; 2]>>> = (0..tasks)
            .map(|task| witnesses.words.as_ref().filter(|_| counts(task)).map(|words| words[task].clone()))
            .collect();
        // Owners of pages: the tasks, and behind them their witnesses.
        let walked = match lab.counting {
            MissCounting::Walks => Some(Arc::new(walked(&words, &witness, &counts)?)),
            MissCounting::Timing(_) => None,
        };
        let mut bodies = Vec::new();
        for (task, of) in lab.set.tasks.iter().enumerate() {
            // It does not count, but its preemptions are known all the same.
            let blind = |chain: TimedChain| {
                let meter = PassMeter::blind(&chain.groups().collect::<Vec<_>>(), INTERRUPT_NS / lab.timer.ns(1));
                (chain, meter)
            };
            let link = |words: &[[*mut u64; 2]], size| {
                // SAFETY: the words are this task's alone, as long as the memory that is kept beside. (Where two chains
                // are of the same words, they are linked alike.)
                blind(unsafe { TimedChain::link(lab.timer, words, size) })
            };
            let program =
                Some(of).filter(|_| counts(task)).and_then(|of| of.program.as_ref().zip(placed.data[task].as_ref()));
            let (chain, meter) = match program {
                // SAFETY: the words are on the pages of the program's data, which only its own thread uses.
                Some(_) => blind(unsafe { TimedChain::over(lab.timer, &words[task]) }),
                None => link(&words[task], GROUP),
            };
            let witness = witness[task].as_ref().map(|words| link(words, GROUP));
            let (scratch, _) = link(&scratch[task..=task], 1);
            let round = (0..ROUNDS).map(|_| chain.pass().iter().map(|ticks| ticks.whole()).sum::<f64>());
            let round_ns = (round.fold(f64::INFINITY, f64::min) * lab.timer.ns(1)).max(1.0);
            let rounds = (of.execution.nanos as f64 / round_ns).max(1.0) as u64;
            let few = (words[task].len() / FEW).max(1) as f64;
            let (phase_ns, period_ns) = (of.phase.nanos, of.period.nanos);
            let program = program.map(|(name, data)| {
                let groups = groups(data.at.iter().map(|at| at.addr().get() as u64), &words[task]);
                let elements = lab.elements[task].unwrap_or(1);
                // SAFETY: the task's pages, which are kept beside; no other arm counts it.
                unsafe { TaskProgram::new(of, name, (data, groups), elements, seed) }
            });
            let program = program.transpose()?.map(Mutex::new);
            let owners = std::iter::once(task).chain(witness.is_some().then_some(tasks + task)).collect();
            let walks = walked.clone().filter(|_| counts(task)).map(|walked| Counted { walked, owners });
            let look_ticks = (LOOK_NS / lab.timer.ns(1)) as u64;
            bodies.push(TaskBody {
                chain,
                meter,
                witness,
                walks,
                scratch,
                few,
                round_ns,
                rounds,
                program,
                look_ticks,
                phase_ns,
                period_ns,
            });
        }
        let rounds = |(words, body): (&Vec<[*mut u64; 2]>, &TaskBody)| {
            (words.iter().map(|words| words[0] as u64).collect(), rounds_per_ms(lab, body))
        };
        Ok(Self {
            placement,
            counted: counted.to_vec(),
            rounds: words.iter().zip(&bodies).map(rounds).collect(),
            bodies,
            jobs: vec![Vec::new(); tasks],
            gaps_lost: vec![0; tasks],
            known: vec![Vec::new(); tasks],
            foreign: matches!(lab.counting, MissCounting::Timing(_))
                .then(|| ForeignPages::new(lab.level, lab.before()))
                .transpose()?,
            walked,
            words,
            witness,
            _placed: placed,
            _witnesses: witnesses,
            _own: own,
        })
    }

    /// Looks at passes whose misses are known, of the tasks that count; where time counts, makes meters of these, for
    /// them and their witnesses.
    pub(super) fn calibrate(&mut self, lab: &TaskBench<'_>) -> Result<(), TaskRunError> {
        let named =
            |task: usize, error: TaskRunError| TaskRunError(format!("task {}: {error}", lab.set.tasks[task].name));
        match (lab.counting, &self.foreign) {
            (MissCounting::Timing(calibrate), Some(foreign)) => {
                let mut partner = Partner::on(lab.cpu)?;
                let mut meter = |chain: &TimedChain, words: &[[*mut u64; 2]]| {
                    calibrate(foreign, chain, words, &mut || partner.switch())
                };
                for &task in &self.counted {
                    let body = &mut self.bodies[task];
                    body.meter = meter(&body.chain, &self.words[task]).map_err(|error| named(task, error))?;
                    let PassMeter { miss_ticks, known, .. } = body.meter;
                    self.known[task].push(KnownPasses { miss_ticks, known });
                    if let (Some((chain, known)), Some(words)) = (&mut body.witness, &self.witness[task]) {
                        *known = meter(chain, words)
                            .map_err(|error| named(task, TaskRunError(format!("witness: {error}"))))?;
                    }
                }
            }
            _ => {
                for &task in &self.counted {
                    let passes = self.walked.iter().map(|walked| known_passes(walked, task, &self.bodies[task].chain));
                    let passes = passes.collect::<Result<Vec<_>, TaskRunError>>();
                    self.known[task].extend(passes.map_err(|error| named(task, error))?);
                }
            }
        }
        Ok(())
    }

    /// Why what the last turn counted is nothing, if so.
    pub(super) fn check(&self) -> Result<(), TaskRunError> {
        self.walked.as_ref().map_or(Ok(()), |walked| walked.check())
    }

    /// What came of a task's program, if it runs one.
    pub(super) fn program(&self, task: usize) -> Option<ProgramRun> {
        let program = self.bodies[task].program.as_ref()?;
        Some(program.lock().unwrap_or_else(PoisonError::into_inner).ran())
    }

    /// Ticks that a miss of a task adds: the median of all turns.
    pub(super) fn miss_ticks(&self, task: usize) -> f64 {
        median(self.known[task].iter().map(|passes| passes.miss_ticks)).unwrap_or_default()
    }
}

/// Counts what is walked for of the pages of the tasks that count, and of their witnesses'.
fn walked(
    words: &[Vec<[*mut u64; 2]>],
    witness: &[Option<Vec<[*mut u64; 2]>>],
    counts: &dyn Fn(usize) -> bool,
) -> Result<PageWalkCounter, TaskRunError> {
    let pages = |words: &Vec<[*mut u64; 2]>| words.iter().map(|words| words[0] as u64).collect::<Vec<u64>>();
    let own = words.iter().enumerate().map(|(task, words)| if counts(task) { pages(words) } else { Vec::new() });
    PageWalkCounter::new(
        &own.chain(witness.iter().map(|words| words.as_ref().map_or_else(Vec::new, pages))).collect::<Vec<_>>(),
    )
}

/// Passes over all pages of an owner, right after some others and with all translations put out; these have to be
/// counted for what they are.
fn known_passes(walked: &PageWalkCounter, owner: usize, chain: &TimedChain) -> Result<KnownPasses, TaskRunError> {
    let pages = walked.pages(owner);
    let (mut extra, mut walks) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for pass in 0..2 * KNOWN_PASSES {
        let kind = pass % 2;
        match kind {
            0 => (0..SETTLING_PASSES).for_each(|_| drop(chain.pass())),
            _ => flush_tlb()?,
        }
        let mut ticks = 0.0;
        walks[kind].push(walked.of(owner, || ticks = chain.pass().iter().map(|ticks| ticks.extra()).sum())? as f64);
        extra[kind].push(ticks);
    }
    let [kept, missed] = walks;
    let right = |all: &[f64], is: &dyn Fn(f64) -> bool| [all.len(), all.iter().filter(|count| is(**count)).count()];
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len().max(1) as f64;
    let all = right(&missed, &|count| count == pages as f64);
    if 10 * all[1] < 9 * all[0] {
        return Err(TaskRunError(format!(
            "of {pages} pages whose translations were put out {:.1} are counted as walked for: the referenced bits of this system do not say what is",
            mean(&missed)
        )));
    }
    let [kept_ticks, missed_ticks] = extra.map(|ticks| median(ticks).unwrap_or_default());
    Ok(KnownPasses {
        miss_ticks: (missed_ticks - kept_ticks) / pages.max(1) as f64,
        known: MeterAccuracy {
            pages: pages as u32,
            kept: right(&kept, &|count| 2.0 * count < pages as f64),
            kept_misses: mean(&kept),
            missed: all,
            missed_misses: mean(&missed),
        },
    })
}

/// The group of the page that each address is on: the place of its words.
fn groups(addresses: impl Iterator<Item = u64>, words: &[[*mut u64; 2]]) -> Vec<usize> {
    let page = |at: u64| at / PAGE_BYTES;
    let group = |at: u64| words.iter().position(|words| page(words[0] as u64) == page(at)).unwrap_or_default();
    addresses.map(group).collect()
}

/// Rounds of a task in a millisecond of the model: as many as it makes, or fewer that misses do not depend on.
fn rounds_per_ms(lab: &TaskBench<'_>, body: &TaskBody) -> u64 {
    let shortest = lab.set.tasks.iter().map(|task| task.execution.nanos).min().unwrap_or_default().max(1);
    let enough = ROUNDS_MODELLED * 1e6 / shortest as f64;
    (1e6 / body.round_ns).min(enough).ceil() as u64
}
