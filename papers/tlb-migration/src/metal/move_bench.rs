//! One measurement after the other: pages touched, caches thrashed, the thread moved, its first accesses timed.

use std::fmt;
use std::time::{Duration, Instant};

use lookaside_host::{allowed_cpus, bind_to, current_cpu};
use lookaside_probe::counter::Timer;

use super::access::{AccessTicks, Accesses};
use super::cpus::MoveCpus;
use super::error::MigrateError;
use super::judge::MoveTimes;
use super::memory::{Flush, PageArea};
use super::plan::{span_bytes, MoveCase, STRIDES_BYTES};
use super::treatment::{Caches, Treatment};

/// Passes through the pages on a CPU before the thread leaves it: the second finds what the first brought.
const WARM_PASSES: u32 = 2;

/// Why no more is measured.
#[derive(Debug)]
pub(super) enum MoveStopped {
    Asked,
    Time(Duration),
    Failed(MigrateError),
}

impl fmt::Display for MoveStopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("interrupted"),
            Self::Time(time) => {
                write!(f, "{:.0} s were over (fewer --pages or --rounds end in time)", time.as_secs_f64())
            }
            Self::Failed(error) => error.fmt(f),
        }
    }
}

/// Memory and CPUs of the experiment. The thread gets its CPUs back when it is dropped.
pub(super) struct MoveBench {
    timer: Timer,
    from: usize,
    to: usize,
    allowed: Vec<usize>,
    seed: u64,
    began: Instant,
    small: PageArea,
    /// `None`: the system has no huge pages.
    huge: Option<PageArea>,
    buffer: PageArea,
    /// The buffer is in huge pages, and takes few TLB entries.
    buffer_is_huge: bool,
    flush: Flush,
    /// A page of nobody's, to have the code at hand on the new CPU.
    spare: PageArea,
}

impl MoveBench {
    /// Has memory for so many pages, touched on the CPU that the thread leaves.
    pub(super) fn new(timer: Timer, here: &MoveCpus, most: u64, seed: u64) -> Result<Self, MigrateError> {
        let refused = |error| MigrateError(format!("the CPUs of this thread: {error}"));
        let allowed = allowed_cpus().map_err(refused)?;
        let too_much =
            |_| MigrateError(format!("{most} pages are more than there are addresses; ask for fewer --pages"));
        let span = usize::try_from(span_bytes(most)).map_err(too_much)?;
        let (huge, is_huge) = PageArea::huge(span)?;
        let (buffer, buffer_is_huge) = PageArea::huge(here.thrash_bytes as usize)?;
        let lab = Self {
            timer,
            from: here.from,
            to: here.to,
            allowed,
            seed,
            began: Instant::now(),
            small: PageArea::small(span, most, seed)?,
            huge: is_huge.then_some(huge),
            buffer,
            buffer_is_huge,
            flush: Flush::new()?,
            spare: PageArea::small(1 << 20, 1, seed)?,
        };
        // Bad CPUs are found out before anything is measured.
        go(lab.to)?;
        go(lab.from)?;
        Ok(lab)
    }

    /// What can't be measured here.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let see = "see /sys/kernel/mm/transparent_hugepage/enabled";
        if self.huge.is_none() {
            remarks.push(format!("huge pages are left out: the system has none to give ({see})"));
        }
        if !self.buffer_is_huge {
            remarks.push(format!(
                "with thrashed caches the control (returns) is left out: without huge pages the buffer takes the TLB, too ({see})"
            ));
        }
        remarks
    }

    /// The ways in which a case can be measured here.
    pub(super) fn ways(&self, case: &MoveCase) -> impl Iterator<Item = Treatment> + use<> {
        let (has_huge, returns) = (self.huge.is_some(), self.buffer_is_huge || case.caches == Caches::Kept);
        Treatment::ALL.into_iter().filter(move |way| match way {
            Treatment::Huge => has_huge,
            Treatment::Returns => returns,
            _ => true,
        })
    }

    /// Measures once, unless it is time to stop.
    pub(super) fn next(
        &mut self,
        case: &MoveCase,
        way: Treatment,
        time: Option<Duration>,
        stop: &dyn Fn() -> bool,
    ) -> Result<MoveTimes, MoveStopped> {
        if stop() {
            return Err(MoveStopped::Asked);
        }
        if let Some(time) = time.filter(|time| self.began.elapsed() > *time) {
            return Err(MoveStopped::Time(time));
        }
        self.measure(case, way).map_err(MoveStopped::Failed)
    }

    /// The same in all ways, but for the area and the prefetches; and for when translations are dropped: where the
    /// thread returns, before it was on the new CPU at all.
    fn measure(&self, case: &MoveCase, way: Treatment) -> Result<MoveTimes, MigrateError> {
        let area = self.huge.as_ref().filter(|_| way == Treatment::Huge).unwrap_or(&self.small);
        let base = area.word(0) as u64;
        let restored: Vec<u64> = case.restored(way).iter().map(|at| base + at).collect();
        let spare_case =
            MoveCase { pattern: case.pattern, stride_bytes: STRIDES_BYTES[0], caches: Caches::Kept, pages: 1 };
        let spare = Accesses::new(self.timer, &self.spare, &spare_case, self.seed);
        let spare_page = [self.spare.word(0) as u64];

        go(self.to)?;
        if way == Treatment::Returns {
            self.flush.all()?;
        }
        let accesses = Accesses::new(self.timer, area, case, self.seed);
        accesses.warm(&self.timer, WARM_PASSES);
        if case.caches == Caches::Thrashed {
            self.buffer.read();
        }

        go(self.from)?;
        if way != Treatment::Returns {
            self.flush.all()?;
        }
        accesses.warm(&self.timer, WARM_PASSES);

        let left = Instant::now();
        go(self.to)?;
        let move_ns = left.elapsed().as_nanos() as f64;
        spare.timed(&self.timer, &spare_page);
        let AccessTicks { restore, access, again } = accesses.timed(&self.timer, &restored);
        if current_cpu() != self.to {
            return Err(MigrateError(format!("CPU {} was taken away meanwhile (cpuset, hotplug)", self.to)));
        }
        let [restore_ns, access_ns, again_ns] = [restore, access, again].map(|ticks| self.timer.ns(ticks));
        Ok(MoveTimes { restore_ns, access_ns, again_ns, move_ns })
    }
}

impl Drop for MoveBench {
    fn drop(&mut self) {
        // Refused where a cpuset took them away meanwhile: nothing to do then.
        let _ = bind_to(&self.allowed);
    }
}

/// Moves the calling thread.
fn go(cpu: usize) -> Result<(), MigrateError> {
    bind_to(&[cpu]).map_err(|error| MigrateError(format!("a CPU cannot be had any more: {error}")))
}
