//! A job of a task that runs a program, and how its misses are counted.
//!
//! An access of a program cannot be timed without taking its place. But of a translation that was lost only the first
//! access to its page since can miss: so each page is timed, as a page of any task is, right before the program touches
//! it for the first time since the job began or went on, and at no other time. The processor cannot have begun that
//! access before: it does not know the address yet ([`lookaside_workloads::Touched`]). What the program's own pages put
//! out of each other within a job is not counted.

use lookaside_probe::counter::{GroupTicks, GroupVerdict};
use lookaside_workloads::{Followed, Follower, Next};

use super::job::{RunningJob, TaskBody};
use super::program::TaskProgram;

/// Looks (32 elements each) after which the witness's pages are loaded too, so that they are hardly older than the
/// program's.
const REFRESH: u64 = 256;

impl TaskProgram {
    /// A job's part of it, from where the last one left it.
    pub(super) fn job(&mut self, job: &mut RunningJob<'_>) {
        let Self { workload, touched, groups, elements_a_job } = self;
        let until = touched.elements() + *elements_a_job;
        touched.anew();
        let mut counting = ProgramMissCounter { job, groups, looks: 0 };
        while touched.elements() < until {
            if !workload.follow(&mut Followed { touched, follower: &mut counting }) {
                return;
            }
        }
    }
}

/// Counts a job's misses as its program goes on.
struct ProgramMissCounter<'a, 'b> {
    job: &'a mut RunningJob<'b>,
    groups: &'a [usize],
    looks: u64,
}

impl Follower for ProgramMissCounter<'_, '_> {
    fn first_touch(&mut self, chunk: usize) -> Next {
        let TaskBody { chain, meter, .. } = self.job.body;
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
    use lookaside_probe::counter::{PassMeter, TimedChain, Timer};
    use lookaside_techniques::color::tasks::{Task, TaskSet};
    use lookaside_trace::Block;

    use super::super::job::TaskLog;
    use super::super::program::{elements_a_job, spec, spread, ProgramRun, PAGE};
    use super::super::real_time::now_ns;
    use super::*;
    use crate::programs::task as plain;

    /// Holds a run against the same program in memory of its own that nobody follows, at each place where it has done
    /// as much (moves of a transform are no operations).
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

    /// Three jobs of a program on pages of ours: what they saw, what came of it, and its chunks. `look_ticks`: from
    /// there on something else ran.
    fn jobs(task: &Task, elements_a_job: u64, look_ticks: u64) -> (TaskLog, ProgramRun, usize) {
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
        let program = unsafe { TaskProgram::new(task, name, (&chunks, (0..used).collect()), elements_a_job, 5) };
        let body = TaskBody {
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
        let mut log = TaskLog::for_jobs(3);
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
