//! Replays of a program's page visits on this machine: what they take with small pages and with huge ones, each visit
//! waiting for the one before or none (`RULES.md` of `lookaside-timing`, "The replay").
//!
//! The visits' offsets within 2 MiB windows are kept, so that page-table lines are shared as in the program; the
//! windows themselves lie one after another in memory of ours, which is read and never the program's. What may be huge
//! lies there three times: in small pages in the frames that the program would have got ([`HeldFrames`]), in small
//! pages in other frames, and in huge pages.

mod at_once;
mod cpu_clock;
mod error;
mod first_touch;
mod frame_choice;
mod held_frames;
mod instructions_between;
mod memory;
mod pass;
mod replay_area;
mod rest;
mod turns;
mod visit_step;

use std::time::{Duration, Instant};

use lookaside_host::FrameScatter;
use lookaside_stats::quantiles;
use lookaside_timing::{ReplayRound, ReplayTimes, RunVisits, ThreadTurns, VisitWindow};

use at_once::at_once;
pub use error::ReplayError;
use first_touch::first_touches;
pub use held_frames::HeldFrames;
use memory::{ReplayMemory, ReplayPages, ReplaySlots};
use pass::{Pass, PassPlace, ReplaySteps};
use rest::RestOfMemory;
use turns::{groups_in_turns, time_in_turns};

/// Rounds at the most, and the fewest that give an interval: half of them with each kind of small pages.
const MOST_ROUNDS: usize = 16;
const FEWEST_ROUNDS: usize = 6;
const SMALL_KINDS: [ReplayPages; 2] = [ReplayPages::SmallHeld, ReplayPages::SmallOther];

/// Quarter of the 20 points that a predicted interval may be wide; it covers half of the rounds, and errors of its own.
const STEADY: f64 = 0.05;

/// A round takes so long at least: one of a few milliseconds is at the mercy of a single interruption.
const SHORTEST_ROUND: Duration = Duration::from_millis(150);
/// Passes of one round at the most.
const MOST_PASSES: u32 = 100;

/// What a replay may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayBudget {
    /// Rounds end when this time is over; six are made in any case, each as long as all windows take.
    pub time: Duration,
    /// The same where rounds differ much from each other.
    pub unsteady_time: Duration,
    /// Bytes of memory, for small and huge pages together.
    pub bytes: u64,
    /// As many threads read at once as the program keeps busy, each another window, and windows of different threads
    /// take turns where the program's do: they take the caches from each other there too.
    pub turns: ThreadTurns,
}

impl ReplayBudget {
    /// When rounds end that came out so.
    fn time_for(&self, rounds: &[Vec<ReplayRound>; 2]) -> Duration {
        if are_steady(rounds) {
            self.time
        } else {
            self.unsteady_time
        }
    }
}

/// Replays the run's windows in rounds, within the budget. Where memory is short, pages that no window visits are left
/// out, then windows, those kept spread over the run; [`ReplayTimes::windows`] says how many there were.
///
/// # Errors
/// No visit, too little memory for even one window, no huge pages, or `stop` said so.
pub fn replay(
    run: &RunVisits,
    held: HeldFrames,
    budget: ReplayBudget,
    stop: &dyn Fn() -> bool,
) -> Result<ReplayTimes, ReplayError> {
    let began = Instant::now();
    let (windows, slots) = fitting(run, budget.bytes)?;
    let program_scatter = held.program().map(FrameScatter::times_fewest);
    let memory = ReplayMemory::new(&slots, held, stop)?;
    let faults = first_touches(budget.bytes.saturating_sub(slots.bytes()))?;
    let steps: Vec<ReplaySteps> = windows.iter().map(|window| ReplaySteps::new(window, &slots)).collect();
    let again = steps.iter().map(ReplaySteps::mean_again).sum::<f64>() / steps.len() as f64;
    let rest = RestOfMemory::new(run, &windows, budget.bytes.saturating_sub(slots.bytes()), again)?;
    let threads: Vec<(u32, u32)> = steps.iter().map(ReplaySteps::thread).collect();
    let groups = groups_in_turns(&threads, budget.turns.on_each);
    let replayed = Replayed { steps, groups, slots, memory, rest, turns: budget.turns };
    // Rounds that do not count: they warm the memory, and tell how long one takes.
    let warming = Instant::now();
    for small in SMALL_KINDS {
        replayed.round(small, false);
    }
    let once = (warming.elapsed().as_secs_f64() / SMALL_KINDS.len() as f64).max(1e-6);
    let passes = (SHORTEST_ROUND.as_secs_f64() / once).ceil().clamp(1.0, f64::from(MOST_PASSES)) as u32;
    let mut rounds: [Vec<ReplayRound>; 2] = Default::default();
    let rounds_began = Instant::now();
    for number in 0..MOST_ROUNDS {
        if number >= FEWEST_ROUNDS && rounds_began.elapsed() >= budget.time_for(&rounds) {
            break;
        }
        if stop() {
            return Err(ReplayError::Stopped);
        }
        // In four rounds both kinds of small pages come before huge ones and after them.
        let (small, huge_first) = (number % 2, number / 2 % 2 == 1);
        let sum: ReplayRound = (0..passes).map(|_| replayed.round(SMALL_KINDS[small], huge_first)).sum();
        rounds[small].push(sum.times_factor(1.0 / f64::from(passes)));
    }
    let [held_rounds, other_rounds] = rounds;
    let Replayed { steps, memory, .. } = &replayed;
    let [held_scatter, other_scatter] = memory.scatter().map(|scatter| scatter.map(FrameScatter::times_fewest));
    Ok(ReplayTimes {
        held_rounds,
        other_rounds,
        timed_visits: u64::from(passes) * steps.iter().map(ReplaySteps::timed_visits).sum::<u64>(),
        represented_visits: steps.iter().map(ReplaySteps::represented_visits).sum(),
        represented_cost: windows.iter().map(|window| window.weight * window.cost_share).sum(),
        windows: windows.len() as u32,
        huge_bytes: memory.huge_bytes(),
        held_scatter,
        other_scatter,
        program_scatter,
        faults,
        seconds: began.elapsed().as_secs_f64(),
    })
}

/// What small pages cost beside huge ones in half of the rounds of a kind lies no farther apart than [`STEADY`].
fn are_steady(rounds: &[Vec<ReplayRound>; 2]) -> bool {
    let ways: [fn(&ReplayRound) -> f64; 2] =
        [|round| round.chained_small / round.chained_huge, |round| round.free_small / round.free_huge];
    rounds.iter().all(|rounds| {
        ways.iter().all(|&way| {
            let quartiles = quantiles(rounds.iter().map(way), [0.25, 0.5, 0.75]);
            quartiles.is_some_and(|[low, middle, high]| high - low <= STEADY * middle)
        })
    })
}

/// What is replayed, and where.
struct Replayed {
    steps: Vec<ReplaySteps>,
    /// Those that take turns, by their numbers.
    groups: Vec<Vec<usize>>,
    slots: ReplaySlots,
    memory: ReplayMemory,
    rest: RestOfMemory,
    turns: ThreadTurns,
}

impl Replayed {
    /// All windows each way, with these small pages; `huge_first` says which way comes first.
    fn round(&self, small: ReplayPages, huge_first: bool) -> ReplayRound {
        let instructions_alone = self.each(&|group| group.iter().map(|steps| steps.time_instructions()).sum());
        let order = if huge_first { [ReplayPages::Huge, small] } else { [small, ReplayPages::Huge] };
        let mut passes = order.map(|kind| self.both_passes(kind));
        if huge_first {
            passes.reverse();
        }
        let [[chained_small, free_small], [chained_huge, free_huge]] = passes;
        ReplayRound { chained_small, chained_huge, free_small, free_huge, instructions_alone }
    }

    /// Seconds of the chained pass over all windows, and of the free one. Between two passes over a window lies as much
    /// memory as the program touches: the caches then hold about as much of its lines as they hold of the program's.
    fn both_passes(&self, kind: ReplayPages) -> [f64; 2] {
        let place = PassPlace { base: self.memory.base(), slots: &self.slots, kind };
        let turn = self.turns.seconds;
        let seconds = |pass| self.each(&|group| time_in_turns(group, turn, place, pass));
        // Does not count: other pages were replayed before it.
        seconds(Pass::Free);
        [Pass::Chained, Pass::Free].map(|pass| {
            self.rest.read();
            seconds(pass)
        })
    }

    /// The sum over all groups. Each of the threads passes over all, from another one on: their mean.
    fn each(&self, seconds: &(dyn Fn(&[&ReplaySteps]) -> f64 + Sync)) -> f64 {
        let groups: Vec<Vec<&ReplaySteps>> =
            self.groups.iter().map(|group| group.iter().map(|&window| &self.steps[window]).collect()).collect();
        let apart = groups.len() / self.turns.at_once.max(1);
        let one =
            |at: usize| at_once(self.turns.at_once, &|number| seconds(&groups[(at + number * apart) % groups.len()]));
        (0..groups.len()).map(one).sum()
    }
}

/// As many windows as fit, and where their parts lie.
fn fitting(run: &RunVisits, bytes: u64) -> Result<(Vec<&VisitWindow>, ReplaySlots), ReplayError> {
    let mut kept: Vec<&VisitWindow> = run.windows.iter().filter(|window| !window.visits.is_empty()).collect();
    if kept.is_empty() {
        return Err(ReplayError::NoVisits);
    }
    for all_pages in [true, false] {
        let slots = ReplaySlots::new(&kept, &run.touched, all_pages);
        if slots.fits(bytes) {
            return Ok((kept, slots));
        }
    }
    while kept.len() > 1 {
        // Every other one: those that stay are spread as before.
        kept = kept.into_iter().step_by(2).collect();
        let slots = ReplaySlots::new(&kept, &run.touched, false);
        if slots.fits(bytes) {
            return Ok((kept, slots));
        }
    }
    let wanted = ReplaySlots::new(&kept, &run.touched, false).bytes();
    Err(ReplayError::Memory { wanted_mib: wanted >> 20, available_bytes: bytes })
}

#[cfg(test)]
mod tests;
