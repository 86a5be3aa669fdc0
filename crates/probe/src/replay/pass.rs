//! One pass over a window's visits, timed.

use std::hint::black_box;

use lookaside_timing::VisitWindow;

use super::cpu_clock::CpuInstant;
use super::instructions_between::InstructionsBetween;
use super::memory::{ReplayPages, ReplaySlots};

/// How visits depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// The address of each visit depends on the word read by the one before.
    Chained,
    /// None does; between two visits stand as many instructions as in the program.
    Free,
}

/// A window's visits as places in the replay's memory.
pub struct ReplaySteps {
    /// In the order of [`ReplayPages::ALL`].
    ways: [PageSteps; 3],
    /// The first visit that is timed, and the first of its other lines.
    timed: (usize, usize),
    between: InstructionsBetween,
    weight: f64,
}

struct PageSteps {
    /// Line, and how many others follow.
    visits: Vec<(u32, u8)>,
    others: Vec<u32>,
}

impl ReplaySteps {
    /// Of a window whose lines all have slots.
    pub fn new(window: &VisitWindow, slots: &ReplaySlots) -> Self {
        let first = window.first_timed;
        let others_before: usize = window.visits[..first].iter().map(|visit| usize::from(visit.1)).sum();
        let steps = |kind| PageSteps {
            visits: window.visits.iter().map(|&(line, others)| (slots.line(line, kind), others)).collect(),
            others: window.others.iter().map(|&line| slots.line(line, kind)).collect(),
        };
        let (timed, timed_others) = (window.visits.len() - first, window.others.len() - others_before);
        let between = InstructionsBetween::new(window.instructions, timed, timed_others);
        Self { ways: ReplayPages::ALL.map(steps), timed: (first, others_before), between, weight: window.weight }
    }

    /// Visits that are timed.
    pub fn timed_visits(&self) -> u64 {
        (self.ways[0].visits.len() - self.timed.0) as u64
    }

    /// Visits of the run that they stand for.
    pub fn represented_visits(&self) -> f64 {
        self.weight * self.timed_visits() as f64
    }

    /// Seconds of CPU of the timed visits, after the others; as many times as they stand for.
    pub fn time(&self, base: u64, kind: ReplayPages, pass: Pass) -> f64 {
        let PageSteps { visits, others } = &self.ways[kind as usize];
        let (warming, timed) = visits.split_at(self.timed.0);
        let (warming_others, timed_others) = others.split_at(self.timed.1);
        black_box(free(base, warming, warming_others, InstructionsBetween::default()));
        let began = CpuInstant::now();
        black_box(match pass {
            Pass::Chained => chained(base, timed, timed_others),
            Pass::Free => free(base, timed, timed_others, self.between),
        });
        self.weight * began.seconds()
    }

    /// Seconds of CPU of the instructions between the timed visits alone; as many times as they stand for.
    pub fn time_instructions(&self) -> f64 {
        let began = CpuInstant::now();
        instructions(self.timed_visits(), self.between);
        self.weight * began.seconds()
    }
}

/// The first word of a line of the replay's memory: zero.
#[inline(always)]
fn word(base: u64, line: u32, link: u64) -> u64 {
    // SAFETY: `ReplaySlots` gave the line a place in the memory that `base` is the first byte of, and all first words
    // of lines are zero, so that `link` adds nothing.
    unsafe { ((base + (u64::from(line) << 6) + link) as *const u64).read_volatile() }
}

#[inline(never)]
fn chained(base: u64, visits: &[(u32, u8)], others: &[u32]) -> u64 {
    let mut others = others.iter();
    let (mut link, mut sum) = (0, 0);
    for &(line, count) in visits {
        link = word(base, line, link);
        for _ in 0..count {
            if let Some(&other) = others.next() {
                sum ^= word(base, other, 0);
            }
        }
    }
    link ^ sum
}

#[inline(never)]
fn free(base: u64, visits: &[(u32, u8)], others: &[u32], between: InstructionsBetween) -> u64 {
    let mut others = others.iter();
    let mut sum = 0;
    for &(line, count) in visits {
        sum ^= word(base, line, 0);
        for _ in 0..count {
            if let Some(&other) = others.next() {
                sum ^= word(base, other, 0);
            }
        }
        between.execute();
    }
    sum
}

#[inline(never)]
fn instructions(visits: u64, between: InstructionsBetween) {
    for _ in 0..visits {
        between.execute();
    }
}
