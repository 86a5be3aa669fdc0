//! Programs of embedded systems: those that the lockdown paper (Song, Park, Kim 2022, Table 1) runs of MiBench's "Automotive and
//! Industrial", written anew, with inputs of MiBench's sizes. None is the original.
//!
//! Unlike the [`crate::TASKS`] each is a whole process: its stream has the stack, the static data, the heap and the code, at the
//! 32-bit addresses that a static ARM program has under Linux. What it keeps in registers is not seen, nor are constants
//! in the code.
//!
//! Data accesses are the algorithm's own. The instructions of each stretch of code are those that the same loops in C have, by gcc
//! 12 (`-O2 -mcpu=cortex-a9 -marm`), and Debian 12's ARM library for `malloc` and the mathematical functions; both counted by
//! `lookaside record --backend qemu`. Loads and stores are left out of these counts: where a cycle is taken for each access, as the
//! model does, each instruction then takes one. Which page a function's code lies on is assumed. The kernel's copies of input and
//! output are not seen.

mod basicmath;
mod process;
mod qsort;
mod stdio;
mod susan;

use std::io;

use crate::memory::Pages;
use crate::workload::{Workload, WorkloadError};

/// Which of MiBench's two inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// As in its `small` runs.
    #[default]
    Small,
    /// As in its `large` runs.
    Large,
}

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramSpec {
    /// How much a round does.
    pub input: Input,
    /// Seed of what is random in the input.
    pub seed: u64,
    /// How often the program does its work, from the input on: 1 to 2^32 - 1.
    pub rounds: u64,
    /// Page sizes of the native run.
    pub pages: Pages,
}

impl ProgramSpec {
    /// With seed 1, on base pages.
    pub fn new(input: Input, rounds: u64) -> Self {
        Self { input, seed: 1, rounds, pages: Pages::Base }
    }
}

/// A program that can be built.
#[derive(Clone, Copy, Debug)]
pub struct ProgramKind {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub what: &'static str,
    /// What one round is.
    pub round: &'static str,
    /// Input and rounds that take, on the model of the paper's machine (preset `cortex-a9`, each program alone), about the cycles of its
    /// section V.2: basicmath 16.3 million for 15, qsort 37.7 for 37, susan 28.3 for 33. The model takes one for each access and
    /// instruction, and what data caches and translation cost. The paper says neither which of MiBench's inputs it runs nor how
    /// often, and has no smoothing.
    pub paper: (Input, u64),
    build: fn(&ProgramSpec) -> io::Result<Box<dyn Workload>>,
}

/// All of them.
pub const PROGRAMS: &[ProgramKind] = &[
    ProgramKind {
        name: "basicmath",
        what: "real roots of cubics, integer square roots, degrees to radians and back, printed",
        round: "all of the input's ranges",
        paper: (Input::Small, 1),
        build: |spec| Ok(Box::new(basicmath::BasicMath::new(spec)?)),
    },
    ProgramKind {
        name: "qsort",
        what: "words read, sorted by quicksort of pointers to them, and printed",
        round: "all words",
        paper: (Input::Small, 3),
        build: |spec| Ok(Box::new(qsort::Qsort::new(spec)?)),
    },
    ProgramKind {
        name: "susan",
        what: "edges and corners of a grey picture by SUSAN's circular mask of 37 pixels",
        round: "edges of the picture, then corners",
        paper: (Input::Large, 1),
        build: |spec| Ok(Box::new(susan::Susan::new(spec)?)),
    },
    ProgramKind {
        name: "susan-smooth",
        what: "a grey picture smoothed over SUSAN's circular mask of 37 pixels",
        round: "the picture smoothed",
        paper: (Input::Large, 1),
        build: |spec| Ok(Box::new(susan::Smooth::new(spec)?)),
    },
];

/// Builds a program and its input; touches all of its memory.
///
/// # Errors
/// No program of this name, a number of rounds that can't be, no memory.
///
/// ```
/// use lookaside_workloads::{program, Input, ProgramSpec};
///
/// let mut qsort = program("qsort", &ProgramSpec::new(Input::Small, 1))?;
/// assert!(qsort.run(&std::sync::atomic::AtomicBool::new(false)));
/// assert_eq!(qsort.operations(), 10_000);
/// # Ok::<(), lookaside_workloads::WorkloadError>(())
/// ```
pub fn program(name: &str, spec: &ProgramSpec) -> Result<Box<dyn Workload>, WorkloadError> {
    let known = || PROGRAMS.iter().map(|kind| kind.name).collect();
    let kind = PROGRAMS.iter().find(|kind| kind.name == name);
    let kind = kind.ok_or_else(|| WorkloadError::Name { name: name.to_string(), known: known() })?;
    if spec.rounds == 0 || spec.rounds > u64::from(u32::MAX) {
        return Err(WorkloadError::Rounds { rounds: spec.rounds });
    }
    // The largest, susan's, takes about a megabyte.
    (kind.build)(spec).map_err(|source| WorkloadError::Memory { bytes: 1 << 20, source })
}

#[cfg(test)]
mod tests;
