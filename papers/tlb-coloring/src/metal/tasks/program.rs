//! Tasks that run a program ([`crate::programs`]): where its data lie, how much of it a job does, and how its misses are counted.
//!
//! An access of a program cannot be timed without taking its place. But of a translation that was lost only the first access to its page since can miss: so each page
//! is timed, as a page of any task is, right before the program touches it for the first time since the job began or went on, and at no other time. The processor
//! cannot have begun that access before: it does not know the address yet ([`lookaside_workloads::Touched`]). What the program's own pages put out of each other
//! within a job is not counted.

use std::ptr::NonNull;

use lookaside_probe::counter::{GroupTicks, GroupVerdict, Timer};
use lookaside_techniques::color::tasks::Task;
use lookaside_techniques::color::work::PAGE_BYTES;
use lookaside_workloads::{Chunks, Followed, Follower, Next, Spec, Touched, Workload};
use serde::Serialize;

use super::job::{Body, Job};
use super::TasksError;
use crate::programs::{task as plain, task_in};

/// Looks (32 elements each) after which the witness's pages are loaded too, so that they are hardly older than the program's.
const REFRESH: u64 = 256;
/// Elements of which a program's pace is told.
const PACED: u64 = 1 << 21;
const PAGE: usize = PAGE_BYTES as usize;

/// What came of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProgramRun {
    /// Its name.
    pub name: String,
    /// Elements of its arrays that a job touches, the same again counted again: as many as its execution time holds. The last part of the work that was begun is done.
    pub elements_a_job: u64,
    /// Operations that all jobs did; what one is, the program says.
    pub operations: u64,
    /// Of its results: the same wherever its data lay, after as many jobs.
    pub checksum: u64,
}

/// A program under way.
pub(super) struct Program {
    workload: Box<dyn Workload>,
    touched: Touched,
    /// Of each chunk its page's group.
    groups: Vec<usize>,
    elements_a_job: u64,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("name", &self.workload.name()).finish_non_exhaustive()
    }
}

/// What is asked of the workloads: it never ends.
fn spec(task: &Task, seed: u64) -> Spec {
    let data = task.pages.unwrap_or_default() / task.spread();
    Spec { seed, rounds: u32::MAX.into(), ..Spec::new(data.saturating_mul(PAGE_BYTES)) }
}

fn failed(task: &Task) -> impl Fn(lookaside_workloads::WorkloadError) -> TasksError + '_ {
    |error| TasksError(format!("task {}: {error}", task.name))
}

/// A task that runs a program can: there is one of that name and size.
pub(super) fn check(task: &Task) -> Result<(), TasksError> {
    let Some(name) = &task.program else { return Ok(()) };
    plain(name, &spec(task, 1)).map(|_| ()).map_err(failed(task))
}

/// Elements of each task's program that its execution time holds, by what it takes here in memory of its own, looks included; `None`: it loads pages.
pub(super) fn elements_a_job(task: &Task, seed: u64, timer: Timer) -> Result<Option<u64>, TasksError> {
    let Some(name) = &task.program else { return Ok(None) };
    let mut workload = plain(name, &spec(task, seed)).map_err(failed(task))?;
    let (mut touched, mut looking) = (Touched::new(workload.chunks()), Looking { timer, stamps: 0 });
    let began = timer.now();
    while touched.elements() < PACED {
        workload.follow(&mut Followed { touched: &mut touched, follower: &mut looking });
    }
    let ns = timer.ns(timer.now().wrapping_sub(began)).max(1.0);
    Ok(Some((task.execution.nanos as f64 / ns * touched.elements() as f64).max(1.0) as u64))
}

/// Looks at the timer, as who counts does.
struct Looking {
    timer: Timer,
    stamps: u64,
}

impl Follower for Looking {
    fn first_touch(&mut self, _: usize) -> Next {
        Next::On
    }

    fn look(&mut self) -> Next {
        self.stamps ^= std::hint::black_box(self.timer.now());
        Next::On
    }
}

/// Spreads a program's data over these pages, which are the task's alone: a chunk on each that it needs.
pub(super) fn spread(task: &Task, name: &str, mut pages: Vec<usize>) -> Result<Chunks, TasksError> {
    // Arrays lie in a row where the pages do.
    pages.sort_unstable();
    let spread = task.spread() as usize;
    let bytes = PAGE / spread;
    // At another place in each page, or all would meet in few sets of the data caches.
    let at = |(i, page): (usize, &usize)| NonNull::new((page + i % spread * bytes) as *mut u8);
    let mut chunks = Chunks { bytes, at: pages.iter().enumerate().filter_map(at).collect() };
    // SAFETY: the task's own pages, which nobody uses yet.
    let workload = unsafe { task_in(name, &spec(task, 1), chunks.clone()) }.map_err(failed(task))?;
    chunks.at.truncate(workload.chunks());
    Ok(chunks)
}

impl Program {
    /// In these chunks; `groups`: the group of each one's page.
    ///
    /// # Safety
    /// The chunks are the program's alone as long as it lives.
    pub(super) unsafe fn new(
        task: &Task,
        name: &str,
        (chunks, groups): (&Chunks, Vec<usize>),
        elements_a_job: u64,
        seed: u64,
    ) -> Result<Self, TasksError> {
        // SAFETY: the caller's.
        let workload = unsafe { task_in(name, &spec(task, seed), chunks.clone()) }.map_err(failed(task))?;
        Ok(Self { touched: Touched::new(workload.chunks()), workload, groups, elements_a_job })
    }

    /// What came of it so far.
    pub(super) fn ran(&self) -> ProgramRun {
        ProgramRun {
            name: self.workload.name().into(),
            elements_a_job: self.elements_a_job,
            operations: self.workload.operations(),
            checksum: self.workload.checksum(),
        }
    }

    /// A job's part of it, from where the last one left it.
    pub(super) fn job(&mut self, job: &mut Job<'_>) {
        let Self { workload, touched, groups, elements_a_job } = self;
        let until = touched.elements() + *elements_a_job;
        touched.anew();
        let mut counting = Counting { job, groups, looks: 0 };
        while touched.elements() < until {
            if !workload.follow(&mut Followed { touched, follower: &mut counting }) {
                return;
            }
        }
    }
}

/// Counts a job's misses as its program goes on.
struct Counting<'a, 'b> {
    job: &'a mut Job<'b>,
    groups: &'a [usize],
    looks: u64,
}

impl Follower for Counting<'_, '_> {
    fn first_touch(&mut self, chunk: usize) -> Next {
        let Body { chain, meter, .. } = self.job.body;
        let group = self.groups[chunk];
        let ticks = chain.step(group, &mut self.job.last);
        self.job.seen.touched += 1;
        match meter.group(group, ticks) {
            GroupVerdict::Misses(misses) => {
                self.job.seen.misses += misses;
                Next::On
            }
            GroupVerdict::Interrupted => {
                self.job.seen.unseen += 1;
                self.job.goes_on_after(ticks);
                Next::Anew
            }
        }
    }

    fn look(&mut self) -> Next {
        let now = self.job.body.chain.timer().now();
        let ticks = now.wrapping_sub(self.job.last);
        self.job.last = now;
        if ticks >= self.job.body.look_ticks {
            self.job.goes_on_after(GroupTicks { before: ticks, ..GroupTicks::default() });
            return Next::Anew;
        }
        self.looks += 1;
        if !self.looks.is_multiple_of(REFRESH) {
            return Next::On;
        }
        self.job.fresh = 0;
        self.job.look_at_witness(false);
        // Something else ran meanwhile.
        if self.job.fresh > 0 {
            Next::Anew
        } else {
            Next::On
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use lookaside_probe::counter::{PassMeter, TimedChain};
    use lookaside_techniques::color::tasks::TaskSet;
    use lookaside_trace::Block;

    use super::super::job::Log;
    use super::super::real_time::now_ns;
    use super::*;

    /// Holds a run against the same program in memory of its own that nobody follows, at each place where it has done as much (moves of a transform are no operations).
    pub(in super::super) fn is_right(run: &ProgramRun, task: &Task, seed: u64) -> bool {
        let mut plain = plain(&run.name, &spec(task, seed)).expect("a program");
        let mut block = Block::default();
        while plain.operations() <= run.operations {
            if plain.operations() == run.operations && plain.checksum() == run.checksum {
                return true;
            }
            block.clear();
            plain.fill(&mut block);
        }
        false
    }

    fn a_task(program: &str, pages: u64, data_pages: u64) -> Task {
        let text = format!(
            "[[task]]\nname = \"T\"\nperiod = \"2ms\"\nexecution = \"1ms\"\npages = {pages}\nprogram = \"{program}\"\ndata_pages = {data_pages}\n"
        );
        TaskSet::parse(&text, "t").expect("a set").tasks.swap_remove(0)
    }

    /// Three jobs of a program on pages of ours: what they saw, what came of it, and its chunks. `look_ticks`: from there on something else ran.
    fn jobs(task: &Task, elements_a_job: u64, look_ticks: u64) -> (Log, ProgramRun, usize) {
        let number = task.pages.expect("pages") as usize;
        let mut memory = vec![0u8; (number + 1) * PAGE];
        let first = memory.as_mut_ptr().addr().next_multiple_of(PAGE);
        let name = task.program.as_deref().expect("a program");
        let chunks = spread(task, name, (0..number).map(|page| first + page * PAGE).collect()).expect("chunks");
        let words: Vec<[*mut u64; 2]> =
            chunks.at.iter().map(|at| [0, 64].map(|by| (at.addr().get() / PAGE * PAGE + by) as *mut u64)).collect();
        let (timer, _) = Timer::here().expect("a timer");
        let mut scratch = [0u64; 2];
        // SAFETY: words on pages of ours.
        let chain = unsafe { TimedChain::over(timer, &words) };
        let [one, other] = &mut scratch;
        // SAFETY: as above.
        let scratch = unsafe { TimedChain::link(timer, &[[one, other]], 1) };
        let used = chunks.at.len();
        // SAFETY: as above.
        let program = unsafe { Program::new(task, name, (&chunks, (0..used).collect()), elements_a_job, 5) };
        let body = Body {
            meter: PassMeter::blind(&vec![1; used], f64::INFINITY),
            chain,
            witness: None,
            walks: None,
            scratch,
            few: 1.0,
            round_ns: 1.0,
            rounds: 1,
            program: Some(program.expect("a program").into()),
            look_ticks,
            phase_ns: 0,
            period_ns: 1,
        };
        let mut log = Log::for_jobs(3);
        body.run(now_ns(), 3, &mut log, &|| false);
        let program = body.program.expect("a program").into_inner().expect("whole");
        (log, program.ran(), used)
    }

    #[test]
    fn a_job_times_each_page_that_its_program_touches_once() {
        for (program, pages, data_pages, used) in [
            ("statistics", 4, 4, 4),
            ("statistics", 64, 4, 64),
            ("fir", 5, 5, 5),
            ("fir", 40, 5, 33),
            ("insertion-sort", 32, 1, 32),
        ] {
            let task = a_task(program, pages, data_pages);
            // Enough for a round of each: a job goes through all of its data.
            let (log, run, chunks) = jobs(&task, 600_000, u64::MAX);
            assert_eq!(chunks, used, "{program}");
            let told: Vec<_> = log.jobs.iter().map(|job| (job.touched as usize, job.unseen, job.misses)).collect();
            assert_eq!(told, vec![(used, 0, 0.0); 3], "{program}");
            assert_eq!((log.gaps.len(), log.gaps_lost), (0, 0));
            assert!(is_right(&run, &task, 5), "{run:?}");
        }
    }

    #[test]
    fn after_whatever_else_ran_each_page_is_timed_again() {
        let task = a_task("nth-largest", 8, 1);
        let (quiet, calm, _) = jobs(&task, 20_000, u64::MAX);
        // Nothing is so short that it was not interrupted.
        let (log, run, _) = jobs(&task, 20_000, 0);
        assert!(log.jobs.iter().zip(&quiet.jobs).all(|(often, once)| often.touched > 10 * once.touched));
        let looks: u64 = log.gaps.len() as u64 + log.gaps_lost;
        assert!((3 * 20_000 / 32..3 * 40_000 / 32).contains(&looks), "{looks}");
        assert!(log.gaps.windows(2).all(|two| two[0][1] <= two[1][0]));
        assert_eq!(run, calm, "what it does is the same");
        assert!(is_right(&run, &task, 5));
        assert!(!is_right(&ProgramRun { checksum: run.checksum ^ 1, ..run.clone() }, &task, 5));
    }

    #[test]
    fn a_programs_pace_fills_its_execution_time() {
        let timer = Timer::here().expect("a timer").0;
        let task = a_task("adpcm", 5, 5);
        let elements = elements_a_job(&task, 1, timer).expect("a program").expect("one");
        let longer = Task { execution: task.period, ..task.clone() };
        assert!(elements > 1 && elements_a_job(&longer, 1, timer).expect("a program") > Some(elements / 4));
        assert_eq!(elements_a_job(&Task { program: None, ..task }, 1, timer).expect("no program"), None);
    }
}
