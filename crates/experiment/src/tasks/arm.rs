//! A placement, ready to run: its pages linked, its tasks' meters calibrated anew before each turn.

use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use lookaside_probe::counter::{Meter, TimedChain};
use lookaside_techniques::color::work::PAGE_BYTES;

use super::foreign::Foreign;
use super::job::Body;
use super::judge::JobRun;
use super::lab::Lab;
use super::place::{Placed, Placement};
use super::program::{Program, ProgramRun};
use super::real_time::Partner;
use super::witness::Witnesses;
use super::{TasksError, INTERRUPT_NS};

/// Pages of a group: as few as make a miss be well beyond the timer's grain (26 ticks on the development machine, a walk some 50). A page whose table has
/// left the near caches takes as long as many misses, and counts as no more than its group.
const GROUP: usize = 2;
/// Between two looks of a program nothing takes so long but what else runs: 32 elements that all come from memory take some 2 us, one by one.
const LOOK_NS: f64 = 3000.0;
/// A round in which one page in so many misses is as good as warm: single passes are counted wrongly by as much.
const FEW: usize = 16;
/// Warm rounds of which the fastest says how many fill a job.
const ROUNDS: usize = 64;
/// Rounds in the shortest execution time of a task that are modelled; preemption leaves few slices shorter than a twentieth of that.
const ROUNDS_MODELLED: f64 = 20.0;

/// How a meter for a chain over these words comes about; the last switches to another thread and back.
pub(super) type Calibrate =
    fn(&Foreign<'_>, &TimedChain, &[[*mut u64; 2]], &mut dyn FnMut()) -> Result<Meter, TasksError>;

/// A placement of which these tasks' pages count; the others touch none.
pub(super) struct Arm<'a> {
    pub placement: Placement,
    pub counted: Vec<usize>,
    pub bodies: Vec<Body>,
    /// Of each task, the words that it goes through and how often it does in a millisecond of the model.
    pub rounds: Vec<(Vec<u64>, u64)>,
    /// What they saw so far, by task.
    pub jobs: Vec<Vec<JobRun>>,
    pub gaps_lost: Vec<u64>,
    /// Their meters so far.
    pub meters: Vec<Vec<Meter>>,
    foreign: Foreign<'a>,
    /// Two words a page that each goes through, and its witness's.
    words: Vec<Vec<[*mut u64; 2]>>,
    witness: Vec<Option<Vec<[*mut u64; 2]>>>,
    /// The memory behind.
    _placed: Rc<Placed>,
    _witnesses: Witnesses,
    _own: Vec<[u64; 2]>,
}

impl<'a> Arm<'a> {
    /// With blind meters.
    pub(super) fn new(
        lab: &Lab<'a>,
        placement: Placement,
        placed: Rc<Placed>,
        counted: &[usize],
        seed: u64,
    ) -> Result<Self, TasksError> {
        let tasks = lab.set.tasks.len();
        let mut used = vec![0; lab.level.sets as usize];
        let page = |words: &[*mut u64; 2]| words[0] as u64 / PAGE_BYTES;
        placed.words.iter().flatten().for_each(|words| used[lab.level.set_of(page(words)) as usize] += 1);
        let witnesses = Witnesses::new(lab.level, &used, tasks, seed)?;
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
        let mut bodies = Vec::new();
        for (task, of) in lab.set.tasks.iter().enumerate() {
            // It does not count, but its preemptions are known all the same.
            let blind = |chain: TimedChain| {
                let meter = Meter::blind(&chain.groups().collect::<Vec<_>>(), INTERRUPT_NS / lab.timer.ns(1));
                (chain, meter)
            };
            let link = |words: &[[*mut u64; 2]], size| {
                // SAFETY: the words are this task's alone, as long as the memory that is kept beside. (Where two chains are of the same words, they are linked alike.)
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
                unsafe { Program::new(of, name, (data, groups), elements, seed) }
            });
            let program = program.transpose()?.map(Mutex::new);
            let look_ticks = (LOOK_NS / lab.timer.ns(1)) as u64;
            bodies.push(Body {
                chain,
                meter,
                witness,
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
        let rounds = |(words, body): (&Vec<[*mut u64; 2]>, &Body)| {
            (words.iter().map(|words| words[0] as u64).collect(), rounds_per_ms(lab, body))
        };
        Ok(Self {
            placement,
            counted: counted.to_vec(),
            rounds: words.iter().zip(&bodies).map(rounds).collect(),
            bodies,
            jobs: vec![Vec::new(); tasks],
            gaps_lost: vec![0; tasks],
            meters: vec![Vec::new(); tasks],
            foreign: Foreign::new(lab.level, lab.before())?,
            words,
            witness,
            _placed: placed,
            _witnesses: witnesses,
            _own: own,
        })
    }

    /// Meters for the tasks that count and their witnesses, by what misses take now.
    pub(super) fn calibrate(&mut self, lab: &Lab<'_>) -> Result<(), TasksError> {
        let mut partner = Partner::on(lab.cpu)?;
        let mut meter = |chain: &TimedChain, words: &[[*mut u64; 2]], who: String| {
            let meter = (lab.calibrate)(&self.foreign, chain, words, &mut || partner.switch());
            meter.map_err(|error| TasksError(format!("task {who}: {error}")))
        };
        for task in &self.counted {
            let (body, name) = (&mut self.bodies[*task], &lab.set.tasks[*task].name);
            body.meter = meter(&body.chain, &self.words[*task], name.clone())?;
            self.meters[*task].push(body.meter.clone());
            if let (Some((chain, known)), Some(words)) = (&mut body.witness, &self.witness[*task]) {
                *known = meter(chain, words, format!("{name}, witness"))?;
            }
        }
        Ok(())
    }

    /// What came of a task's program, if it runs one.
    pub(super) fn program(&self, task: usize) -> Option<ProgramRun> {
        let program = self.bodies[task].program.as_ref()?;
        Some(program.lock().unwrap_or_else(PoisonError::into_inner).ran())
    }

    /// Ticks that a miss of a task adds: the median of its meters.
    pub(super) fn miss_ticks(&self, task: usize) -> f64 {
        let mut ticks: Vec<f64> = self.meters[task].iter().map(|meter| meter.miss_ticks).collect();
        ticks.sort_by(f64::total_cmp);
        ticks.get(ticks.len() / 2).copied().unwrap_or_default()
    }
}

/// The group of the page that each address is on: the place of its words.
fn groups(addresses: impl Iterator<Item = u64>, words: &[[*mut u64; 2]]) -> Vec<usize> {
    let page = |at: u64| at / PAGE_BYTES;
    let group = |at: u64| words.iter().position(|words| page(words[0] as u64) == page(at)).unwrap_or_default();
    addresses.map(group).collect()
}

/// Rounds of a task in a millisecond of the model: as many as it makes, or fewer that misses do not depend on.
fn rounds_per_ms(lab: &Lab<'_>, body: &Body) -> u64 {
    let shortest = lab.set.tasks.iter().map(|task| task.execution.nanos).min().unwrap_or_default().max(1);
    let enough = ROUNDS_MODELLED * 1e6 / shortest as f64;
    (1e6 / body.round_ns).min(enough).ceil() as u64
}
