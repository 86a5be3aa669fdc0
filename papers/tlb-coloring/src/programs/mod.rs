//! Small programs of real-time tasks: what the coloring paper (Panchamukhi 2014, sections 6.0.9 and 6.0.10) runs of the
//! Mälardalen and MiBench suites, written anew. None is the original.
//!
//! Like the other workloads each is one algorithm over arrays ([`Chunked`](lookaside_workloads::kernel::Chunked)): its
//! heap, as the paper changed the benchmarks to have one. What lies in registers, on the stack or in constant tables is
//! not seen.

mod adpcm;
mod fft;
mod fir;
mod select;
mod sizes;
mod sort;
mod statistics;

use std::io;

use lookaside_workloads::kernel::WorkloadMemory;
use lookaside_workloads::{Chunks, Workload, WorkloadError, WorkloadSpec, PAGE_BYTES};

/// Most pages of a task: 1 MiB. Two of them take time by the square of their size.
pub const MOST_TASK_PAGES: u64 = 256;

/// A task that can be built.
#[derive(Clone, Copy, Debug)]
pub struct TaskKind {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub what: &'static str,
    /// What one round is: a job, done to its end.
    pub round: &'static str,
    /// Fewest pages that it does with.
    pub least_pages: u64,
    build: fn(WorkloadMemory, &WorkloadSpec) -> io::Result<Box<dyn Workload>>,
}

/// All of them.
pub const TASKS: &[TaskKind] = &[
    TaskKind {
        name: "adpcm",
        what: "IMA ADPCM: 16-bit samples to 4-bit codes and back",
        round: "all samples encoded, then decoded in their place",
        least_pages: 2,
        build: |room, spec| Ok(Box::new(adpcm::Adpcm::new(room, spec)?)),
    },
    TaskKind {
        name: "bubble-sort",
        what: "bubble sort of 32-bit numbers",
        round: "a new random array sorted",
        least_pages: 1,
        build: |room, spec| Ok(Box::new(sort::BubbleSort::new(room, spec)?)),
    },
    TaskKind {
        name: "fft",
        what: "radix-2 fast Fourier transform in place, unitary, of complex 64-bit floats",
        round: "one transform, of what the last one left",
        least_pages: 3,
        build: |room, spec| Ok(Box::new(fft::Fft::new(room, spec)?)),
    },
    TaskKind {
        name: "fir",
        what: "finite impulse response filter of 32 taps, in fixed point",
        round: "all of the input filtered",
        least_pages: 3,
        build: |room, spec| Ok(Box::new(fir::Fir::new(room, spec)?)),
    },
    TaskKind {
        name: "insertion-sort",
        what: "insertion sort of 32-bit numbers",
        round: "a new random array sorted",
        least_pages: 1,
        build: |room, spec| Ok(Box::new(sort::InsertionSort::new(room, spec)?)),
    },
    TaskKind {
        name: "nth-largest",
        what: "quickselect of a random rank among 32-bit numbers",
        round: "a rank found in a new random array",
        least_pages: 1,
        build: |room, spec| Ok(Box::new(select::NthLargest::new(room, spec)?)),
    },
    TaskKind {
        name: "statistics",
        what: "means, variances and correlation of two arrays of 64-bit floats",
        round: "all five figures",
        least_pages: 2,
        build: |room, spec| Ok(Box::new(statistics::Statistics::new(room, spec)?)),
    },
];

/// Builds a task whose arrays take at most `spec.bytes`, in whole pages, up to [`MOST_TASK_PAGES`]; touches all of its
/// memory.
///
/// # Errors
/// No task of this name, a size or number of rounds that can't be, no memory.
///
/// ```
/// use lookaside_tlb_coloring::programs::task;
/// use lookaside_workloads::WorkloadSpec;
///
/// let mut sort = task("insertion-sort", &WorkloadSpec::new(4096))?;
/// assert!(sort.run(&std::sync::atomic::AtomicBool::new(false)));
/// assert_eq!(sort.operations(), 1024);
/// # Ok::<(), lookaside_workloads::WorkloadError>(())
/// ```
pub fn task(name: &str, spec: &WorkloadSpec) -> Result<Box<dyn Workload>, WorkloadError> {
    built(name, spec, WorkloadMemory::new(spec.pages))
}

/// As [`task`], with its arrays in memory of the caller's. They may be spread: a size of so many chunks' bytes is asked
/// for, wherever these lie.
///
/// # Errors
/// As for [`task`]; chunks that cannot be, or too few of them, are no memory.
///
/// # Safety
/// The chunks can be written, do not overlap, and are nobody else's as long as the workload lives.
pub unsafe fn task_in(name: &str, spec: &WorkloadSpec, chunks: Chunks) -> Result<Box<dyn Workload>, WorkloadError> {
    if !chunks.are_possible() {
        return Err(WorkloadError::Memory { bytes: spec.bytes, source: io::ErrorKind::InvalidInput.into() });
    }
    // SAFETY: the caller's.
    built(name, spec, unsafe { WorkloadMemory::in_chunks(chunks) })
}

fn built(name: &str, spec: &WorkloadSpec, room: WorkloadMemory) -> Result<Box<dyn Workload>, WorkloadError> {
    let known = || TASKS.iter().map(|kind| kind.name).collect();
    let kind = TASKS.iter().find(|kind| kind.name == name);
    let kind = kind.ok_or_else(|| WorkloadError::Name { name: name.to_string(), known: known() })?;
    let (least, most) = (kind.least_pages * PAGE_BYTES, MOST_TASK_PAGES * PAGE_BYTES);
    if !(least..=most).contains(&spec.bytes) {
        return Err(WorkloadError::Size { bytes: spec.bytes, least, most });
    }
    if spec.rounds == 0 || spec.rounds > u64::from(u32::MAX) {
        return Err(WorkloadError::Rounds { rounds: spec.rounds });
    }
    (kind.build)(room, spec).map_err(|source| WorkloadError::Memory { bytes: spec.bytes, source })
}

#[cfg(test)]
mod tests;
