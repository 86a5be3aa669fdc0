//! The workloads of PT-Baker's evaluation (Chatzopoulos 2024, section 5.2), and random reads.
//!
//! Each is one algorithm over [`crate::memory::Array`]s, which natively are slices and in a stream tell what is done to
//! them.

mod bc;
mod canneal;
mod graph500;
mod gups;
mod hashjoin;
mod liblinear;
mod reads;

use std::io;

use crate::workload::{Workload, WorkloadError, WorkloadSpec, LEAST_BYTES, MOST_BYTES};

/// A workload that can be built.
#[derive(Clone, Copy, Debug)]
pub struct BuildableWorkload {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub what: &'static str,
    /// What one round of its main task is.
    pub round: &'static str,
    build: fn(&WorkloadSpec) -> io::Result<Box<dyn Workload>>,
}

/// All of them.
pub const ALL: &[BuildableWorkload] = &[
    BuildableWorkload {
        name: "bc",
        what: "betweenness centrality by Brandes on a power-law graph, as GAPBS's BC",
        round: "the paths from one source",
        build: |spec| Ok(Box::new(bc::Bc::new(spec)?)),
    },
    BuildableWorkload {
        name: "canneal",
        what: "annealing of a netlist's placement, as PARSEC's canneal",
        round: "one temperature: an exchange for each 16 elements",
        build: |spec| Ok(Box::new(canneal::Canneal::new(spec)?)),
    },
    BuildableWorkload {
        name: "graph500",
        what: "breadth-first search over edge lists, as Graph500's list-based version",
        round: "a search from one root",
        build: |spec| Ok(Box::new(graph500::Graph500::new(spec)?)),
    },
    BuildableWorkload {
        name: "gups",
        what: "random updates, as HPCC's RandomAccess",
        round: "an update for each 16 words of the table; 64 rounds are HPCC's",
        build: |spec| Ok(Box::new(gups::GupsTable::new(spec)?)),
    },
    BuildableWorkload {
        name: "hashjoin",
        what: "probes of a chained hash table with an outer table's keys",
        round: "all rows of the outer table",
        build: |spec| Ok(Box::new(hashjoin::HashJoin::new(spec)?)),
    },
    BuildableWorkload {
        name: "liblinear",
        what: "sparse linear classification by dual coordinate descent, as LIBLINEAR's solver 1",
        round: "all rows once, in random order",
        build: |spec| Ok(Box::new(liblinear::LibLinear::new(spec)?)),
    },
    BuildableWorkload {
        name: "reads",
        what: "random reads, each address from the word read before",
        round: "a read for each 16 words",
        build: |spec| Ok(Box::new(reads::Reads::new(spec)?)),
    },
];

/// Names of all workloads.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|kind| kind.name).collect()
}

/// Builds the input of a workload; touches all of its memory.
///
/// # Errors
/// No workload of this name, a size or number of rounds that can't be, no memory.
pub fn workload(name: &str, spec: &WorkloadSpec) -> Result<Box<dyn Workload>, WorkloadError> {
    let kind = ALL.iter().find(|kind| kind.name == name);
    let kind = kind.ok_or_else(|| WorkloadError::Name { name: name.to_string(), known: names() })?;
    if !(LEAST_BYTES..=MOST_BYTES).contains(&spec.bytes) {
        return Err(WorkloadError::Size { bytes: spec.bytes, least: LEAST_BYTES, most: MOST_BYTES });
    }
    if spec.rounds == 0 || spec.rounds > u64::from(u32::MAX) {
        return Err(WorkloadError::Rounds { rounds: spec.rounds });
    }
    (kind.build)(spec).map_err(|source| WorkloadError::Memory { bytes: spec.bytes, source })
}
