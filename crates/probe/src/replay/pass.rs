//! One pass over a window's visits, timed.

use std::hint::black_box;
use std::ops::Range;

use lookaside_timing::{PageVisit, VisitWindow};

use super::cpu_clock::CpuInstant;
use super::instructions_between::InstructionsBetween;
use super::memory::{ReplayPages, ReplaySlots};
use super::visit_step::{chained, free, LineAccess, VisitStep};

/// Accesses that are timed together, at most as many more as a page has lines: 16 KiB, which a core's own caches hold.
/// A longer list would come from memory, and take a part of the misses that a core can have under way.
const AT_A_TIME: usize = 2048;

/// How visits depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// The address of each visit depends on the word that the last one before it read; nobody waits for stores.
    Chained,
    /// None does; between two visits stand as many instructions as in the program.
    Free,
}

/// Where a pass goes over.
#[derive(Clone, Copy)]
pub struct PassPlace<'a> {
    /// First byte of the memory.
    pub base: u64,
    /// Where the lines lie in it.
    pub slots: &'a ReplaySlots,
    /// In which pages.
    pub kind: ReplayPages,
}

/// A window's visits as places in the replay's memory, those of [`ReplayPages::SmallHeld`].
pub struct ReplaySteps {
    steps: Vec<VisitStep>,
    others: Vec<u32>,
    /// What is not timed, in parts, and what is.
    warming: Vec<StepRange>,
    timed: Vec<StepRange>,
    timed_steps: u64,
    timed_visits: u64,
    between: InstructionsBetween,
    weight: f64,
    thread: (u32, u32),
}

/// Some steps and their other lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct StepRange {
    steps: Range<usize>,
    others: Range<usize>,
}

impl ReplaySteps {
    /// Of a window whose lines all have slots.
    pub fn new(window: &VisitWindow, slots: &ReplaySlots) -> Self {
        let (warming, timed) = window.visits.split_at(window.first_timed);
        let mut steps = steps(warming, slots);
        let warming_steps = steps.len();
        steps.extend(self::steps(timed, slots));
        let timed_steps = &steps[warming_steps..];
        let others = |steps: &[VisitStep]| steps.iter().map(|step| usize::from(step.others)).sum::<usize>();
        let again = timed_steps.iter().map(|step| step.again() as usize * (usize::from(step.others) + 1)).sum();
        Self {
            warming: parts(&steps[..warming_steps], (0, 0)),
            timed: parts(timed_steps, (warming_steps, others(&steps[..warming_steps]))),
            timed_steps: timed_steps.len() as u64,
            timed_visits: timed.len() as u64,
            between: InstructionsBetween::new(window.instructions, timed_steps.len(), others(timed_steps), again),
            weight: window.weight,
            thread: window.thread,
            others: window.others.iter().map(|&line| slots.line(line, ReplayPages::SmallHeld)).collect(),
            steps,
        }
    }

    /// Visits that are timed.
    pub fn timed_visits(&self) -> u64 {
        self.timed_visits
    }

    /// Visits of the run that they stand for.
    pub fn represented_visits(&self) -> f64 {
        self.weight * self.timed_visits as f64
    }

    /// Times that each of its timed lines is read again, on the mean.
    pub fn mean_again(&self) -> f64 {
        let timed = &self.steps[self.steps.len() - self.timed_steps as usize..];
        timed.iter().map(|step| f64::from(step.again())).sum::<f64>() / timed.len().max(1) as f64
    }

    /// Visits what is not timed.
    pub fn warm(&self, place: PassPlace) {
        let mut accesses = Vec::with_capacity(2 * AT_A_TIME);
        for part in &self.warming {
            self.list(part, place, &mut accesses);
            black_box(free(place.base, &accesses, || ()));
        }
    }

    /// Timed parts, each some thousand accesses.
    pub fn parts(&self) -> usize {
        self.timed.len()
    }

    /// Seconds of CPU of a part's visits.
    pub fn time_part(&self, part: usize, place: PassPlace, pass: Pass) -> f64 {
        let mut accesses = Vec::with_capacity(2 * AT_A_TIME);
        self.list(&self.timed[part], place, &mut accesses);
        let began = CpuInstant::now();
        black_box(match pass {
            Pass::Chained => chained(place.base, &accesses),
            Pass::Free if self.between.is_none() => free(place.base, &accesses, || ()),
            Pass::Free => free(place.base, &accesses, || self.between.execute()),
        });
        began.seconds()
    }

    /// What is measured in it counts so many times.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// The thread that made most of its visits.
    pub fn thread(&self) -> (u32, u32) {
        self.thread
    }

    /// Lists the accesses of a part.
    fn list(&self, part: &StepRange, PassPlace { slots, kind, .. }: PassPlace, accesses: &mut Vec<LineAccess>) {
        accesses.clear();
        let mut others = self.others[part.others.clone()].iter();
        for &step in &self.steps[part.steps.clone()] {
            accesses.push(step.access(slots.in_pages(step.line, kind)));
            let other = |&line| step.other_access(slots.in_pages(line, kind));
            accesses.extend(others.by_ref().take(usize::from(step.others)).map(other));
        }
    }

    /// Seconds of CPU of the instructions between the timed visits alone; as many times as they stand for.
    pub fn time_instructions(&self) -> f64 {
        let began = CpuInstant::now();
        instructions(self.timed_steps, self.between);
        self.weight * began.seconds()
    }
}

/// Steps of these visits.
fn steps(visits: &[PageVisit], slots: &ReplaySlots) -> Vec<VisitStep> {
    let mut steps: Vec<VisitStep> = Vec::with_capacity(visits.len());
    for visit in visits {
        let step = VisitStep::new(visit, slots.line(visit.line, ReplayPages::SmallHeld));
        match steps.last_mut().and_then(|last| Some((last.then_stored(step)?, last))) {
            Some((both, last)) => *last = both,
            None => steps.push(step),
        }
    }
    steps
}

/// Parts of the steps, of which the first has this number, and its first other line that: [`AT_A_TIME`] of both, or one
/// step.
fn parts(steps: &[VisitStep], (step, other): (usize, usize)) -> Vec<StepRange> {
    let mut parts = Vec::new();
    let mut part = StepRange { steps: step..step, others: other..other };
    for step in steps {
        part.steps.end += 1;
        part.others.end += usize::from(step.others);
        if part.steps.len() + part.others.len() >= AT_A_TIME {
            let next = StepRange { steps: part.steps.end..part.steps.end, others: part.others.end..part.others.end };
            parts.push(std::mem::replace(&mut part, next));
        }
    }
    if !part.steps.is_empty() {
        parts.push(part);
    }
    parts
}

#[inline(never)]
fn instructions(steps: u64, between: InstructionsBetween) {
    for _ in 0..steps {
        between.execute();
    }
}

#[cfg(test)]
mod tests {
    use lookaside_timing::VisitLine;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Part after part lists each line of each visit in turn, wherever its pages lie.
        #[test]
        fn parts_list_all_lines_in_turn(
            visits in prop::collection::vec((0u64..1 << 20, prop::collection::vec(0u32..64, 0..5), any::<bool>()), 1..400),
            warming in 0usize..400,
            times in 1usize..40,
        ) {
            let visits: Vec<_> = visits.iter().cycle().take(visits.len() * times).collect();
            let mut window = VisitWindow { first_timed: warming.min(visits.len()), ..VisitWindow::default() };
            let mut naive: Vec<VisitLine> = Vec::new();
            for (number, (line, others, huge)) in visits.into_iter().enumerate() {
                // Loads alone: none is one step with the next.
                let line = VisitLine::new(0, line << 6, *huge);
                let others: Vec<VisitLine> = others.iter().map(|&other| line.beside(other)).collect();
                let visit = PageVisit { line, others: others.len() as u8, accesses: 1, store: false };
                if number >= window.first_timed {
                    naive.push(line);
                    naive.extend(&others);
                }
                window.visits.push(visit);
                window.others.extend(others);
            }
            let slots = ReplaySlots::new(&[&window], &[], false);
            let steps = ReplaySteps::new(&window, &slots);
            for kind in ReplayPages::ALL {
                let mut listed = Vec::new();
                let mut accesses = Vec::new();
                for part in &steps.timed {
                    steps.list(part, PassPlace { base: 0, slots: &slots, kind }, &mut accesses);
                    prop_assert!(accesses.len() < AT_A_TIME + 64);
                    listed.extend(accesses.iter().map(|access| access.line()));
                }
                let naive: Vec<u32> = naive.iter().map(|&line| slots.line(line, kind)).collect();
                prop_assert_eq!(listed, naive);
            }
        }
    }
}
