//! Programs of embedded systems: those that the lockdown paper (Song, Park, Kim 2022, Table 1) runs of MiBench's
//! "Automotive and Industrial", written anew, with inputs of MiBench's sizes. None is the original.
//!
//! Each is a whole process: its stream has the stack, the static data, the heap and the code, at the 32-bit addresses
//! that a dynamically linked ARM program has under Linux: its own file, the C library, that of mathematics and the
//! loader, with the tables that they go through. What it keeps in registers is not seen, nor are constants in the code.
//!
//! Data accesses are the algorithms' own: libraries are relocated, symbols looked up, numbers formatted and functions
//! computed by tables that are really there. The kernel is entered by a fetch from its page of vectors; its copies of
//! input and output are seen as accesses to the program's memory, by words. The instructions of each stretch of code
//! are those that the same loops in C have, by gcc 12 (`-O2 -mcpu=cortex-a9 -marm`), or about those of Debian 12's ARM
//! libraries; both counted by `lookaside record --backend qemu`. Loads and stores are left out of these counts: where a
//! cycle is taken for each access, as the model does, each instruction then takes one. Which page of a library a
//! function's code or a table lies on is as in Debian's where it has a name, else assumed.

mod basicmath;
mod libm;
mod loader;
mod printf;
mod process;
mod qsort;
mod spec;
mod stdio;
mod susan;

use std::io;

use lookaside_workloads::{Workload, WorkloadError};

pub use spec::{ProgramInput, ProgramSpec};

/// A program that can be built.
#[derive(Clone, Copy, Debug)]
pub struct ProgramKind {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub what: &'static str,
    /// What one round is.
    pub round: &'static str,
    build: fn(&ProgramSpec) -> io::Result<Box<dyn Workload>>,
}

/// All of them.
pub const PROGRAMS: &[ProgramKind] = &[
    ProgramKind {
        name: "basicmath",
        what: "real roots of cubics, integer square roots, degrees to radians and back, all printed",
        round: "all of the input's ranges",
        build: |spec| Ok(Box::new(basicmath::BasicMath::new(spec)?)),
    },
    ProgramKind {
        name: "qsort",
        what: "words in records of 128 bytes read, sorted by merging pointers, and printed",
        round: "all words",
        build: |spec| Ok(Box::new(qsort::Qsort::new(spec)?)),
    },
    ProgramKind {
        name: "susan",
        what: "edges and corners of a grey picture by SUSAN's circular mask of 37 pixels",
        round: "edges of the picture, then corners",
        build: |spec| Ok(Box::new(susan::Susan::new(spec)?)),
    },
    ProgramKind {
        name: "susan-smooth",
        what: "a grey picture smoothed over SUSAN's circular mask of 37 pixels",
        round: "the picture smoothed",
        build: |spec| Ok(Box::new(susan::Smooth::new(spec)?)),
    },
];

/// Builds a program and its input; touches all of its memory.
///
/// # Errors
/// No program of this name, a number of rounds that can't be, no memory.
///
/// ```
/// use lookaside_tlb_lockdown::programs::{program, ProgramInput, ProgramSpec};
///
/// let mut qsort = program("qsort", &ProgramSpec::new(ProgramInput::Small, 1))?;
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
    // The largest, qsort's with its large input, takes some 7 MB.
    (kind.build)(spec).map_err(|source| WorkloadError::Memory { bytes: 8 << 20, source })
}

#[cfg(test)]
mod tests;
